#include "controller/engine/decide/wait_reasons.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

constexpr size_t kMostNamed = 4;  // of nodes, in one line

// Each once, in their order.
std::string Names(std::vector<NodeId> nodes) {
  std::vector<NodeId> once;
  for (NodeId& node : nodes) {
    if (std::find(once.begin(), once.end(), node) == once.end()) once.push_back(std::move(node));
  }
  const size_t more = once.size() - std::min(once.size(), kMostNamed);
  once.resize(once.size() - more);
  const std::string names = absl::StrJoin(
      once, ",", [](std::string* out, const NodeId& node) { absl::StrAppend(out, node.value()); });
  return absl::StrCat(names.find(',') == std::string::npos ? "node " : "nodes ", names,
                      more == 0 ? "" : absl::StrCat(" and ", more, " others"));
}

std::string HeldText(const JobRecord& job) {
  return absl::StrCat(WhoHolds(job), " (sidingctl release ", job.id.value(), ")");
}

// One by hand that is carried out when what is under way has ended.
std::string OrderText(const JobRecord& job) {
  const OrderWaits& waiting = *job.waiting_order;
  const std::string until = job.current.checkpoint == CheckpointId()
                                ? "the program has saved itself"
                                : absl::StrCat("checkpoint ", job.current.checkpoint.value(), " is made");
  return absl::StrCat(ToString(waiting.order.verb), " waits until ", until, ", or until ",
                      FormatTime(waiting.until), " at the latest");
}

std::string Needs(const JobSpec& spec) {
  return absl::StrCat(spec.nodes, spec.nodes == 1 ? " node" : " nodes", " with ", Words(spec.per_node));
}

}  // namespace

std::string WaitReasons::WhyWaits(const JobRecord& job) const {
  if (IsTerminal(job.state)) return "";
  if (HoldsNodes(job.state)) return WhyHangs(job);
  if (!OwnershipOf(job.spec).siding_starts) {
    const std::string queue = absl::StrCat("waits in the queue of ", job.spec.cluster_manager);
    if (const std::string where = OnlyWhere(job); !where.empty()) return absl::StrCat(queue, " for ", where);
    const std::string why = WaitsForItsNodes(job) ? job.plans.back().refusal : "";
    return absl::StrCat(queue, why.empty() ? "" : ": ", why);
  }
  if (std::string why = WhyNotYet(job); !why.empty()) return why;
  return IsRequest(job) ? WhyRequestWaits(job) : WhyInQueue(job);
}

// Reasons of its own, which do not depend on free nodes.
std::string WaitReasons::WhyNotYet(const JobRecord& job) const {
  if (job.held) return HeldText(job);
  if (recovery_.NeedsDecision(job))
    return absl::StrCat("waits for somebody to say how it is to go on (sidingctl restart ", job.id.value(),
                        ")");
  if (const auto pause = recovery_.HeldBackUntil(job.id); pause && clock_.Now() < *pause)
    return absl::StrCat("is tried again at ", FormatTime(*pause));
  if (recovery_.WaitsForNextRound(job) || (recovery_.NotOn(job) != nullptr && !batch_.TiedTo(job).empty()))
    return absl::StrCat("is tried again at ", FormatTime(recovery_.NextRound(job.id)));
  if (cluster_.HasLeftTasks(job)) {
    std::vector<NodeId> nodes = job.left_on;
    for (const auto& [node, jobs] : state_.given_up) {
      if (jobs.contains(job.id)) nodes.push_back(node);
    }
    return absl::StrCat("waits for ", Names(nodes), ", where tasks of its last start may still run");
  }
  return "";
}

// The nodes that it waits for whatever is idle beside them, with why. Empty: any will do.
std::string WaitReasons::OnlyWhere(const JobRecord& job) const {
  const std::vector<NodeId> tied = batch_.TiedTo(job);
  if (tied.empty()) return "";
  const bool moves = !cluster_.TargetOf(job).empty();
  return absl::StrCat(Names(tied), moves ? ", where it is to be moved to" : ": its image is there alone",
                      WhatIsFaulty(tied));
}

// What PlaceWaiting() has found.
std::string WaitReasons::WhyInQueue(const JobRecord& job) const {
  const JobSpec& spec = job.spec;
  if (const std::string where = OnlyWhere(job); !where.empty()) return absl::StrCat("waits for ", where);
  int usable = 0;
  for (const auto& [node, account] : accounts_.Accounts()) usable += account.capacity.Covers(spec.per_node);
  if (usable < spec.nodes) {
    std::vector<NodeId> away;
    for (const auto& [node, observed] : state_.observed_nodes) {
      if (!state_.IsLost(node) && !cluster_.Usable(node) &&
          cluster_.CapacityOf(node, observed).Covers(spec.per_node))
        away.push_back(node);
    }
    return absl::StrCat("waits for ", Needs(spec), "; ", usable, usable == 1 ? " has" : " have", " that",
                        away.empty() ? ""
                                     : absl::StrCat(", ", Names(away), away.size() == 1 ? " is" : " are",
                                                    " away, cordoned or faulty"),
                        WhatIsFaulty(away));
  }
  if (const int kept = policy_.headroom_nodes; !IsRequest(job) && usable - kept < spec.nodes) {
    return absl::StrCat("waits for ", Needs(spec), "; of ", usable, " the site's policy keeps ", kept,
                        " free of batch jobs (headroom_nodes)");
  }
  if (const JobId first = batch_.head(); first != job.id && state_.index.waiting().contains(first)) {
    const JobRecord& head = *state_.index.waiting().at(first);
    const bool higher = IsRequest(head) || head.spec.priority > spec.priority;
    return absl::StrCat("waits behind job ", first.value(),
                        higher ? ", which has a higher priority" : ", which was there before");
  }
  if (recovery_.NotOn(job) != nullptr)
    return absl::StrCat("is tried again at ", FormatTime(recovery_.NextRound(job.id)),
                        ", or before on a node that it has not been tried on");
  return absl::StrCat("waits for ", Needs(spec), "; ", WhatIsFree(spec));
}

// Node by node: numbers alone could be of nodes or of slots.
std::string WaitReasons::WhatIsFree(const JobSpec& spec) const {
  std::vector<NodeId> free;
  std::vector<std::string> little;
  for (const auto& [node, room] : accounts_.Room({})) {
    if (room.Covers(spec.per_node)) {
      free.push_back(node);
    } else if (room.slots > 0) {
      // Of what it asks for.
      const Resources& asked = spec.per_node;
      const Resources shown{room.slots, asked.memory > Bytes{0} ? room.memory : Bytes{0},
                            asked.gpus > 0 ? room.gpus : 0};
      little.push_back(absl::StrCat(node.value(), " has ", Words(shown)));
    }
  }
  if (free.empty()) {
    const size_t more = little.size() - std::min(little.size(), kMostNamed);
    little.resize(little.size() - more);
    return absl::StrCat("none is free", little.empty() ? "" : ": ", absl::StrJoin(little, ", "),
                        more == 0 ? "" : absl::StrCat(" and ", more, " others have some"));
  }
  const int kept = policy_.headroom_nodes;
  const bool enough = static_cast<int>(free.size()) >= spec.nodes;
  return absl::StrCat(free.size(), free.size() == 1 ? " is" : " are", " free: ", Names(free),
                      enough && kept > 0
                          ? absl::StrCat("; ", kept, kept == 1 ? " of them is" : " of them are",
                                         " kept free of batch jobs by the site's policy (headroom_nodes)")
                          : "");
}

// The first of them that is, with the reason. Empty: none is.
std::string WaitReasons::WhatIsFaulty(const std::vector<NodeId>& nodes) const {
  for (const NodeId& node : nodes) {
    const auto observed = state_.observed_nodes.find(node);
    if (observed != state_.observed_nodes.end() && cluster_.IsHeard(node) && observed->second.faulty)
      return absl::StrCat("; ", node.value(), " gets no jobs: ", WhyFaulty(observed->second));
  }
  return "";
}

// A broken promise comes first.
std::string WaitReasons::WhyRequestWaits(const JobRecord& job) const {
  const Time now = clock_.Now(), start_by = job.spec.start_by;
  if (!WaitsForItsNodes(job)) return WhyInQueue(job);
  const Plan& plan = job.plans.back();
  std::string text;
  if (StartsOverLate(job)) {
    // What was promised was kept.
  } else if (now > start_by) {
    text = absl::StrCat("has missed its deadline of ", FormatTime(start_by), ": ");
  } else if (!plan.queued && (!plan.feasible || plan.predicted_start > start_by)) {
    text = absl::StrCat("cannot meet its deadline of ", FormatTime(start_by), ": ");
  } else if (job.spec.not_before > now) {
    text = absl::StrCat("was announced for ", FormatTime(job.spec.not_before), ": ");
  }
  if (plan.queued) return text + WhyInQueue(job);
  if (!plan.nodes.empty()) {
    const bool late = !text.empty() && !plan.refusal.empty();
    return absl::StrCat(text, "waits for ", Names(plan.nodes), UntilWhoEnds(plan),
                        late ? "; " + plan.refusal : "");
  }
  return text + (plan.refusal.empty() ? "is about to be planned" : plan.refusal);
}

// The last of those whose end the plan waits for.
std::string WaitReasons::UntilWhoEnds(const Plan& plan) const {
  std::pair<Time, JobId> last;
  for (JobId id : AwaitedToEnd(plan)) {
    const auto job = state_.unfinished.find(id);
    const auto end = job == state_.unfinished.end() ? std::nullopt : planning_.ExpectedEnd(*job->second);
    if (end) last = std::max(last, {*end, id});
  }
  if (last.second == JobId()) return "";
  return absl::StrCat(", until job ", last.second.value(), " ends by its walltime at ",
                      FormatTime(last.first));
}

std::string WaitReasons::WhyHangs(const JobRecord& job) const {
  if (IsKnownFromQueueOnly(job)) return "";
  if (job.held && job.state == JobState::kSuspended) return HeldText(job);
  const std::string away = WhoIsAway(job);
  if (job.waiting_order)
    return absl::StrCat(OrderText(job), away.empty() ? "" : absl::StrCat("; waits for ", away));
  if (!away.empty()) return "waits for " + away;
  switch (job.state) {
    case JobState::kKilling:
      return absl::StrCat("waits for its processes to end, until SIGKILL after ",
                          FormatDuration(job.spec.kill_grace));
    case JobState::kSaving:
      return job.spec.app ? absl::StrCat("waits for the program to save itself, for ",
                                         FormatDuration(job.spec.app->grace), " at most")
                          : "";
    case JobState::kSuspending:
    case JobState::kDumping:
      return job.current.notice > Duration(0)
                 ? absl::StrCat("waits for the notice of ", FormatDuration(job.current.notice),
                                " it was given")
                 : "";
    default:
      return "";
  }
}

std::string WaitReasons::WhoIsAway(const JobRecord& job) const {
  std::vector<NodeId> away;
  std::optional<Time> since;
  bool gone = false;
  for (int rank : cluster_.LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    const auto observed = state_.observed_nodes.find(node);
    if (state_.IsLost(node) || cluster_.IsHeard(node)) continue;
    away.push_back(node);
    gone |= !cluster_.IsConnected(node);
    Time when = startup_.started;
    if (observed != state_.observed_nodes.end())
      when = observed->second.silent ? observed->second.last_beat : observed->second.gone_since;
    since = std::min(since.value_or(when), when);
  }
  if (away.empty()) return "";
  return absl::StrCat(Names(away),
                      gone ? ", whose agent is gone since " : ", whose agent says nothing since ",
                      FormatTime(*since));
}

}  // namespace siding
