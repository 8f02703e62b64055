// Orders that are planned and not given, as the API says them.
#pragma once

#include "absl/status/statusor.h"
#include "controller/api/views.h"
#include "controller/engine/state/cluster_state.h"
#include "model/action_plan.h"
#include "siding/v1/api.pb.h"

namespace siding {

// kInvalidArgument for a verb that is none, and for what it does not take.
absl::StatusOr<Action> ActionOf(const v1::ActionRequest& request);
// All but the verb; jobs that the caller may not see are left out.
void ShowAction(const ActionPlan& plan, const ClusterState& state, const MaySeeJob& may_see,
                v1::ActionPlan& view);

}  // namespace siding
