#include "agent/checkpoint/tracers.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "agent/os/stop_tree.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr Duration kEndPatience = std::chrono::seconds(10);

// What an agent has started, or runc for it, calls itself so ("criu: dump --rpc -t 17"), or is called so
// where it was built without libbsd ("criu swrk 3"). Anybody can do the same, and is told later by CRIU then
// that it is traced.
bool LooksLikeCriu(pid_t pid) {
  const std::vector<std::string> words = CommandLineOf(pid);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "swrk" || absl::StrContains(word, "dump --rpc");
  });
}

bool IsCriuAtWork(pid_t pid, const std::string& work_folder) {
  return LooksLikeCriu(pid) && WorksIn(pid, work_folder);
}

}  // namespace

pid_t FindCriuAtWork(pid_t init, const std::string& work_folder) {
  for (const Traced& traced : FindTraced(init)) {
    if (IsCriuAtWork(traced.tracer, work_folder)) return traced.tracer;
  }
  return 0;
}

absl::Status AwaitCriuGone(pid_t init, const std::string& work_folder, Duration timeout) {
  const auto gone = [&] { return FindCriuAtWork(init, work_folder) == 0; };
  if (PollUntil(gone, timeout)) return absl::OkStatus();
  if (const pid_t criu = FindCriuAtWork(init, work_folder); criu > 0) {
    // Looked at once more through what cannot become another process.
    SIDING_ASSIGN_OR_RETURN(const UniqueFd process, OpenPidfd(criu));
    if (IsCriuAtWork(criu, work_folder)) syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
  if (PollUntil(gone, kEndPatience)) return absl::OkStatus();
  return absl::InternalError("the processes are still held by criu");
}

std::string WhyTraced(pid_t root) {
  const std::vector<pid_t> tree = ProcessTree(root);
  for (const Traced& traced : FindTraced(root)) {
    const bool inside = std::find(tree.begin(), tree.end(), traced.tracer) != tree.end();
    if (!inside && (IsStopping(traced.tracer) || LooksLikeCriu(traced.tracer))) continue;
    // One that has stopped them for a moment is gone.
    const std::vector<Traced> still = FindTraced(root);
    if (std::find(still.begin(), still.end(), traced) == still.end()) continue;
    return absl::StrCat(NameOf(traced.pid), " is being traced by ", NameOf(traced.tracer));
  }
  return "";
}

}  // namespace siding
