// Memory of a task's processes, and what keeps them from being dumped or drained. An inspection uses values
// only, and may outlive its task: see DetachedWork.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/criu/criu.h"
#include "agent/gpu/node_gpus.h"
#include "agent/node/detached_work.h"
#include "agent/os/account.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// What a task has to do with GPUs.
struct GpuFacts {
  bool used = false;                    // it asks for some
  bool assigned = false;                // this node's agent gives them out
  bool externally_managed = false;      // a cluster manager has started it
  std::string cluster_manager;          // which
  std::string unknown;                  // externally managed: why it is not known which it has been given
  std::vector<std::string> allocated;   // externally managed: which are allocated to it
  int nodes = 1, gpus = 0;              // of its job, and its own
  std::shared_ptr<NodeGpus> nodes_own;  // null: not looked for
};

// Why it cannot be taken off its GPUs; empty: nothing is known against it. `is_client` as in
// agent/gpu/drainable.h.
std::string WhyNotDrainable(const GpuFacts& facts, pid_t init, const std::function<bool(pid_t)>& is_client);

struct InspectionRequest {
  pid_t init = 0;  // 0: it has no processes
  GpuFacts gpu;
  std::vector<std::string> on_gpus;  // that it holds
  bool drained = false;              // off its GPUs: nothing is to be seen of them
  bool has_criu = false;
  DumpingCriu criu;
  std::string no_criu;           // why this node's is not used for it
  std::string no_packet_tables;  // why its connections to elsewhere cannot be held back; empty: they can
  uid_t uid = 0;
  gid_t gid = 0;
  std::optional<Account> user;  // of these, once it was looked up
  std::string bundle;           // of the container that it is; empty: it is none
};

struct Inspection {
  Bytes memory, gpu_memory;
  std::string cannot_dump, cannot_drain;  // empty: nothing is known against it
  std::string timer;                      // see FindTimer()
  // Of a container: what keeps it from being dumped at this moment, and may pass by itself. It counts when it
  // is there at two looks, one after the other: somebody may wait for what is refused because of it.
  std::string passing;
  bool passing_again = false;
  size_t gpu_clients = 0;
  bool drained = false;  // as it was asked for: of another state its memory says nothing
  std::optional<Account> user;
};

// At which process an inspection is, and the result of the last one. Thread-safe.
class InspectionProgress {
 public:
  using Steady = std::chrono::steady_clock;

  std::atomic<pid_t> at{0};  // the process whose memory is being read
  // Since when it has been that one, as far as earlier calls know: with many processes it changes.
  Steady::time_point SinceAt(pid_t now_at) {
    MutexLock lock(mutex_);
    if (now_at != seen_at_) since_ = Steady::now();
    seen_at_ = now_at;
    return since_;
  }
  void Put(Inspection inspection) {
    MutexLock lock(mutex_);
    inspection.passing_again = !inspection.passing.empty() && last_ && !last_->passing.empty();
    last_ = std::move(inspection);
  }
  std::optional<Inspection> last() const {
    MutexLock lock(mutex_);
    return last_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Inspection> last_ ABSL_GUARDED_BY(mutex_);
  pid_t seen_at_ ABSL_GUARDED_BY(mutex_) = 0;
  Steady::time_point since_ ABSL_GUARDED_BY(mutex_);
};

// The task's processes can keep this waiting for as long as they like.
Inspection Inspect(const InspectionRequest& asked, std::atomic<pid_t>& at);

// The reason, for an inspection that hangs. `at`: the process at which it is, 0 if that is not known.
std::string WhyNotInspected(pid_t at);

// Inspections of one task, one at a time: the newest that has come to its end, or that one hangs.
// Thread-safe.
class Inspections {
 public:
  using Steady = InspectionProgress::Steady;
  struct Newest {
    std::optional<Inspection> seen;
    std::string hangs;  // the reason, as WhyNotInspected() says it; empty: none hangs
  };
  // Begins one unless an earlier one is under way, and waits for it until then at most.
  Newest Look(const InspectionRequest& asked, Steady::time_point until);

 private:
  const std::shared_ptr<InspectionProgress> progress_ = std::make_shared<InspectionProgress>();
  DetachedWork work_;
};

}  // namespace siding
