#include "controller/api/action_view.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/wire/spec_limits.h"
#include "controller/wire/wire.h"

namespace siding {

absl::StatusOr<Action> ActionOf(const v1::ActionRequest& request) {
  const std::string& verb = request.verb();
  Action action;
  if (verb == "kill") {
    action.what = Action::What::kKill;
  } else if (verb == "cordon") {
    action.what = Action::What::kCordon;
  } else if (const auto hand = ParseHandVerb(verb)) {
    action.order.verb = *hand;
  } else {
    return BadField("verb",
                    absl::StrCat("suspend, checkpoint, vacate, migrate, kill or cordon, got '", verb, "'"));
  }
  const bool is_hand = action.what == Action::What::kHand;
  const bool has_tier =
      is_hand && (action.order.verb == HandVerb::kCheckpoint || action.order.verb == HandVerb::kVacate);
  const auto none = [&](const char* field) { return BadField(field, absl::StrCat("none for ", verb)); };
  if (action.what == Action::What::kCordon ? request.job() != 0 : !request.node().empty())
    return none(action.what == Action::What::kCordon ? "job" : "node");
  if (!has_tier && request.tier() != v1::TIER_UNSPECIFIED) return none("tier");
  if (!(is_hand && action.order.verb == HandVerb::kMigrate) && !request.nodes().empty()) return none("nodes");
  action.job = JobId(request.job());
  action.node = NodeId(request.node());
  action.order.tier = FromProto(request.tier());
  for (const std::string& node : request.nodes()) action.order.target.emplace_back(node);
  return action;
}

void ShowAction(const ActionPlan& plan, const ClusterState& state, const MaySeeJob& may_see,
                v1::ActionPlan& view) {
  // Of those that have not been forgotten meanwhile.
  const auto seen = [&](JobId id) -> const JobRecord* {
    const auto job = state.jobs.find(id);
    return job != state.jobs.end() && may_see(job->second) ? &job->second : nullptr;
  };
  view.set_sequence(plan.seq);
  view.set_made_us(ToMicros(plan.made));
  view.set_job(plan.job.value());
  if (const JobRecord* job = seen(plan.job)) view.set_job_name(job->spec.name);
  if (plan.method) view.set_method(ToProto(*plan.method));
  for (const NodeId& node : plan.nodes) view.add_nodes(node.value());
  for (const NodeId& node : plan.target) view.add_target(node.value());
  if (plan.method == Method::kCheckpoint) view.set_tier(ToProto(plan.tier));
  view.set_bytes(plan.bytes.value);
  if (plan.begins != Time{}) view.set_begins_us(ToMicros(plan.begins));
  if (plan.done != Time{}) view.set_done_us(ToMicros(plan.done));
  view.set_loss_node_seconds(plan.loss_node_seconds);
  for (JobId id : plan.stay) {
    if (seen(id) != nullptr) view.add_stay(id.value());
  }
  for (const DeadlineChange& change : plan.deadlines) {
    const JobRecord* request = seen(change.request);
    if (request == nullptr) continue;
    v1::DeadlineChange& shown = *view.add_deadlines();
    shown.set_request(change.request.value());
    shown.set_name(request->spec.name);
    shown.set_start_by_us(ToMicros(change.start_by));
    if (change.before) shown.set_before_us(ToMicros(*change.before));
    if (change.after) shown.set_after_us(ToMicros(*change.after));
  }
  for (JobId id : plan.left_out)
    view.set_deadlines_left_out(view.deadlines_left_out() + (seen(id) != nullptr ? 1 : 0));
}

}  // namespace siding
