// All GPU processes of a task, off their GPUs and back.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/gpu/gpu_driver.h"
#include "common/units.h"

namespace siding {

struct GpuTimes {
  Duration lock;      // for each process: work it has submitted is waited for
  Duration transfer;  // for each process: its memory on GPUs to the host's, or back
};

// Locks all, then brings the state of all to host memory: a process that still ran while another's state was
// taken could wait for it for ever. Processes that are drained already are left so. On failure all run again
// as before; kDataLoss if that failed as well for one of them.
absl::Status DrainGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const GpuTimes& times);

// Where everything goes that was on `before`'s GPUs: to those of `after`, by place. The driver wants to hear
// of every GPU that a program could have found and of no others, so the others that it could find,
// `machine_before`, are paired with the others that it can find now, with themselves where that can be. Empty
// if nothing moves.
std::vector<GpuMove> PlanMoves(const std::vector<std::string>& before, const std::vector<std::string>& after,
                               const std::vector<std::string>& machine_before,
                               const std::vector<std::string>& machine_after);

// The way back, from wherever each process is: all have their state on GPUs again before the first runs on.
// If one cannot, none does: the first error, and it can be tried again. But kDataLoss if the driver has lost
// the state of one: the others run. Does nothing to those that run.
absl::Status RefillGpus(GpuDriver& driver, const std::vector<pid_t>& pids, const std::vector<GpuMove>& moves,
                        const GpuTimes& times);

}  // namespace siding
