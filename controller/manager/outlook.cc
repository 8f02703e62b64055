#include "controller/manager/outlook.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "controller/platform/kubernetes/watch/job_table.h"
#include "model/event.h"

namespace siding {
namespace {

// Nothing: it is not to be seen.
std::optional<kubernetes::CheckpointPhase> PhaseOf(CheckpointState state) {
  switch (state) {
    case CheckpointState::kBeingMade:
      return kubernetes::CheckpointPhase::kMaking;
    case CheckpointState::kGood:
      return kubernetes::CheckpointPhase::kDurable;
    case CheckpointState::kDamaged:
    case CheckpointState::kRefused:
      return kubernetes::CheckpointPhase::kDamaged;
    case CheckpointState::kDeleted:
      return kubernetes::CheckpointPhase::kDeleting;
    case CheckpointState::kFailed:
    case CheckpointState::kGone:
      break;
  }
  return std::nullopt;
}

// "Job/train" -> {"Job", "train"}.
std::pair<std::string, std::string> SplitAtSlash(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

std::string LabelOf(const JobRecord& job, const char* name) {
  const auto label = job.spec.labels.find(name);
  return label == job.spec.labels.end() ? "" : label->second;
}

}  // namespace

std::optional<kubernetes::Outlook> OutlookOf(const JobRecord& job) {
  if (job.spec.kind != JobKind::kOnDemand || job.plans.empty()) return std::nullopt;
  const Plan& plan = job.plans.back();
  kubernetes::Outlook outlook;
  outlook.refused = job.state == JobState::kFailed && !plan.feasible && !job.first_started;
  if (outlook.refused) {
    outlook.text = plan.refusal;
    outlook.earliest = plan.earliest;
    return outlook;
  }
  outlook.planned = plan.feasible && !plan.queued;
  outlook.text = Describe({.body = RequestPlanned{plan}});  // as its event says it
  if (plan.predicted_start != Time{}) outlook.predicted = plan.predicted_start;
  return outlook;
}

std::vector<kubernetes::CheckpointView> CheckpointsOf(const DurableState& state) {
  std::vector<kubernetes::CheckpointView> views;
  for (const auto& [id, checkpoint] : state.checkpoints) {
    const auto phase = PhaseOf(checkpoint.state);
    const auto found = state.jobs.find(checkpoint.job);
    if (!phase || found == state.jobs.end()) continue;
    const JobRecord& job = found->second;
    if (job.spec.cluster_manager != kKubernetes) continue;
    const auto [space, pod] = SplitAtSlash(LabelOf(job, kubernetes::kPodLabel));
    if (space.empty() || pod.empty()) continue;
    const auto [kind, owner] = SplitAtSlash(LabelOf(job, kubernetes::kOwnerLabel));
    kubernetes::CheckpointView view;
    view.id = id;
    view.job = checkpoint.job;
    view.job_ended = job.ended.has_value();
    view.pod = {space, pod};
    view.owner = {kind, owner, LabelOf(job, kubernetes::kOwnerUidLabel)};
    view.phase = *phase;
    view.bytes = checkpoint.bytes;
    view.tier = checkpoint.tier;
    view.nodes = checkpoint.nodes;
    view.made = checkpoint.created;
    view.note = checkpoint.note;
    views.push_back(std::move(view));
  }
  return views;
}

std::optional<Preemption> PreemptionIn(const Event& event, const DurableState& state) {
  const auto* moved = std::get_if<JobMoved>(&event.body);
  if (moved == nullptr || moved->request == JobId() || moved->keep_running) return std::nullopt;
  const bool makes_way = moved->event == JobEvent::kOrderDump || moved->event == JobEvent::kOrderSuspend ||
                         moved->event == JobEvent::kOrderSave || moved->event == JobEvent::kOrderKill;
  const auto request = state.jobs.find(moved->request);
  if (!makes_way || request == state.jobs.end()) return std::nullopt;
  Preemption preemption{moved->request, request->second.spec.start_by};
  // Not always the last one's: it may have been planned again since.
  const std::vector<Plan>& plans = request->second.plans;
  for (auto plan = plans.rbegin(); plan != plans.rend(); ++plan) {
    for (const PlanStep& step : plan->steps) {
      if (step.job != event.job || step.early) continue;
      preemption.lost_node_seconds = step.loss_node_seconds;
      return preemption;
    }
  }
  return preemption;
}

bool IsWarning(const Event& event) {
  const auto* planned = std::get_if<RequestPlanned>(&event.body);
  return (planned != nullptr && !planned->plan.feasible) ||
         std::holds_alternative<RequestRefused>(event.body) || std::holds_alternative<MethodLost>(event.body);
}

std::string Describe(const Preemption& preemption, const std::string& who) {
  return absl::StrFormat("preempted by %s for deadline %s: %.1f node-seconds lost", who,
                         FormatTime(preemption.deadline), preemption.lost_node_seconds);
}

}  // namespace siding
