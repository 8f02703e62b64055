#include "agent/gpu/drain.h"

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
      status = absl::InternalError(absl::StrCat("the GPU state of process ", pid, " is lost"));
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

absl::StatusOr<std::vector<pid_t>> GpuProcesses(GpuDriver& driver, const std::vector<pid_t>& pids) {
  std::vector<pid_t> using_gpus;
  for (pid_t pid : pids) {
    SIDING_ASSIGN_OR_RETURN(const GpuState state, driver.State(pid));
    if (state != GpuState::kUnused) using_gpus.push_back(pid);
  }
  return using_gpus;
}

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

absl::Status RefillGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const std::vector<GpuMove>& moves,
                        const GpuTimes& times) {
  // Restored, a process is locked.
  absl::Status status = ForThoseIn(GpuState::kCheckpointed, driver, pids,
                                   [&](pid_t pid) { return driver.Restore(pid, moves, times.transfer); });
  status.Update(ForThoseIn(GpuState::kLocked, driver, pids,
                           [&](pid_t pid) { return driver.Unlock(pid, times.transfer); }));
  return status;
}

}  // namespace siding
