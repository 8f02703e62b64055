// What users of Kubernetes are told of jobs and their images. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/engine/state/cluster_state.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"
#include "model/event.h"

namespace siding {

// Nothing: it has no deadline, or was not planned for.
std::optional<kubernetes::Outlook> OutlookOf(const JobRecord& job);
// Of jobs that are pods. Without those of which nothing is in the store, or was ever whole.
std::vector<kubernetes::CheckpointView> CheckpointsOf(const DurableState& state);

// What people should look at, as against what they may.
bool IsWarning(const Event& event);

// A job is to make way for another.
struct Preemption {
  JobId by;
  Time deadline;
  double lost_node_seconds = 0;  // as it was planned
};
// Nothing: the event orders none. A checkpoint after which the job runs on is none.
std::optional<Preemption> PreemptionIn(const Event& event, const DurableState& state);
// One line that programs may read, so its form stays: "preempted by WHO for deadline TIME: N node-seconds
// lost".
std::string Describe(const Preemption& preemption, const std::string& who);

}  // namespace siding
