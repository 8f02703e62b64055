// Waits until somebody ends the program, by Ctrl-C or SIGTERM.
//
// Services block these signals before their first thread starts (common/signals.h). sidingctl cannot: until a
// verb waits like this Ctrl-C is to end it at once, and by then gRPC's threads run, which would not block
// them. So here it is a handler.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace siding::cli {

// From here on these signals end Wait() in place of the process; the second one of a kind ends the process
// again. One at a time; it does not undo what it has set.
class StopSignal {
 public:
  StopSignal() {
    wake() = eventfd(0, EFD_CLOEXEC);
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int saved = errno;
      const uint64_t one = 1;
      (void)!write(wake(), &one, sizeof one);
      errno = saved;
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // readers go when they like
  }

  static void Wait() {
    uint64_t count = 0;
    while (read(wake(), &count, sizeof count) < 0 && errno == EINTR) {
    }
  }

 private:
  static int& wake() {
    static int fd = -1;
    return fd;
  }
};

}  // namespace siding::cli
