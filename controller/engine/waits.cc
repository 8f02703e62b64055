// Why a job does not start, or does not do what it was told: for users, who see it beside the job's state.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/engine/impl.h"
#include "controller/wire/spec_limits.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

constexpr size_t kMostNamed = 4;  // of nodes, in one line

// A node that was never heard of may be one whose agent has only not dialled yet.
constexpr Duration kAgentsDial = std::chrono::seconds(10);

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

std::string Words(const Resources& r) {
  std::string text = absl::StrCat(r.slots, r.slots == 1 ? " slot" : " slots");
  if (r.memory > Bytes{0}) absl::StrAppend(&text, ", ", FormatBytes(r.memory));
  if (r.gpus > 0) absl::StrAppend(&text, ", ", r.gpus, r.gpus == 1 ? " GPU" : " GPUs");
  return text;
}

std::string Needs(const JobSpec& spec) {
  return absl::StrCat(spec.nodes, spec.nodes == 1 ? " node" : " nodes", " with ", Words(spec.per_node));
}

}  // namespace

// ---- What can never run. ----

// The journal names nodes that this controller has not heard: what they have is not known.
bool Engine::Impl::MayHaveUnknownNodes() const {
  if (state_.observed_nodes.empty() || clock_.Now() < std::max(agents_back_at_, started_ + kAgentsDial))
    return true;
  const auto unknown = [&](const NodeId& node) {
    return !state_.observed_nodes.contains(node) && !IsLost(node);
  };
  const auto some_unknown = [&](const std::vector<NodeId>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), unknown);
  };
  return std::any_of(state_.nodes.begin(), state_.nodes.end(),
                     [&](const auto& node) { return unknown(node.first); }) ||
         std::any_of(state_.jobs.begin(), state_.jobs.end(), [&](const auto& job) {
           return some_unknown(job.second.nodes) || some_unknown(job.second.last_nodes);
         });
}

// On all nodes that are known, were they empty and there. Requests are refused by their plans.
absl::Status Engine::Impl::CheckEverFits(const JobSpec& spec) const {
  if (spec.kind == JobKind::kOnDemand) return absl::OkStatus();
  const Resources& need = spec.per_node;
  Resources most{0, Bytes{0}, 0};
  int fitting = 0;
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (IsLost(node)) continue;
    const Resources has = CapacityOf(node, observed);
    most = {std::max(most.slots, has.slots), std::max(most.memory, has.memory),
            std::max(most.gpus, has.gpus)};
    fitting += has.Covers(need);
  }
  if (fitting >= spec.nodes || MayHaveUnknownNodes()) return absl::OkStatus();
  const auto at_most = [](const char* field, const auto& has, const auto& wants) {
    return BadField(field, absl::StrCat("at most ", has, ", what a node of this cluster has, got ", wants));
  };
  if (need.slots > most.slots) return at_most("slots", most.slots, need.slots);
  if (need.gpus > most.gpus) return at_most("gpus", most.gpus, need.gpus);
  if (need.memory > most.memory) return at_most("memory", FormatBytes(most.memory), FormatBytes(need.memory));
  return BadField("nodes", absl::StrCat("at most ", fitting, ", so many nodes of this cluster have ",
                                        Words(need), ", got ", spec.nodes));
}

// ---- What cannot run yet. ----

// For a reason of its own, whatever is free.
std::string Engine::Impl::WhyNotYet(const JobRecord& job) const {
  if (NeedsAWord(job))
    return absl::StrCat("waits for somebody to say how it is to go on (sidingctl restart ", job.id.value(),
                        ")");
  if (const auto pause = not_before_.find(job.id); pause != not_before_.end() && clock_.Now() < pause->second)
    return absl::StrCat("is tried again at ", FormatTime(pause->second));
  if (WaitsForItsRound(job) || (NotOn(job) != nullptr && !TiedTo(job).empty()))
    return absl::StrCat("is tried again at ", FormatTime(retries_.at(job.id).at));
  if (HasLeftTasks(job)) {
    std::vector<NodeId> nodes = job.left_on;
    for (const auto& [node, jobs] : state_.given_up) {
      if (jobs.contains(job.id)) nodes.push_back(node);
    }
    return absl::StrCat("waits for ", Names(nodes), ", where tasks of its last start may still run");
  }
  return "";
}

// What PlaceWaiting() has found.
std::string Engine::Impl::WhyInQueue(const JobRecord& job) const {
  const JobSpec& spec = job.spec;
  if (const std::vector<NodeId> tied = TiedTo(job); !tied.empty()) {
    const bool moves = !TargetOf(job).empty();
    return absl::StrCat("waits for ", Names(tied),
                        moves ? ", where it is to be moved to" : ", where its image lies");
  }
  int usable = 0;
  for (const auto& [node, account] : Accounts()) usable += account.capacity.Covers(spec.per_node);
  if (usable < spec.nodes) {
    std::vector<NodeId> away;
    for (const auto& [node, observed] : state_.observed_nodes) {
      if (!IsLost(node) && !Usable(node) && CapacityOf(node, observed).Covers(spec.per_node))
        away.push_back(node);
    }
    return absl::StrCat("waits for ", Needs(spec), "; ", usable, usable == 1 ? " has" : " have", " that",
                        away.empty() ? ""
                                     : absl::StrCat(", ", Names(away), away.size() == 1 ? " is" : " are",
                                                    " away or cordoned"));
  }
  if (const int kept = policy_.headroom_nodes; !IsRequest(job) && usable - kept < spec.nodes) {
    return absl::StrCat("waits for ", Needs(spec), "; of ", usable, " the site's policy keeps ", kept,
                        " free of batch jobs (headroom_nodes)");
  }
  if (queue_head_ != job.id && state_.index.waiting().contains(queue_head_)) {
    const JobRecord& head = *state_.index.waiting().at(queue_head_);
    const bool higher = IsRequest(head) || head.spec.priority > spec.priority;
    return absl::StrCat("waits behind job ", queue_head_.value(),
                        higher ? ", which has a higher priority" : ", which was there before");
  }
  int free = 0;
  for (const auto& [node, room] : Room({})) free += room.Covers(spec.per_node);
  return absl::StrCat("waits for ", Needs(spec), "; ", free, free == 1 ? " is" : " are", " free");
}

// What it was promised comes first, if that does not hold any more.
std::string Engine::Impl::WhyRequestWaits(const JobRecord& job) const {
  const Time now = clock_.Now(), start_by = job.spec.start_by;
  if (!WaitsForItsNodes(job)) return WhyInQueue(job);
  const Plan& plan = job.plans.back();
  std::string text;
  if (now > start_by) {
    text = absl::StrCat("has missed its deadline of ", FormatTime(start_by), ": ");
  } else if (!plan.queued && (!plan.feasible || plan.predicted_start > start_by)) {
    text = absl::StrCat("cannot meet its deadline of ", FormatTime(start_by), ": ");
  } else if (job.spec.not_before > now) {
    text = absl::StrCat("was announced for ", FormatTime(job.spec.not_before), ": ");
  }
  if (plan.queued) return text + WhyInQueue(job);
  if (!plan.nodes.empty()) {
    const bool late = !text.empty() && !plan.refusal.empty();
    return absl::StrCat(text, "waits for ", Names(plan.nodes), late ? "; " + plan.refusal : "");
  }
  return text + (plan.refusal.empty() ? "is about to be planned" : plan.refusal);
}

// ---- What does not come to its end. ----

std::string Engine::Impl::WhoIsAway(const JobRecord& job) const {
  std::vector<NodeId> away;
  std::optional<Time> since;
  bool gone = false;
  for (int rank : LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    const auto observed = state_.observed_nodes.find(node);
    if (IsLost(node) || IsHeard(node)) continue;
    away.push_back(node);
    gone |= !IsConnected(node);
    Time when = started_;
    if (observed != state_.observed_nodes.end())
      when = observed->second.silent ? observed->second.last_beat : observed->second.gone_since;
    since = std::min(since.value_or(when), when);
  }
  if (away.empty()) return "";
  return absl::StrCat(Names(away),
                      gone ? ", whose agent is gone since " : ", whose agent says nothing since ",
                      FormatTime(*since));
}

std::string Engine::Impl::WhyHangs(const JobRecord& job) const {
  if (IsSeenInQueueOnly(job)) return "";
  if (const std::string away = WhoIsAway(job); !away.empty()) return "waits for " + away;
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

std::string Engine::Impl::WhyWaits(const JobRecord& job) const {
  if (IsTerminal(job.state)) return "";
  if (HoldsNodes(job.state)) return WhyHangs(job);
  if (IsHosted(job)) return absl::StrCat("waits in the queue of ", job.spec.cluster_manager);
  if (std::string why = WhyNotYet(job); !why.empty()) return why;
  return IsRequest(job) ? WhyRequestWaits(job) : WhyInQueue(job);
}

}  // namespace siding
