#include "controller/engine/observe/node_faults.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// Events of one node are this far apart at least: one that comes and goes does not fill the journal.
constexpr Duration kTellAgain = std::chrono::minutes(1);

}  // namespace

void NodeFaults::OnHello(const NodeId& node, ObservedNode& observed, const v1::Hello& hello) {
  if (hello.agent() != observed.hello.agent()) observed.starts = {};
  OnWord(node, observed, hello.problem());
}

void NodeFaults::OnWord(const NodeId& node, ObservedNode& observed, const std::string& problem) {
  observed.problem = Cut(problem);
  Settle(node, observed);
}

// A cluster manager chooses nodes for its jobs itself. Where there is no GPU for a job, others may start.
void NodeFaults::OnFailedStart(const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_starts) return;
  for (int rank : cluster_.LiveRanks(job)) {
    const TaskSeen seen = cluster_.Seen(job, rank);
    if (seen.phase() != v1::LAUNCH_FAILED || !seen.report.node_problem() || seen.report.no_gpu()) continue;
    const NodeId& node = job.nodes[rank];
    ObservedNode& observed = observed_.observed_nodes[node];
    StartFaults& starts = observed.starts;
    if (starts.out) continue;  // it was on its way before
    if (starts.last != job.id) ++starts.count;
    starts.last = job.id;
    starts.out = true;
    starts.until = clock_.Now() + PauseAfter(starts.count, kFirstPause, kLongestPause);
    spdlog::warn("job {} could not be started on node {}: {}", job.id.value(), node.value(),
                 seen.report.error());
    Settle(node, observed);
  }
}

void NodeFaults::OnStarted(const JobRecord& job) {
  for (int rank : cluster_.LiveRanks(job)) {
    const NodeId& node = job.nodes[rank];
    const auto observed = observed_.observed_nodes.find(node);
    // In a pause it says nothing new: it was begun before the start that failed.
    if (observed == observed_.observed_nodes.end() || observed->second.starts.out) continue;
    if (observed->second.starts.count == 0) continue;
    observed->second.starts = {};
    accounts_.Touch(node);
    agenda_.schedule = true;
  }
}

void NodeFaults::EndPauses() {
  for (auto& [node, observed] : observed_.observed_nodes) {
    if (!observed.starts.out || clock_.Now() < observed.starts.until) continue;
    observed.starts.out = false;
    Settle(node, observed);
  }
}

// The reason is not part of the records: a new controller hears or sees it again.
void NodeFaults::Settle(const NodeId& node, ObservedNode& observed) {
  const std::string why = WhyFaulty(observed);
  if (observed.faulty != !why.empty()) {
    observed.faulty = !why.empty();
    accounts_.Touch(node);
    agenda_.schedule = true;
  }
  observed.faulty ? Tell(node, observed, why) : TellItIsOver(node, observed);
}

// What the agent says is told beside what starts have said: it is the cause, as a rule.
void NodeFaults::Tell(const NodeId& node, ObservedNode& observed, const std::string& why) {
  FaultTold& told = observed.told;
  const bool by_agent = !observed.problem.empty();
  const bool is_told = told.stands && (told.by_agent || !by_agent);
  if (is_told || (clock_.Now() - told.at < kTellAgain && (told.by_agent || !by_agent))) return;
  told = {true, by_agent, clock_.Now()};
  recorder_.Record(JobId(), Noted{absl::StrCat("node ", node.value(), " gets no jobs: ", why)});
}

void NodeFaults::TellItIsOver(const NodeId& node, ObservedNode& observed) {
  if (!std::exchange(observed.told.stands, false)) return;
  recorder_.Record(JobId(), Noted{absl::StrCat("node ", node.value(), " gets jobs again")});
}

}  // namespace siding
