#include "agent/pods/end_runc.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr Duration kForce = std::chrono::seconds(10);

bool HasEnded(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

// Descriptors of what is below it. Looked at twice: what is below it still is the one that was opened.
std::vector<UniqueFd> OpenBelow(pid_t root) {
  std::vector<UniqueFd> opened;
  std::vector<pid_t> pids;
  for (const pid_t pid : ProcessTree(root)) {
    if (pid == root) continue;
    if (auto process = OpenPidfd(pid); process.ok()) {
      opened.push_back(std::move(*process));
      pids.push_back(pid);
    }
  }
  const std::vector<pid_t> again = ProcessTree(root);
  std::vector<UniqueFd> below;
  for (size_t i = 0; i < pids.size(); ++i) {
    const bool is_below = std::find(again.begin(), again.end(), pids[i]) != again.end();
    if (is_below && !HasEnded(opened[i])) below.push_back(std::move(opened[i]));
  }
  return below;
}

}  // namespace

void EndRunc(pid_t runc, Duration undo) {
  const std::vector<UniqueFd> below = OpenBelow(runc);
  kill(runc, SIGKILL);
  const auto gone = [&] { return std::all_of(below.begin(), below.end(), HasEnded); };
  if (PollUntil(gone, undo)) return;
  for (const UniqueFd& process : below) syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  PollUntil(gone, kForce);
}

}  // namespace siding
