// The GPUs of one node: who has which, how full they are, and whether jobs can be taken off them.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/gpu/gpu_driver.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

inline constexpr char kProbeTask[] = "probe";  // holds a GPU while the agent measures it; see probe.h

// Thread-safe. GPUs are named by their UUIDs throughout, tasks by their names.
class NodeGpus {
 public:
  // Those that the driver tells of now, at most the first `most`; of `only`, if that is not empty. Without a
  // driver there are none.
  NodeGpus(std::unique_ptr<GpuDriver> driver, int most, const std::vector<std::string>& only = {});

  GpuDriver& driver() { return *driver_; }
  int count() const { return static_cast<int>(uuids_.size()); }
  // Why nothing can be taken off these GPUs; empty: it can, if a program does nothing against it.
  const std::string& problem() const { return problem_; }
  // All that the driver tells of, those that are not given to tasks here included; in its order.
  const std::vector<std::string>& machine() const { return machine_; }
  // The chips of those that are given to tasks, by UUID.
  const std::map<std::string, std::string>& names() const { return names_; }
  // By UUID: N of each GPU's /dev/nvidiaN, as far as it is known.
  const std::map<std::string, int>& minors() const { return minors_; }
  // Empty: there is no such GPU.
  std::string NameOf(const std::string& uuid) const;

  // So many GPUs for the task, of `preferred` the free ones. What it had before counts as free.
  absl::StatusOr<std::vector<std::string>> Take(const std::string& task, int count,
                                                const std::vector<std::string>& preferred = {});
  // Those on which no process is seen now, of siding's or not.
  std::vector<std::string> Idle();
  bool IsBeingProbed();
  // The task has these, even if others do: it was found with them, or a cluster manager has said so.
  void Keep(const std::string& task, const std::vector<std::string>& uuids);
  void Release(const std::string& task);

  // What is in use of these GPUs together, seen a second ago or later; and now.
  Bytes Used(const std::vector<std::string>& uuids);
  Bytes UsedNow(const std::vector<std::string>& uuids);
  // The part of a task with these processes: of a GPU that it has together with other tasks, what the
  // processes use or, if the driver does not say, an equal share.
  Bytes UsedBy(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes);
  Bytes UsedNowBy(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes);
  // A GPU that one of these processes is on, as seen a second ago or later, and that is none of these. Empty:
  // there is none.
  std::string FindOther(const std::vector<std::string>& uuids, const std::vector<pid_t>& processes);
  // Those of the processes that were on some GPU, as seen a second ago or later; all of them if none of them
  // was, or if not all processes are told of.
  std::set<pid_t> MayBeOnGpus(const std::vector<pid_t>& processes);
  // OK if `needed` fits on these GPUs together now; kResourceExhausted says who is in the way.
  absl::Status CheckFree(const std::vector<std::string>& uuids, Bytes needed);

 private:
  void Look();
  void LookIfOld();

  const std::unique_ptr<GpuDriver> driver_;
  std::vector<std::string> machine_;  // constant after construction, as are the next
  std::vector<std::string> uuids_;
  std::map<std::string, std::string> names_;  // by UUID
  std::map<std::string, int> minors_;         // by UUID
  std::string problem_;
  Mutex mutex_;
  std::map<std::string, std::set<std::string>> holders_ ABSL_GUARDED_BY(mutex_);  // UUID -> tasks
  std::map<std::string, GpuDevice> seen_ ABSL_GUARDED_BY(mutex_);                 // by UUID
  std::chrono::steady_clock::time_point seen_at_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace siding
