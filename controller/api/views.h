// The controller's state as the API shows it. Pure functions.
#pragma once

#include <functional>

#include "controller/engine/state/cluster_state.h"
#include "planner/return_forecast.h"
#include "siding/v1/api.pb.h"

namespace siding {

using MaySeeJob = std::function<bool(const JobRecord&)>;

v1::Job ShowJob(const ClusterState& state, const JobRecord& job);
// To a user who may not act on it: without what it runs, where, and why it fails.
v1::Job ShowOthersJob(const ClusterState& state, const JobRecord& job);
v1::Back ShowBack(const Back& back);
v1::ListNodesResponse ShowNodes(const ClusterState& state);
v1::CheckpointInfo ShowCheckpoint(const CheckpointRecord& checkpoint);
// With the names of the jobs it speaks of. Of those that may not be seen it says only which of them make way:
// their numbers, not their names.
// `sees_all`: the caller may see every job. Others are told of groups of those that they see.
v1::Plan ShowPlan(const ClusterState& state, Plan plan, const MaySeeJob& may_see, bool sees_all = true);
v1::Event ShowEvent(const Event& event);

}  // namespace siding
