#include "controller/engine/act/step_networks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

// Slurm starts the tasks of a step within seconds. From when the first one was heard of here.
constexpr Duration kPatience = std::chrono::minutes(10);

bool IsOfStep(const v1::TaskReport& report) {
  return !report.spec().cluster_manager().empty() && report.spec().keep_connections() &&
         report.task().rank() >= kRanksPerStep;
}

bool AwaitsOthers(const v1::TaskReport& report) {
  return report.phase() == v1::LAUNCHING || report.phase() == v1::RESTORING ||
         (report.phase() == v1::RUNNING && !report.joined());
}

// It has ended, and not because it could not be started or joined.
bool HasRun(const v1::TaskReport& report) {
  return report.phase() == v1::EXITED && report.not_joined().empty();
}

bool HasFailed(const v1::TaskReport& report) {
  return report.phase() == v1::LAUNCH_FAILED || report.phase() == v1::RESTORE_FAILED ||
         report.phase() == v1::LOST || !report.not_joined().empty();
}

std::string NameOf(const std::string& checkpoint) {
  return checkpoint.empty() ? "its beginning" : "checkpoint " + checkpoint;
}

}  // namespace

void StepNetworks::Note(const NodeId& node, const v1::TaskReport& report) {
  if (!IsOfStep(report)) return;
  const TaskId id = IdOf(report);
  const int number = id.rank % kRanksPerStep;
  const Step step{id.job, id.incarnation, id.rank - number};
  const auto known = gathering_.find(step);
  // One that ends before its peers are heard of is in a later heartbeat of its node, too.
  if (known == gathering_.end() && !AwaitsOthers(report)) return;
  Gathering& gathering = known == gathering_.end() ? gathering_[step] : known->second;
  if (gathering.where.empty()) gathering.since = clock_.Now();
  gathering.ranks = report.spec().nodes();
  gathering.where[number].insert(node);
  changed_.insert(step);
}

// By the queue, where there is one: an agent could name a job of others, and what it names as an endpoint
// hears all that is sent to that rank.
std::set<NodeId> StepNetworks::NodesOf(JobId job) const {
  const ManagedJob* const queued = manager_.QueuedAs(job);
  if (queued == nullptr || queued->phase != ManagedPhase::kRunning) return {};
  return {queued->nodes.begin(), queued->nodes.end()};
}

StepNetworks::Come StepNetworks::WhoHasCome(const Step& step, Gathering& gathering) const {
  Come come;
  const bool anywhere = platform_.manager().empty() && manager_.QueuedAs(step.job) == nullptr;
  const std::set<NodeId> nodes = NodesOf(step.job);
  for (const auto& [number, said_by] : gathering.where) {
    const TaskId task{step.job, step.incarnation, step.first_rank + number};
    bool is_there = false;
    for (const NodeId& node : said_by) {
      const ObservedTask* const seen = cluster_.TaskOn(node, task);
      if (seen == nullptr || !(anywhere || nodes.contains(node))) continue;
      is_there = true;
      const v1::TaskReport& report = seen->report;
      if (HasRun(report)) gathering.ended.insert(number);
      if (HasFailed(report) && gathering.refused.empty())
        gathering.refused = absl::StrCat("rank ", number, " on ", node.value(), ": ",
                                         report.not_joined().empty() ? report.error() : report.not_joined());
      if (!HasRun(report) && !HasFailed(report)) come.ranks.push_back({number, node, task, &report});
    }
    come.count += is_there || gathering.ended.contains(number);
  }
  return come;
}

// Each node chooses the image for its own rank, at a moment of its own. One that has been joined met all of
// them.
std::string StepNetworks::WhyApart(const std::vector<Rank>& ranks) {
  const Rank* first = nullptr;
  for (const Rank& rank : ranks) {
    if (rank.report->joined() || !AwaitsOthers(*rank.report)) continue;
    if (first == nullptr) first = &rank;
    const std::string &one = first->report->checkpoint(), &its = rank.report->checkpoint();
    if (its != one)
      return absl::StrCat("rank ", first->number, " goes on from ", NameOf(one), ", rank ", rank.number,
                          " from ", NameOf(its));
  }
  return "";
}

void StepNetworks::Refuse(const std::vector<Rank>& ranks, const std::string& why) {
  for (const Rank& rank : ranks) {
    // One that runs in its network is its peers' and Slurm's to end.
    if (!AwaitsOthers(*rank.report)) continue;
    v1::ToAgent command;
    command.set_op(rank.report->op());
    command.mutable_join_network()->set_refused(why);
    if (cluster_.IsConnected(rank.node)) orders_.Send(rank.node, rank.task, std::move(command));
  }
}

// Each where all are, and then those that have been restored that all know.
void StepNetworks::Join(const std::vector<Rank>& ranks) {
  const auto is_joined = [](const Rank& rank) { return rank.report->joined(); };
  const bool all_joined = std::all_of(ranks.begin(), ranks.end(), is_joined);
  for (const Rank& rank : ranks) {
    const int64_t op = rank.report->op();
    const bool is_told = is_joined(rank)
                             ? !all_joined || rank.report->phase() != v1::RESTORING
                             : orders_.WasSent(rank.node, rank.task, op, v1::ToAgent::kJoinNetwork);
    if (is_told || !cluster_.IsConnected(rank.node)) continue;
    v1::ToAgent command;
    command.set_op(op);
    if (is_joined(rank)) {
      command.mutable_all_joined();
    } else {
      for (const Rank& other : ranks) *command.mutable_join_network()->add_ranks() = other.report->endpoint();
    }
    orders_.Send(rank.node, rank.task, std::move(command));
  }
}

bool StepNetworks::ActOn(const Step& step, Gathering& gathering) {
  const bool in_time = clock_.Now() < gathering.since + kPatience;
  // The last of thousands is looked for only when so many have been named.
  if (in_time && std::ssize(gathering.where) < gathering.ranks) return false;
  const Come come = WhoHasCome(step, gathering);
  const auto waits = [](const Rank& rank) { return AwaitsOthers(*rank.report); };
  if (std::none_of(come.ranks.begin(), come.ranks.end(), waits))
    return come.count >= gathering.ranks || !in_time;
  if (gathering.refused.empty()) gathering.refused = WhyApart(come.ranks);
  if (gathering.refused.empty() && come.count < gathering.ranks && !in_time)
    gathering.refused = absl::StrCat("only ", come.count, " of ", gathering.ranks, " tasks have come");
  // Not while an order is under way with one.
  const auto may_meet = [](const Rank& rank) {
    return rank.report->has_endpoint() && (rank.report->joined() || AwaitsOthers(*rank.report));
  };
  if (!gathering.refused.empty()) {
    Refuse(come.ranks, gathering.refused);
  } else if (come.count >= gathering.ranks && std::all_of(come.ranks.begin(), come.ranks.end(), may_meet)) {
    Join(come.ranks);
  }
  return false;
}

void StepNetworks::Act() {
  for (const Step& step : std::exchange(changed_, {})) {
    const auto found = gathering_.find(step);
    if (found != gathering_.end() && ActOn(step, found->second)) gathering_.erase(found);
  }
}

void StepNetworks::LookAtAll() {
  for (const auto& [step, gathering] : gathering_) changed_.insert(step);
}

}  // namespace siding
