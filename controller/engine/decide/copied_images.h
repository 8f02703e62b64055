// Images on nodes' own disks are copied into shared storage behind their jobs: which ones, and which of those
// that have been are not needed on the nodes any more.
//
// A job that has left by such an image is tied to its nodes until then; one that runs loses it with a node.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/engine/decide/checkpoint_schedule.h"
#include "controller/engine/state/context.h"
#include "controller/engine/state/wanted_copy.h"

namespace siding {

class CopiedImages {
 public:
  CopiedImages(const Context& c, const CheckpointSchedule& schedule)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        cluster_(c.cluster),
        tiers_(c.tiers),
        recorder_(c.recorder),
        startup_(c.startup),
        schedule_(schedule) {}

  // Of jobs that wait for their nodes first, the longest before.
  std::vector<WantedCopy> ToCopy() const;
  // Images that a deadline waits for are being written to shared storage, and have all of the way to it.
  bool MustWait() const;
  // Records of which the images on nodes are not needed any more: newer ones count, their job is over, or
  // there is no room for another one beside them.
  void Expire();

 private:
  bool IsStartingUp() const;
  bool IsImageInAdvanceWritten() const;
  // Null: nothing of the job is to be copied now.
  const CheckpointRecord* CopyOf(const JobRecord& job, bool any_under_way) const;
  // That is on its way already. Null: nothing is.
  const CheckpointRecord* UnderWay(const JobRecord& job) const;
  // While it runs, more will follow.
  bool IsTooSoon(const JobRecord& job, const CheckpointRecord& image) const;
  Bytes RoomFor(const CheckpointRecord& image, const TierRoom::UnderWay& under_way) const;
  CheckpointId BaseOf(const JobRecord& job) const;
  // Empty: it is still needed.
  std::string WhyUnwanted(const CheckpointRecord& image, const JobRecord& job,
                          const TierRoom::UnderWay& under_way);
  // The largest image that a job on that node would have there.
  Bytes LargestOn(const NodeId& node);

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const TierRoom& tiers_;
  Recorder& recorder_;
  const StartUp& startup_;
  const CheckpointSchedule& schedule_;
  std::map<NodeId, Bytes> largest_on_;  // of one Expire()
};

}  // namespace siding
