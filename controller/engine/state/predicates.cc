#include "controller/engine/state/predicates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "common/utf8.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

constexpr size_t kLongestText = 1000;
// Of a cluster manager's task: agents fill in a few numbers and a name.
constexpr size_t kMostManagedSpec = 2048;
constexpr int kMostGpusOfATask = 1024;
// A problem of a node may have passed after this time.
constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);
static_assert(kPause * (1 << kPauseDoublings) >= kLongestPause);
constexpr int64_t kOpsPerIncarnation = 1000000;
// Starts of a job that the journal does not know; their tasks may still live.
constexpr int kSkippedIncarnations = 1000;

int64_t OpOfOrder(const JobRecord& job, int order) {
  return job.incarnation * kOpsPerIncarnation + order * kOpsPerOrder;
}

}  // namespace

std::string Cut(const std::string& text) { return ToUtf8(text.substr(0, kLongestText)); }

std::string Words(const Resources& r) {
  std::string text = absl::StrCat(r.slots, r.slots == 1 ? " slot" : " slots");
  if (r.memory > Bytes{0}) absl::StrAppend(&text, ", ", FormatBytes(r.memory));
  if (r.gpus > 0) absl::StrAppend(&text, ", ", r.gpus, r.gpus == 1 ? " GPU" : " GPUs");
  return text;
}

const PlanStep* EarlyStepOf(const Plan& plan, JobId job) {
  const auto it = std::find_if(plan.steps.begin(), plan.steps.end(),
                               [&](const PlanStep& step) { return step.early && step.job == job; });
  return it == plan.steps.end() ? nullptr : &*it;
}

std::vector<JobId> AwaitedToEnd(const Plan& plan) {
  std::vector<JobId> ending = plan.awaited;
  std::erase_if(ending, [&](JobId id) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [&](const PlanStep& step) { return step.job == id; });
  });
  return ending;
}

bool IsStray(const ClusterState& state, const TaskId& id, const v1::TaskReport& report) {
  return IsLive(report.phase()) && !report.has_spec() && !state.jobs.contains(id.job);
}

v1::TaskReport WithShortTexts(v1::TaskReport report) {
  report.set_error(Cut(report.error()));
  report.set_cannot_checkpoint(Cut(report.cannot_checkpoint()));
  report.set_cannot_drain(Cut(report.cannot_drain()));
  report.set_gpu_state_lost(Cut(report.gpu_state_lost()));
  report.set_timer(Cut(report.timer()));
  report.set_not_joined(Cut(report.not_joined()));
  if (report.has_endpoint()) report.mutable_endpoint()->set_address(Cut(report.endpoint().address()));
  report.set_checkpoint(Cut(report.checkpoint()));
  if (report.notes_size() > kMostNotes)
    report.mutable_notes()->DeleteSubrange(kMostNotes, report.notes_size() - kMostNotes);
  for (std::string& note : *report.mutable_notes()) note = Cut(note);
  if (report.gpus_size() > kMostGpusOfATask)
    report.mutable_gpus()->DeleteSubrange(kMostGpusOfATask, report.gpus_size() - kMostGpusOfATask);
  for (std::string& gpu : *report.mutable_gpus()) gpu = Cut(gpu);
  // Not one that an agent has made: nothing is followed by it.
  if (report.spec().ByteSizeLong() > kMostManagedSpec) report.clear_spec();
  report.DiscardUnknownFields();
  return report;
}

bool IsExternallyManaged(const JobRecord& job) { return !job.spec.cluster_manager.empty(); }

bool IsKnownFromQueueOnly(const JobRecord& job) {
  return IsExternallyManaged(job) && job.spec.kind == JobKind::kOnDemand;
}

bool KeepsItsNodes(const JobRecord& job) { return job.in_ram && !OwnershipOf(job.spec).frozen_gives_way; }

bool IsSavedRunning(const JobRecord& job) {
  return (job.state == JobState::kDumping || job.state == JobState::kCommitting ||
          job.state == JobState::kSaving) &&
         job.current.keep_running;
}

bool OnlySaves(const Event& event) {
  if (const auto* const changed = std::get_if<CheckpointChanged>(&event.body))
    return changed->state == CheckpointState::kDeleted || changed->state == CheckpointState::kGone;
  if (std::holds_alternative<CopiesChanged>(event.body)) return true;
  const auto* const move = std::get_if<JobMoved>(&event.body);
  if (move == nullptr) return false;
  const bool is_order = move->event == JobEvent::kOrderDump || move->event == JobEvent::kOrderSave;
  return (is_order && move->keep_running) || move->event == JobEvent::kCommit ||
         move->event == JobEvent::kContinued;
}

bool IsSavedByHand(const JobRecord& job) {
  const bool as_it_was_recorded_once = job.current.reason == kAskedFor;  // without by whom
  return IsSavedRunning(job) && (!job.current.by.empty() || as_it_was_recorded_once);
}

bool IsRestoringFrom(const JobRecord& job, const CheckpointId& image) {
  if (job.beginning)
    return job.beginning->state == JobState::kRestoring && job.beginning->place.checkpoint == image;
  return job.state == JobState::kRestoring && job.current.checkpoint == image;
}

bool IsReleasing(const JobRecord& job) {
  const bool gives_way = OwnershipOf(job.spec).frozen_gives_way;
  const bool ordered = (job.state == JobState::kSuspending && gives_way) || job.state == JobState::kDumping ||
                       job.state == JobState::kCommitting || job.state == JobState::kSaving ||
                       job.state == JobState::kKilling;
  // Most frozen jobs have released what they are going to release before the image is written.
  return ordered && !job.current.keep_running && (!job.in_ram || !gives_way);
}

const Plan* KeptPlanOf(const JobRecord& request) {
  if (IsQueued(request)) return nullptr;
  // Where nothing is planned at the moment (agents may be away), what was planned before stays kept.
  const auto last = std::find_if(request.plans.rbegin(), request.plans.rend(),
                                 [](const Plan& plan) { return !plan.nodes.empty(); });
  return last == request.plans.rend() ? nullptr : &*last;
}

bool HasBegun(const JobRecord& job) { return job.running_since != Time{}; }

JobEvent GoesOnBy(const JobRecord& job) {
  if (!job.beginning) return JobEvent::kThawed;
  return job.beginning->state == JobState::kStarting ? JobEvent::kStartGoesOn : JobEvent::kRestoreGoesOn;
}

bool IsArriving(JobState state) { return IsBeginning(state) || state == JobState::kResuming; }

bool WaitsForItsNodes(const JobRecord& job) {
  return IsRequest(job) && job.state == JobState::kPending && !job.plans.empty();
}

bool StartsOverLate(const JobRecord& job) { return job.begun > job.spec.start_by; }

bool IsQueued(const JobRecord& job) { return WaitsForItsNodes(job) && job.plans.back().queued; }

bool RequestStillWants(const DurableState& state, JobId request) {
  auto it = state.jobs.find(request);
  return it != state.jobs.end() && !IsTerminal(it->second.state);
}

bool IsDumpedFrozen(const JobRecord& job) {
  const bool freezes = job.state == JobState::kSuspending || job.state == JobState::kSuspended;
  return freezes && job.current.through_ram && !job.lost_methods.contains(Method::kCheckpoint);
}

bool Can(const JobRecord& job, Method method) {
  const bool leaves_gpus = method == Method::kSuspend || method == Method::kCheckpoint;
  if (leaves_gpus && job.gpu_states_lost > 0) return false;
  return job.spec.methods.Has(method) && !job.lost_methods.contains(method);
}

bool CanThawIn(const Resources& room, const JobRecord& job) {
  return room.slots >= job.spec.per_node.slots && room.gpus >= job.spec.per_node.gpus;
}

bool CouldFit(const Waiting& job, const std::map<NodeId, Resources>& capacities) {
  if (!job.only_on.empty()) {
    return std::all_of(job.only_on.begin(), job.only_on.end(), [&](const NodeId& id) {
      const auto node = capacities.find(id);
      return node != capacities.end() && node->second.Covers(job.per_node);
    });
  }
  // Ends at the first that are enough: with a long queue this is asked for thousands of jobs in a row.
  int missing = job.nodes;
  for (auto it = capacities.begin(); missing > 0 && it != capacities.end(); ++it)
    missing -= it->second.Covers(job.per_node) && !job.not_on.contains(it->first);
  return missing <= 0;
}

bool MayAct(const Caller& caller, const JobRecord& job) {
  return caller.is_operator || caller.uid == job.spec.uid;
}

std::string On(const JobRecord& job, int rank) {
  return absl::StrCat("rank ", rank, " on ", job.nodes[rank].value());
}

JobMoved Moved(JobEvent event, std::string reason) {
  JobMoved move;
  move.event = event;
  move.reason = std::move(reason);
  return move;
}

Duration PauseAfter(int failures) { return PauseAfter(failures, kPause, kLongestPause); }

Duration PauseAfter(int failures, Duration first, Duration longest) {
  Duration pause = first;
  for (; failures > 1 && pause < longest; --failures) pause *= 2;
  return std::min(pause, longest);
}

int64_t OpOf(const JobRecord& job) { return OpOfOrder(job, job.order); }

bool IsOfOrder(const JobRecord& job, int64_t op) {
  const int64_t recorded = OpOfOrder(job, job.ordered_as);
  return op >= OpOf(job) || (op >= recorded && op < recorded + kOpsPerOrder);
}

bool DumpsTogether(const JobRecord& job) {
  return job.current.event == JobEvent::kOrderDump && job.current.keep_running && job.nodes.size() > 1 &&
         job.spec.per_node.gpus == 0;
}

bool IsAfterItsStart(const JobRecord& job, int64_t op) { return op >= OpOfOrder(job, 1); }

bool HasCommitted(const JobRecord& job, const v1::TaskReport& task) {
  const int64_t committed = task.committed_op();
  const auto is_later = [&](int64_t op) { return op > committed && IsOfOrder(job, op); };
  return IsOfOrder(job, committed) && !is_later(task.op()) && !is_later(task.failed_op());
}

bool IsToBeDumpedAgain(const JobRecord& job, const v1::TaskReport& task) {
  const bool whole = task.phase() == v1::RUNNING || task.phase() == v1::SUSPENDED;
  return whole && !(job.current.keep_running && HasCommitted(job, task));
}

bool CannotThaw(const JobRecord& job, const v1::TaskReport& task) {
  return job.state == JobState::kResuming && job.current.event == JobEvent::kOrderResume &&
         task.phase() == v1::SUSPENDED && task.failed_op() - OpOf(job) + 1 >= kFreezeAttempts;
}

int NextIncarnation(const JobRecord& job) {
  return job.incarnation + 1 + (job.from_copy ? kSkippedIncarnations : 0);
}

CheckpointId CheckpointOf(const JobRecord& job, int number) {
  // Their agents look for the images of a cluster manager's jobs under its name: it has numbers of its own.
  const std::string prefix = IsExternallyManaged(job) ? job.spec.cluster_manager + "-" : "";
  return CheckpointId(absl::StrCat(prefix, job.id.value(), ".", number));
}

Duration NoticeOf(const JobRecord& job) {
  return job.state == JobState::kRunning ? job.spec.notice : Duration(0);
}

bool MayStartOver(const JobRecord& job) {
  return !OwnershipOf(job.spec).siding_ends || !job.first_started || job.spec.methods.Has(Method::kKill);
}

bool MayStartOverAfterLoss(const JobRecord& job) {
  if (!OwnershipOf(job.spec).siding_ends || !job.first_started) return true;
  switch (job.spec.on_node_failure) {
    case OnNodeFailure::kRequeue:
      return true;
    case OnNodeFailure::kPark:
      return false;
    case OnNodeFailure::kUnsaid:
      return job.spec.kind == JobKind::kOnDemand || job.spec.methods.Has(Method::kKill);
  }
  return false;
}

bool MayBeRestarted(const JobRecord& job) {
  return job.spec.methods.Has(Method::kKill) || MayStartOverAfterLoss(job);
}

bool MayBeHeld(const JobRecord& job) {
  if (!HoldsNodes(job.state) || job.state == JobState::kSuspended) return true;
  return (IsReleasing(job) || job.in_ram) && !job.current.for_good;
}

std::string WhoHolds(const JobRecord& job) {
  if (!job.held) return "";
  return job.held->by_operator ? absl::StrCat("is held by an operator, ", job.held->by)
                               : "is held by its user";
}

std::string HowToStartOver(const JobRecord& job) {
  return absl::StrCat(
      "; nothing is left to go on from, and it does not start over by itself (--on-node-failure): to start "
      "it from the beginning, say sidingctl restart ",
      job.id.value());
}

}  // namespace siding
