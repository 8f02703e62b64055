// A Checkpoint: what users see of an image that siding keeps of a pod's job. Its schema is in
// deploy/kubernetes/crds.yaml. Pure.
//
// It is a view: siding writes it and reads nothing from it but whether it is there.
#pragma once

#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "model/job.h"

namespace siding::kubernetes {

// A label of each object: the namespace of the siding that has written it.
inline constexpr char kWriterLabel[] = "siding.dev/written-by";
// And the job's number, for `kubectl get checkpoints -l`.
inline constexpr char kJobLabel[] = "siding.dev/job";

enum class CheckpointPhase : uint8_t {
  kMaking,
  kDurable,   // the job can continue from it
  kDamaged,   // it is not what was written, and nothing continues from it
  kDeleting,  // nobody needs it any more
};
std::string ToString(CheckpointPhase phase);

struct CheckpointView {
  CheckpointId id;
  JobId job;
  bool job_ended = false;  // its owner may be gone, and with it the object: it is not made again
  ObjectName pod;          // the last one of its job
  Owner owner;             // of that
  CheckpointPhase phase = CheckpointPhase::kMaking;
  Bytes bytes;
  Tier tier = Tier::kShared;
  std::vector<NodeId> nodes;  // by rank, where it was made
  Time made;                  // when that began
  std::string note;           // why it is damaged or deleted
};

ObjectName NameOf(const CheckpointView& checkpoint);
// The object to make, without its status. It goes with the owner of the pod. `writer`: kWriterLabel.
Json ObjectOf(const CheckpointView& checkpoint, const std::string& writer);
// All of it.
Json StatusOf(const CheckpointView& checkpoint);

// This siding has written it.
bool IsOf(const std::string& writer, const Object& object);
// It goes with this owner, or the owner is of a kind that siding does not know.
bool GoesWith(const Object& object, const Owner& owner);

}  // namespace siding::kubernetes
