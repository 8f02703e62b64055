#include "agent/gpu/drain.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding {
namespace {

// Calls `act` for those in this state. Goes on after an error; returns the first.
template <typename Act>
absl::Status ForThoseIn(GpuState wanted, GpuDriver& driver, const std::vector<pid_t>& pids, Act act) {
  absl::Status first;
  for (pid_t pid : pids) {
    const auto state = driver.State(pid);
    absl::Status status = state.status();
    if (state.ok() && *state == GpuState::kFailed)
      status = absl::DataLossError(absl::StrCat("the GPU state of process ", pid, " is lost"));
    if (state.ok() && *state == wanted) status = act(pid);
    first.Update(status);
  }
  return first;
}

// The same, but ends at the first error.
template <typename Act>
absl::Status UntilOneFails(GpuState wanted, GpuDriver& driver, const std::vector<pid_t>& pids, Act act) {
  for (pid_t pid : pids) SIDING_RETURN_IF_ERROR(ForThoseIn(wanted, driver, {pid}, act));
  return absl::OkStatus();
}

}  // namespace

absl::Status DrainGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times) {
  absl::Status status = UntilOneFails(GpuState::kRunning, driver, pids,
                                      [&](pid_t pid) { return driver.Lock(pid, times.lock); });
  if (status.ok()) {
    status = UntilOneFails(GpuState::kLocked, driver, pids,
                           [&](pid_t pid) { return driver.Checkpoint(pid, times.transfer); });
  }
  if (status.ok()) return status;
  const absl::Status undone = RefillGpus(driver, pids, {}, times);
  if (undone.ok()) return status;
  return absl::DataLossError(
      absl::StrCat(std::string(status.message()), "; and then: ", std::string(undone.message())));
}

std::vector<GpuMove> PlanMoves(const std::vector<std::string>& before, const std::vector<std::string>& after,
                               const std::vector<std::string>& machine_before,
                               const std::vector<std::string>& machine_after) {
  std::vector<GpuMove> moves;
  std::set<std::string> from, to;
  const auto move = [&](const std::string& old, const std::string& now) {
    if (from.insert(old).second && to.insert(now).second) moves.push_back({old, now});
  };
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) move(before[i], after[i]);
  for (const std::string& gpu : machine_before) {
    const bool there = std::find(machine_after.begin(), machine_after.end(), gpu) != machine_after.end();
    if (there && !from.contains(gpu) && !to.contains(gpu)) move(gpu, gpu);
  }
  for (const std::string& gpu : machine_before) {
    if (from.contains(gpu)) continue;
    const auto free = std::find_if(machine_after.begin(), machine_after.end(),
                                   [&](const std::string& other) { return !to.contains(other); });
    if (free != machine_after.end()) move(gpu, *free);
  }
  const bool stays =
      std::all_of(moves.begin(), moves.end(), [](const GpuMove& m) { return m.before == m.after; });
  return stays ? std::vector<GpuMove>() : moves;
}

absl::Status RefillGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const std::vector<GpuMove>& moves,
                        const GpuTimes& times) {
  // Restored, a process is locked.
  absl::Status status = ForThoseIn(GpuState::kCheckpointed, driver, pids,
                                   [&](pid_t pid) { return driver.Restore(pid, moves, times.transfer); });
  // Nothing brings back what is lost: the others go on, and the program finds out by itself.
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  status.Update(ForThoseIn(GpuState::kLocked, driver, pids,
                           [&](pid_t pid) { return driver.Unlock(pid, times.transfer); }));
  return status;
}

}  // namespace siding
