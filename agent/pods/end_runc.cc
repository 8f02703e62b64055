#include "agent/pods/end_runc.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr Duration kForce = std::chrono::seconds(10);

bool HasEnded(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

struct Below {
  pid_t pid;
  UniqueFd process;
};

bool HasEnded(const Below& below) { return HasEnded(below.process); }

// What is below it. Looked at twice: what is below it still is the one that was opened.
std::vector<Below> OpenBelow(pid_t root) {
  std::vector<Below> opened;
  for (const pid_t pid : ProcessTree(root)) {
    if (pid == root) continue;
    if (auto process = OpenPidfd(pid); process.ok()) opened.push_back({pid, std::move(*process)});
  }
  const std::vector<pid_t> again = ProcessTree(root);
  std::erase_if(opened, [&](const Below& one) {
    return std::find(again.begin(), again.end(), one.pid) == again.end() || HasEnded(one);
  });
  return opened;
}

// As runc starts it; what it restores has other words.
bool IsCriu(pid_t pid) {
  const auto words = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  return words.ok() && absl::StrContains(*words, absl::string_view("\0swrk\0", 6));
}

// With what has come below them since.
std::vector<Below> StillBelow(std::vector<Below> below) {
  std::vector<Below> still;
  for (Below& one : below) {
    if (HasEnded(one)) continue;
    for (Below& child : OpenBelow(one.pid)) still.push_back(std::move(child));
    still.push_back(std::move(one));
  }
  return still;
}

}  // namespace

void EndRunc(pid_t runc, RuncWork work, Duration undo) {
  std::vector<Below> below = OpenBelow(runc);
  std::vector<const Below*> awaited;
  for (const Below& one : below) {
    if (work == RuncWork::kDump || IsCriu(one.pid)) awaited.push_back(&one);
  }
  kill(runc, SIGKILL);
  PollUntil(
      [&] { return std::all_of(awaited.begin(), awaited.end(), [](auto* one) { return HasEnded(*one); }); },
      undo);
  below = StillBelow(std::move(below));
  for (const Below& one : below) syscall(SYS_pidfd_send_signal, one.process.get(), SIGKILL, nullptr, 0);
  PollUntil([&] { return std::all_of(below.begin(), below.end(), [](auto& one) { return HasEnded(one); }); },
            kForce);
}

}  // namespace siding
