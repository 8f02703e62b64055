// How long a test waits for what has to come. It costs time only where something is wrong; a short limit also
// fails where the machine is busy. Limits that a test is about are the test's own.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

namespace siding {

inline constexpr std::chrono::seconds kPatience{300};

// Calls `condition` until it holds, first at once and then every millisecond. False: it has not come.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Waits for what somebody else promises.
template <typename Future>
bool Comes(const Future& future) {
  return future.wait_for(kPatience) == std::future_status::ready;
}

// Waits for a child that ends by itself, or stops if the options of waitpid() say so. False: it has not, and
// is killed.
inline bool AwaitChild(pid_t child, int& status, int options = 0) {
  if (Eventually([&] { return waitpid(child, &status, options | WNOHANG) == child; })) return true;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

// What is received of this socket has to come.
inline void ReceivePatiently(int socket) {
  const timeval patience = {kPatience.count(), 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

}  // namespace siding
