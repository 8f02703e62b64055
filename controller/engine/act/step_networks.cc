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
  if (known == gathering_.end() && !NetworkJoins::AwaitsOthers(report)) return;
  Gathering& gathering = known == gathering_.end() ? gathering_[step] : known->second;
  if (gathering.where.empty()) gathering.since = clock_.Now();
  gathering.ranks = report.spec().nodes();
  gathering.where[number].insert(node);
  changed_.insert(step);
}

// By the queue, where there is one: an agent could name a job of others, and what it names as an endpoint
// hears all that is sent to that rank.
std::optional<std::set<NodeId>> StepNetworks::NodesOf(JobId job) const {
  const ManagedJob* const queued = manager_.QueuedAs(job);
  if (queued == nullptr && platform_.manager().empty()) return std::nullopt;
  if (queued == nullptr || queued->phase != ManagedPhase::kRunning) return std::set<NodeId>();
  return std::set<NodeId>(queued->nodes.begin(), queued->nodes.end());
}

StepNetworks::Come StepNetworks::WhoHasCome(const Step& step, Gathering& gathering) const {
  Come come;
  const auto nodes = NodesOf(step.job);
  for (const auto& [number, said_by] : gathering.where) {
    const TaskId task{step.job, step.incarnation, step.first_rank + number};
    bool is_there = false;
    for (const NodeId& node : said_by) {
      const ObservedTask* const seen = cluster_.TaskOn(node, task);
      if (seen == nullptr || (nodes && !nodes->contains(node))) continue;
      is_there = true;
      const v1::TaskReport& report = seen->report;
      if (HasRun(report)) gathering.ended.insert(number);
      if (HasFailed(report) && gathering.refused.empty())
        gathering.refused = absl::StrCat("rank ", number, " on ", node.value(), ": ",
                                         report.not_joined().empty() ? report.error() : report.not_joined());
      if (!HasRun(report) && !HasFailed(report))
        come.ranks.push_back({number, node, task, report.op(), &report});
    }
    come.count += is_there || gathering.ended.contains(number);
  }
  return come;
}

// Each node chooses the image for its own rank, at a moment of its own. One that has been joined met all of
// them.
std::string StepNetworks::WhyApart(const std::vector<NetworkRank>& ranks) {
  const NetworkRank* first = nullptr;
  for (const NetworkRank& rank : ranks) {
    if (rank.report->joined() || !NetworkJoins::AwaitsOthers(*rank.report)) continue;
    if (first == nullptr) first = &rank;
    const std::string &one = first->report->checkpoint(), &its = rank.report->checkpoint();
    if (its != one)
      return absl::StrCat("rank ", first->number, " goes on from ", NameOf(one), ", rank ", rank.number,
                          " from ", NameOf(its));
  }
  return "";
}

bool StepNetworks::ActOn(const Step& step, Gathering& gathering) {
  const bool in_time = clock_.Now() < gathering.since + kPatience;
  // The last of thousands is looked for only when so many have been named.
  if (in_time && std::ssize(gathering.where) < gathering.ranks) return false;
  const Come come = WhoHasCome(step, gathering);
  const auto waits = [](const NetworkRank& rank) { return NetworkJoins::AwaitsOthers(*rank.report); };
  if (std::none_of(come.ranks.begin(), come.ranks.end(), waits))
    return come.count >= gathering.ranks || !in_time;
  if (gathering.refused.empty()) gathering.refused = WhyApart(come.ranks);
  if (gathering.refused.empty() && come.count < gathering.ranks && !in_time)
    gathering.refused = absl::StrCat("only ", come.count, " of ", gathering.ranks, " tasks have come");
  if (!gathering.refused.empty()) {
    joins_.Refuse(come.ranks, gathering.refused);
  } else if (come.count >= gathering.ranks) {
    joins_.Join(come.ranks);
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
