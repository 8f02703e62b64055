// The controller's state as the API shows it. Pure functions.
#pragma once

#include "controller/engine/state.h"
#include "siding/v1/api.pb.h"

namespace siding {

v1::Job JobView(const ClusterState& state, const JobRecord& job);
v1::Node NodeView(const ClusterState& state, const NodeId& id);
v1::CheckpointInfo CheckpointView(const CheckpointRecord& checkpoint);
// With the names of the jobs it speaks of.
v1::Plan PlanView(const ClusterState& state, const Plan& plan);
v1::Event EventView(const Event& event);

}  // namespace siding
