// All GPU processes of a task, off their GPUs and back.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/gpu/gpu_driver.h"
#include "common/units.h"

namespace siding {

struct GpuTimes {
  Duration lock;      // until all processes are locked: work that they have submitted is waited for
  Duration transfer;  // for each process: its memory on GPUs to the host's, or back
  // For one try to lock at first: of several processes that may wait for each other, and of one alone.
  Duration try_together = std::chrono::milliseconds(200);
  Duration try_alone = std::chrono::seconds(2);
  Duration longest_pause = std::chrono::milliseconds(300);  // between two tries
};

// What the caller decides during a drain. Either may be empty.
struct DrainControl {
  std::function<bool()> cancelled;  // asked between tries to lock
  // Asked when all are locked, and before anything is moved. Not OK: all are unlocked, and the drain fails.
  std::function<absl::Status()> when_locked;
};

// What a drain did to the task before its state was moved.
struct GpuStall {
  Duration lock{0};  // from the first lock to the last: it computes little in that time
  int tries = 0;
};

// Locks all, then moves the state of all to host memory. A process that still ran while another's state was
// taken could wait for it for ever, so no state is moved before all are locked. Processes that are drained
// already are left so. On failure all run again as before; kDataLoss if that failed as well for one of them.
// `stall` is set on success and on failure; it may be null.
absl::Status DrainGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times,
                       const DrainControl& control = {}, GpuStall* stall = nullptr);

// Those of the processes that the driver knows and that have not been drained. A process that has only
// inherited descriptors of GPUs is none of the driver's.
absl::StatusOr<std::vector<pid_t>> ProcessesOnGpus(GpuDriver& driver, const std::vector<pid_t>& pids);

// Where everything goes that was on `before`'s GPUs: to those of `after`, by place. The driver wants to hear
// of every GPU that a program could have found and of no others, so the others that it could find,
// `machine_before`, are paired with the others that it can find now, with themselves where that can be. Empty
// if nothing moves.
std::vector<GpuMove> PlanMoves(const std::vector<std::string>& before, const std::vector<std::string>& after,
                               const std::vector<std::string>& machine_before,
                               const std::vector<std::string>& machine_after);

// The way back, from wherever each process is: all have their state on GPUs again before the first runs on.
// If one cannot, none does: the first error, and it can be tried again. But kDataLoss if the driver has lost
// the state of one: the others are unlocked. Does nothing to those that run.
absl::Status RefillGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const std::vector<GpuMove>& moves,
                        const GpuTimes& times);

}  // namespace siding
