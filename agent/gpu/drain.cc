#include "agent/gpu/drain.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/since.h"
#include "common/status.h"

namespace siding {
namespace {

// Calls `act` for those in this state. Continues after an error; returns the first.
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

// Each process is asked for in a thread of its own: the driver waits inside the call. The first error, in the
// order of the processes.
absl::Status LockAtOnce(GpuDriver& driver, const std::vector<pid_t>& pids, Duration timeout) {
  std::vector<absl::Status> statuses(pids.size());
  std::vector<std::thread> threads;
  threads.reserve(pids.size());
  for (size_t i = 0; i < pids.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = driver.Lock(pids[i], timeout); });
  for (std::thread& thread : threads) thread.join();
  // One that cannot be locked at all is not tried again.
  absl::Status worst;
  for (const absl::Status& status : statuses) {
    if (worst.ok() || (absl::IsDeadlineExceeded(worst) && !status.ok())) worst = status;
  }
  return worst;
}

// Processes that compute together wait for each other in the middle of a collective operation: where one is
// locked before it has submitted its part, the work of its peers never ends, and they cannot be locked. So
// all are locked at the same moment and with a short timeout. If one does not follow, all are unlocked, run
// past that operation, and are locked again after a short random time. The timeout grows: kernels of seconds
// that depend on no other process end as well. A process alone is given more time at once.
absl::Status LockTogether(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times,
                          const std::function<bool()>& cancelled, GpuStall& stall) {
  const bool alone = pids.size() == 1;
  const int tries_per_doubling = alone ? 1 : 8;
  std::minstd_rand random(std::random_device{}());
  const auto begun = std::chrono::steady_clock::now();
  for (Duration timeout = alone ? times.try_alone : times.try_together;;) {
    const Duration left = std::max(times.lock - Since(begun), times.try_together);
    const absl::Status status = LockAtOnce(driver, pids, std::min(timeout, left));
    ++stall.tries;
    if (!absl::IsDeadlineExceeded(status)) return status;
    SIDING_RETURN_IF_ERROR(ForThoseIn(GpuState::kLocked, driver, pids,
                                      [&](pid_t pid) { return driver.Unlock(pid, times.transfer); }));
    if (Since(begun) >= times.lock) {
      return absl::DeadlineExceededError(absl::StrCat(
          pids.size(), alone ? " process" : " processes", " on GPUs could not be locked in ",
          FormatDuration(times.lock), " and ", stall.tries, " tries: ", std::string(status.message())));
    }
    if (cancelled && cancelled()) return absl::AbortedError("it was called off while its GPUs were locked");
    if (stall.tries % tries_per_doubling == 0) timeout *= 2;
    std::uniform_int_distribution<int64_t> pause(0, times.longest_pause.count());
    std::this_thread::sleep_for(Duration(pause(random)));
  }
}

absl::Status LockAll(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times,
                     const std::function<bool()>& cancelled, GpuStall& stall) {
  std::vector<pid_t> running;
  SIDING_RETURN_IF_ERROR(UntilOneFails(GpuState::kRunning, driver, pids, [&](pid_t pid) {
    running.push_back(pid);
    return absl::OkStatus();
  }));
  const auto begun = std::chrono::steady_clock::now();
  absl::Status status;
  if (!running.empty()) status = LockTogether(driver, running, times, cancelled, stall);
  stall.lock = Since(begun);
  return status;
}

}  // namespace

absl::StatusOr<std::vector<pid_t>> ProcessesOnGpus(GpuDriver& driver, const std::vector<pid_t>& pids) {
  std::vector<pid_t> on_gpus;
  for (pid_t pid : pids) {
    SIDING_ASSIGN_OR_RETURN(const GpuState state, driver.State(pid));
    if (state != GpuState::kUnused && state != GpuState::kCheckpointed) on_gpus.push_back(pid);
  }
  return on_gpus;
}

absl::Status DrainGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times,
                       const DrainControl& control, GpuStall* stall) {
  GpuStall ignored;
  absl::Status status = LockAll(driver, pids, times, control.cancelled, stall != nullptr ? *stall : ignored);
  if (status.ok() && control.when_locked) status = control.when_locked();
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
  // Lost state cannot be restored: the others continue, and the program finds out by itself.
  if (!status.ok() && !absl::IsDataLoss(status)) return status;
  status.Update(ForThoseIn(GpuState::kLocked, driver, pids,
                           [&](pid_t pid) { return driver.Unlock(pid, times.transfer); }));
  return status;
}

}  // namespace siding
