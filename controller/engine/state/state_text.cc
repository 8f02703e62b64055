#include "controller/engine/state/state_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/journal/journal.h"

namespace siding {
namespace {

// Of any list of ids.
template <class Ids>
std::string IdsText(const Ids& ids) {
  return absl::StrJoin(ids, ",", [](std::string* out, const auto& id) { absl::StrAppend(out, id.value()); });
}
std::string Text(const std::map<int, int>& codes) {
  return absl::StrJoin(codes, ",", absl::PairFormatter("="));
}
std::string Text(Time time) { return absl::StrCat(ToMicros(time)); }
std::string Text(const std::optional<Time>& time) { return time ? Text(*time) : "-"; }

// Fields beside the journal's encoding: one that the codec leaves out is lost by a restart, and must show.
std::string Text(const JobMoved& move) {
  return absl::StrCat(EncodeEventBody(Event{0, {}, {}, move}), " target ", IdsText(move.target),
                      " keep-running ", move.keep_running, " through-ram ", move.through_ram, " for-good ",
                      move.for_good, " without-save ", move.without_save, " found ", move.found, " notice ",
                      move.notice.count(), " request ", move.request.value(), " over-limit ", move.over_limit,
                      " from-beginning ", move.from_beginning);
}
std::string Text(const Plan& plan) {
  std::string text = EncodeEventBody(Event{0, {}, {}, RequestPlanned{plan}});
  for (const PlanStep& step : plan.steps) absl::StrAppend(&text, " target ", IdsText(step.target));
  return text;
}

// As the journal says them of jobs that are forgotten.
std::string Text(const Trends& trends) {
  return EncodeEventBody(Event{0, {}, {}, JobsForgotten{{}, {}, {}, trends, {}}});
}
std::string Text(const Totals& totals) {
  return EncodeEventBody(Event{0, {}, {}, JobsForgotten{{}, {}, {}, {}, totals}});
}

void Add(std::string& text, const JobRecord& job) {
  const auto line = [&](const auto&... parts) { absl::StrAppend(&text, "  ", parts..., "\n"); };
  absl::StrAppend(&text, "job ", job.id.value(), " ", ToString(job.state), "\n");
  line(EncodeEventBody(Event{0, {}, {}, JobSubmitted{job.spec}}));
  line("times ", Text(job.submitted), " ", Text(job.state_since), " ", Text(job.running_since), " ",
       Text(job.durable_at), " ", Text(job.first_started), " ", Text(job.ended), " ", Text(job.last_exit),
       " ", Text(job.saved_at), " ", Text(job.last_preempted), " ", Text(job.stopped_at), " ",
       Text(job.runs_since), " ", Text(job.preemptible_since), " ", job.ran.count(), " ",
       job.saved_ran.count());
  line("key ", job.request_key);
  line("numbers ", job.start_failures, " ", job.exit_code, " ", job.incarnation, " ", job.from_copy, " ",
       job.first_rank, " ", job.order, " ", job.ordered_as, " ", job.restore_failures, " ",
       job.checkpoint_count, " ", job.displaced_by.value(), " ", job.preemptions, " ", job.in_ram, " ",
       job.lost_node_seconds, " ", job.damaged_checkpoints, " ", job.restarts, " ", Text(job.begun), " ",
       job.begun_after, " ", job.refused_image.value());
  line("ordered at ", Text(job.ordered_at), " left by ", ToString(job.left_by), " trends ", Text(job.trends),
       " totals ", Text(job.totals));
  line("restart ", job.restart_reason);
  line("nodes ", IdsText(job.nodes), " last ", IdsText(job.last_nodes), " left on ", IdsText(job.left_on),
       " target ", IdsText(job.target), " exited ", Text(job.exited), " notes ", Text(job.notes));
  for (const auto& [method, why] : job.lost_methods) line("lost ", ToString(method), " ", why);
  for (const auto& [method, at] : job.methods_back_at) line("back ", ToString(method), " ", ToMicros(at));
  line("failed checkpoints ", job.checkpoint_failures, " ranks waited ",
       job.ranks_waited ? absl::StrCat(job.ranks_waited->count()) : "-");
  for (const CheckpointCost& cost : job.checkpoint_costs)
    line("cost ", ToString(cost.tier), " ", cost.stop.count(), " ", cost.takes.count(), " ",
         cost.written.value, " ", cost.ran_on, " ", cost.learned_since);
  line("checkpoints ", IdsText(job.checkpoints), " ordered ", IdsText(job.ordered), " reason ", job.reason);
  line("current ", Text(job.current));
  if (job.beginning) line("beginning ", ToString(job.beginning->state), " ", Text(job.beginning->place));
  if (job.waiting_order) line("waits ", EncodeEventBody(Event{0, {}, {}, *job.waiting_order}));
  if (job.held) line("held by ", job.held->by, job.held->by_operator ? ", operator" : "");
  for (const Plan& plan : job.plans) line("plan ", Text(plan));
}

void Add(std::string& text, const CheckpointRecord& c) {
  absl::StrAppend(&text, "checkpoint ", c.id.value(), " ", c.job.value(), " ", c.incarnation, " ",
                  c.first_rank, " ", ToString(c.tier), " ", IdsText(c.nodes), " ", Text(c.exited), " ");
  absl::StrAppend(&text, c.bytes.value, " ", c.new_bytes.value, " ");
  absl::StrAppend(&text, Text(c.created), " ", c.ran.count(), " ", c.stopped.count(), " ", c.took.count(),
                  " ", c.state, " ", c.note,
                  c.copies == NodeCopies::kNone ? "" : " copies " + ToString(c.copies));
  for (const auto& [rank, digest] : c.digests) absl::StrAppend(&text, " ", rank, ":", digest);
  text += "\n";
}

}  // namespace

std::string StateText(const DurableState& state) {
  const Tally& t = state.forgotten;
  std::string text = absl::StrCat(
      "seq ", state.last_seq, " last job ", state.last_job.value(), "\nforgotten ", t.met, " ", t.missed, " ",
      t.refused, " ", t.preemptions, " ", t.lost_node_seconds, " ", t.damaged_checkpoints, " ",
      t.gpu_states_lost, " ", t.restarts, " ", Text(state.forgotten_trends), " ",
      Text(state.forgotten_totals), "\nunwanted ", IdsText(state.unwanted), " restored ",
      Text(state.restored_at), " skipped ", state.skipped_orders, "\n");
  for (const auto& [id, job] : state.jobs) Add(text, job);
  for (const auto& [id, job] : state.unfinished) absl::StrAppend(&text, "unfinished ", id.value(), "\n");
  for (const auto& [at, id] : state.ended) absl::StrAppend(&text, "ended ", Text(at), " ", id.value(), "\n");
  for (const auto& [id, checkpoint] : state.checkpoints) Add(text, checkpoint);
  for (const auto& [node, jobs] : state.given_up)
    absl::StrAppend(&text, "given up on ", node.value(), ": ", IdsText(jobs), "\n");
  for (const auto& [id, node] : state.nodes)
    if (node.cordoned || node.lost_since)
      absl::StrAppend(&text, "node ", id.value(), node.cordoned ? " cordoned" : "", " lost ",
                      Text(node.lost_since), "\n");
  return text;
}

}  // namespace siding
