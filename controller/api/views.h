// The controller's state as the API shows it. Pure functions.
#pragma once

#include "controller/engine/state.h"
#include "siding/v1/api.pb.h"

namespace siding {

v1::Job ShowJob(const ClusterState& state, const JobRecord& job);
v1::ListNodesResponse ShowNodes(const ClusterState& state);
v1::CheckpointInfo ShowCheckpoint(const CheckpointRecord& checkpoint);
// With the names of the jobs it speaks of.
v1::Plan ShowPlan(const ClusterState& state, const Plan& plan);
v1::Event ShowEvent(const Event& event);

}  // namespace siding
