// How often a job is checkpointed while it runs: as its user has said, as failures of its nodes make it
// worth, or as the policy asks, whichever is most often. Where siding chooses, it follows from what the job's
// last checkpoints have cost, so it changes with them.
//
// Used under the engine's lock.
#pragma once

#include <optional>

#include "controller/engine/state/context.h"
#include "model/checkpoint_interval.h"

namespace siding {

class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(const Context& c)
      : state_(c.state), policy_(c.policy), clock_(c.clock), cluster_(c.cluster), manager_(c.manager) {}

  // There is a reason to save it on schedule, and a way to. Cheap: asked of every job every second.
  bool HasOne(const JobRecord& job) const;
  // Where its images go: as the policy says, but into shared storage where it may not continue from one on
  // its nodes' own disks.
  Tier TierOf(const JobRecord& job) const;
  // By an image; else it saves itself.
  bool ByImage(const JobRecord& job) const;
  struct Schedule {
    ChosenInterval every;
    Duration at_most{0};  // `every`, and those that follow, if images cost no more than so far
    ExpectedCost cost;    // of the next one; all 0: not known
  };
  // None: there are none.
  std::optional<Schedule> Of(const JobRecord& job) const;
  // A kill, by a plan or otherwise, loses no more of its work than that, by its images. 0:
  // they are not made, or not as they should be: the last one is older than that.
  Duration MostLost(const JobRecord& job) const;
  // What its next image is expected to write there.
  Bytes BytesOfNext(const JobRecord& job, Tier tier) const;
  // So much later than `base`, the last image that was copied into shared storage, is the time to copy
  // another: then copies take no more of its bandwidth than the policy allows.
  Duration CopyInterval(const JobRecord& job, const CheckpointRecord& image,
                        const CheckpointRecord& base) const;
  // Bytes a second: what the shared tier can take in all. As the policy says, or else as the best of the
  // agents has measured it; 0: not known.
  double TierBandwidth() const;
  // By so much the limit on how many are made at once has held one back, at the last look.
  void NoteLate(Duration late) { late_ = late; }

 private:
  // As learned from the last ones; else that of a whole image, for all of whose time the job stands still.
  std::optional<ExpectedCost> CostOf(const JobRecord& job) const;
  // That its images may take of the tier's. 0: not known.
  double BandwidthFor(const JobRecord& job, Tier tier) const;
  // The largest of its shares of the node's slots, memory and GPUs.
  double PartOfItsNode(const JobRecord& job, const NodeId& node, const ObservedNode& observed) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  Duration late_{0};
  // Of a second ago at most: asking every node for every job would take too long. 0 is not remembered.
  mutable double measured_ = 0;
  mutable Time measured_at_;
};

}  // namespace siding
