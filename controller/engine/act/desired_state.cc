#include "controller/engine/act/desired_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// Beyond the time at which it should have started. The job itself may run longer than its nodes are kept.
constexpr Duration kKeptBeyond = std::chrono::minutes(10);

// Why nothing is kept for a deadline job.
constexpr char kWaitsItsTurn[] = "waits its turn, no job makes way: ";
constexpr char kHasNoNodesYet[] = "is to start as soon as can be: ";

// `nodes`: where it is to start; empty: anywhere. `alone`: it can nowhere else. "": nothing is to be said.
std::string WhyLikeThis(const JobRecord& job, const std::vector<NodeId>& nodes, bool alone) {
  std::vector<std::string> why;
  if (job.displaced_by != JobId())
    why.push_back(absl::StrCat("makes way for job ", job.displaced_by.value()));
  const auto name = [](std::string* out, const NodeId& node) { absl::StrAppend(out, node.value()); };
  if (!nodes.empty())
    why.push_back(absl::StrCat("continues on ", absl::StrJoin(nodes, ",", name),
                               alone ? ", where alone its image is" : ""));
  if (why.empty() && job.in_ram) return "stays frozen until it is resumed";
  return absl::StrJoin(why, "; ");
}

bool IsFrozen(const JobRecord& job) {
  return job.in_ram || job.state == JobState::kSuspending || job.state == JobState::kResuming;
}

}  // namespace

DesiredState DesiredStateBuilder::Build() const {
  DesiredState desired;
  for (const auto& [id, unfinished] : state_.unfinished) {
    const JobRecord& job = *unfinished;
    if (OwnershipOf(job.spec).siding_starts) continue;
    if (IsKnownFromQueueOnly(job)) {
      AddRequest(job, desired);
      continue;
    }
    if (platform_.continues_jobs()) desired.next[id] = NextOf(job);
    DesiredState::Job wanted;
    wanted.suspended = job.in_ram;  // by siding or by an operator
    bool alone = false;
    if (job.state == JobState::kParked) {
      wanted.nodes = cluster_.TargetOf(job);
      if (ResumptionOf(state_, job) == Resumption::kCheckpoint) {
        const CheckpointRecord& newest = state_.checkpoints.at(job.checkpoints.back());
        alone = newest.tier == Tier::kLocal;
        if (alone) wanted.nodes = newest.nodes;
      }
    }
    wanted.why = WhyLikeThis(job, wanted.nodes, alone);
    // What is made in the place of what ended has no siblings that it queues with.
    wanted.before_siblings = !HoldsNodes(job.state) && !platform_.continues_jobs();
    const bool anything =
        wanted.suspended || wanted.before_siblings || !wanted.nodes.empty() || job.displaced_by != JobId();
    if (anything) desired.jobs[id] = std::move(wanted);
  }
  // Nodes with a frozen job are kept until it continues: to the manager their slots look free.
  for (const auto& [id, job] : state_.unfinished) {
    if (OwnershipOf(job->spec).siding_starts || !IsFrozen(*job) || desired.kept.contains(job->displaced_by))
      continue;
    const auto request = state_.jobs.find(job->displaced_by);
    if (request == state_.jobs.end() || !request->second.ended) continue;
    desired.kept[job->displaced_by] = {request->second.last_nodes, request->second.spec.user,
                                       *request->second.ended + kKeptBeyond};
  }
  AddRefusals(desired);
  return desired;
}

// Of jobs that wait in the manager's queue all the same: their users are told there.
void DesiredStateBuilder::AddRefusals(DesiredState& desired) const {
  for (const auto& [id, queued] : state_.queue.jobs) {
    if (queued.spec.kind != JobKind::kOnDemand || queued.phase != ManagedPhase::kWaiting ||
        !OwnershipOf(queued.spec).queue_starts_requests)
      continue;
    const auto found = state_.jobs.find(id);
    if (found == state_.jobs.end()) continue;
    const JobRecord& job = found->second;
    const bool refused = job.state == JobState::kFailed && !job.first_started && !job.plans.empty();
    if (refused) desired.jobs[id].why = absl::StrCat(kWaitsItsTurn, job.plans.back().refusal);
  }
}

DesiredState::Next DesiredStateBuilder::NextOf(const JobRecord& job) const {
  using How = DesiredState::Next::How;
  DesiredState::Next next{.labels = job.spec.labels, .starts = job.incarnation};
  // Its image may be about to count, and what is left of it may live.
  if (HoldsNodes(job.state) || cluster_.HasLeftTasks(job)) return next;
  const CheckpointRecord* image = job.state == JobState::kPending ? nullptr : NewestImage(state_, job);
  // Without one its manager starts it from its beginning, whether siding is there or not.
  next.how = image == nullptr ? How::kBeginning : How::kImage;
  if (image != nullptr) {
    next.checkpoint = image->id;
    next.tier = image->tier;
    next.incarnation = image->incarnation;
    next.digest = image->DigestOf(0);
  }
  return next;
}

void DesiredStateBuilder::AddRequest(const JobRecord& request, DesiredState& desired) const {
  if (request.plans.empty()) return;
  const auto tell = [&](const char* what) {
    // A pod's user is told elsewhere (controller/manager/outlook.h).
    if (OwnershipOf(request.spec).queue_starts_requests)
      desired.jobs[request.id].why = absl::StrCat(what, request.plans.back().refusal);
  };
  if (IsQueued(request)) return tell(kWaitsItsTurn);
  const Plan* const kept = KeptPlanOf(request);
  const Plan& plan = kept == nullptr ? request.plans.back() : *kept;
  const std::vector<NodeId>& nodes = HoldsNodes(request.state) ? request.nodes : plan.nodes;
  if (nodes.empty()) return tell(kHasNoNodesYet);
  if (request.spec.not_before > clock_.Now()) return;
  desired.kept[request.id] = {nodes, request.spec.user,
                              std::max(request.spec.start_by, plan.predicted_start) + kKeptBeyond};
  std::string why = absl::StrCat("is to start by ", FormatTime(request.spec.start_by));
  if (!plan.refusal.empty()) absl::StrAppend(&why, "; ", plan.refusal);
  DesiredState::Job& wanted = desired.jobs[request.id];
  wanted.why = std::move(why);
  // Its reservation does not keep it from starting elsewhere.
  if (!HoldsNodes(request.state)) wanted.nodes = nodes;
}

}  // namespace siding
