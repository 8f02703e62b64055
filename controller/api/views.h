// The controller's state as the API shows it. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "controller/engine/state/cluster_state.h"
#include "planner/return_forecast.h"
#include "siding/v1/api.pb.h"

namespace siding {

using MaySeeJob = std::function<bool(const JobRecord&)>;

v1::Job ShowJob(const ClusterState& state, const JobRecord& job);
// What a list does not show, and may be long.
void LeaveOutWhatItRuns(v1::JobSpec& spec);
// To a user who may not act on it: without what it runs, where, and why it fails.
v1::Job ShowOthersJob(const ClusterState& state, const JobRecord& job);
// `names_job`: the caller may know whose end it waits for, or who is ahead of it.
v1::Back ShowBack(const Back& back, bool names_job);
v1::ListNodesResponse ShowNodes(const ClusterState& state);
v1::CheckpointInfo ShowCheckpoint(const ClusterState& state, const CheckpointRecord& checkpoint);

// What a plan's view takes from the state: little, for the engine waits meanwhile.
struct PlanContext {
  std::map<JobId, std::string> names;  // of the jobs that it speaks of and that may be seen
  Time start_by{};                     // of its request; 0: it is not known
};
PlanContext ContextOf(const ClusterState& state, const Plan& plan, const MaySeeJob& may_see);
// As many of those that are left alone as a record has.
inline constexpr int32_t kKeptOfRecord = 0;
// With the names of the jobs it speaks of. Of those that may not be seen it says only which of them make way:
// their numbers, not their names.
// `sees_all`: the caller may see every job. Others are told of groups of those that they see.
// `most_kept`: so many of those that are left alone are named; below 0: all.
v1::Plan ShowPlan(Plan plan, const PlanContext& context, bool sees_all, int32_t most_kept = kKeptOfRecord);
v1::Event ShowEvent(const Event& event);

}  // namespace siding
