// The durable state as text, for tests that compare two of them: a line for each record, every field in it.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/engine/state.h"
#include "controller/journal/journal.h"

namespace siding {

inline std::string BodyText(EventBody body) { return EncodeEventBody(Event{0, {}, {}, std::move(body)}); }
inline std::string TextOf(Time t) { return absl::StrCat(ToMicros(t)); }
inline std::string TextOf(const std::optional<Time>& t) { return t ? TextOf(*t) : "-"; }
template <class Ids>
std::string IdsText(const Ids& ids) {
  return absl::StrJoin(ids, ",", [](std::string* out, const auto& id) { absl::StrAppend(out, id.value()); });
}
inline std::string TextOf(const std::map<int, int>& exited) {
  return absl::StrJoin(exited, ",", absl::PairFormatter("="));
}

inline std::string TextOf(const JobRecord& job) {
  std::string lost, plans;
  for (const auto& [method, why] : job.lost_methods) absl::StrAppend(&lost, ToString(method), ":", why, ",");
  for (const Plan& plan : job.plans) absl::StrAppend(&plans, BodyText(RequestPlanned{plan}));
  const std::string times = absl::StrJoin(
      {TextOf(job.submitted), TextOf(job.state_since), TextOf(job.running_since), TextOf(job.durable_at),
       TextOf(job.first_started), TextOf(job.ended), TextOf(job.last_exit), TextOf(job.saved_at),
       TextOf(job.last_preempted), TextOf(job.stopped_at)},
      " ");
  const std::string numbers =
      absl::StrJoin({job.exit_code, job.incarnation, job.first_rank, job.order, job.restore_failures,
                     job.checkpoint_count, job.preemptions, static_cast<int>(job.in_ram)},
                    " ");
  return absl::StrCat("job ", job.id.value(), " ", ToString(job.state), " ", times, " ", numbers, " nodes ",
                      IdsText(job.nodes), " last ", IdsText(job.last_nodes), " exited ", TextOf(job.exited),
                      " lost ", lost, " checkpoints ", IdsText(job.checkpoints), " ordered ",
                      IdsText(job.ordered), " for ", job.displaced_by.value(), " target ",
                      IdsText(job.target), " cost ", job.lost_node_seconds, " ", job.reason, " ",
                      BodyText(JobSubmitted{job.spec}), BodyText(job.current), plans, "\n");
}

inline std::string TextOf(const CheckpointRecord& c) {
  return absl::StrCat("checkpoint ", c.id.value(), " of ", c.job.value(), ".", c.incarnation, " from ",
                      c.first_rank, " ", ToString(c.tier), " ", IdsText(c.nodes), " exited ",
                      TextOf(c.exited), " ", c.bytes.value, " ", TextOf(c.created), " ", c.state, ": ",
                      c.note, "\n");
}

inline std::string TextOf(const ClusterState& state) {
  const Tally& t = state.forgotten;
  std::string text = absl::StrCat("events ", state.last_seq, " last job ", state.last_job.value(),
                                  " forgotten ", t.met, " ", t.missed, " ", t.refused, " ", t.preemptions,
                                  " ", t.lost_node_seconds, "\nunwanted ", IdsText(state.unwanted), "\n");
  for (const auto& [id, job] : state.jobs) absl::StrAppend(&text, TextOf(job));
  for (const auto& [id, checkpoint] : state.checkpoints) absl::StrAppend(&text, TextOf(checkpoint));
  for (const auto& [id, node] : state.nodes)
    absl::StrAppend(&text, "node ", id.value(), node.cordoned ? " cordoned" : "", "\n");
  for (const auto& [ended, id] : state.ended)
    absl::StrAppend(&text, "ended ", TextOf(ended), " ", id.value(), "\n");
  for (const auto& [id, job] : state.unfinished) absl::StrAppend(&text, "unfinished ", id.value(), "\n");
  return text;
}

}  // namespace siding
