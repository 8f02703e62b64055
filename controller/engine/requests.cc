// Deadline jobs: planned when they are submitted, granted when their nodes are observed free, planned again
// when what was planned no longer holds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"
#include "planner/planner.h"

namespace siding {
namespace {

Rate FromWire(const v1::Rate& rate) {
  return {rate.bytes_per_second(), Duration(rate.overhead_us()), rate.spread()};
}
TierRates FromWire(const v1::TierRates& rates) { return {FromWire(rates.dump()), FromWire(rates.restore())}; }

// On its way off its nodes, or about to be.
bool IsReleasing(JobState state) {
  return state == JobState::kSuspending || state == JobState::kDumping || state == JobState::kCommitting ||
         state == JobState::kSaving || state == JobState::kKilling;
}

// Will be running in a moment, and can be taken off its nodes then.
bool IsArriving(JobState state) {
  return state == JobState::kStarting || state == JobState::kRestoring || state == JobState::kResuming;
}

JobEvent OrderFor(Method method) {
  switch (method) {
    case Method::kSuspend:
      return JobEvent::kOrderSuspend;
    case Method::kCheckpoint:
      return JobEvent::kOrderDump;
    case Method::kApp:
      return JobEvent::kOrderSave;
    case Method::kKill:
      return JobEvent::kOrderKill;
  }
  return JobEvent::kOrderKill;
}

}  // namespace

// A rank's part of the newest image: what to expect of a job that has only just come back and has not been
// measured since.
Bytes Engine::Impl::LastImage(const JobRecord& job) const {
  if (job.checkpoints.empty()) return Bytes{0};
  return Bytes{state_.checkpoints.at(job.checkpoints.back()).bytes.value / job.spec.nodes};
}

Request Engine::Impl::MakeRequest(JobId id, const JobSpec& spec) const {
  return Request{id, spec.nodes, spec.per_node, spec.start_by, spec.not_before, spec.hold};
}

Snapshot Engine::Impl::TakeSnapshot(JobId for_request) const {
  Snapshot snapshot;
  snapshot.now = clock_.Now();
  const std::map<NodeId, Resources> room = Room(for_request);
  double shared_rate = 0;
  std::map<NodeId, Bytes> resident;  // of running jobs
  std::map<NodeId, Bytes> frozen;

  for (const auto& [id, job] : state_.jobs) {
    if (!HoldsNodes(job.state)) continue;
    for (int rank : LiveRanks(job)) {
      const Bytes memory{Seen(job, rank).report.memory()};
      (job.state == JobState::kSuspended ? frozen : resident)[job.nodes[rank]] += memory;
    }
    if (job.state == JobState::kSuspended) continue;
    JobView view;
    view.id = id;
    view.kind = job.spec.kind;
    view.priority = job.spec.priority;
    view.job_class = policy_.ClassOf(job.spec);
    view.per_node = job.spec.per_node;
    view.methods = job.spec.methods;
    for (const auto& [method, why] : job.lost_methods) {
      view.methods.Remove(method);
      absl::StrAppend(&view.methods_note, view.methods_note.empty() ? "" : "; ", ToString(method), ": ", why);
    }
    for (int rank : LiveRanks(job)) {
      const TaskSeen seen = Seen(job, rank);
      view.nodes.push_back(job.nodes[rank]);
      view.memory.push_back(std::max({Bytes{seen.report.memory()}, LastImage(job), Bytes{1}}));
      if (!seen.report.cannot_checkpoint().empty() && view.methods.Has(Method::kCheckpoint)) {
        view.methods.Remove(Method::kCheckpoint);
        absl::StrAppend(&view.methods_note, view.methods_note.empty() ? "" : "; ",
                        "checkpoint: ", seen.report.cannot_checkpoint());
      }
    }
    view.running_since = job.running_since;
    view.durable_at = job.durable_at;
    if (job.spec.app) view.app_grace = job.spec.app->grace;
    view.kill_grace = job.spec.kill_grace;
    view.preemptions = job.preemptions;
    view.max_preemptions = job.spec.max_preemptions;
    view.last_preempted = job.last_preempted;
    if (IsReleasing(job.state) && !job.current.keep_running) {
      view.releasing_at = std::max(job.current.predicted, snapshot.now);
      view.releasing_for = job.displaced_by;
      if (job.current.event == JobEvent::kOrderDump && job.current.tier == Tier::kShared) {
        for (Bytes b : view.memory) snapshot.shared.in_flight += b;
      }
    } else if (job.state != JobState::kRunning && !IsArriving(job.state)) {
      view.methods = {};  // between two states: it can be asked again in a moment
      view.methods_note = absl::StrCat("is ", ToString(job.state));
    }
    snapshot.jobs.push_back(std::move(view));
  }

  for (const auto& [id, observed] : state_.observed_nodes) {
    NodeView node;
    node.id = id;
    node.usable = Usable(id);
    const v1::Resources& capacity = observed.hello.capacity();
    node.capacity = FromProto(capacity);
    if (auto it = room.find(id); it != room.end()) node.free = it->second;
    // A job that is frozen keeps the memory it has, so that counts as available to it.
    node.ram_available =
        std::min(node.capacity.memory - frozen[id], Bytes{observed.heartbeat.ram_available()} + resident[id]);
    node.local_disk_free = Bytes{observed.heartbeat.local_disk_free()};
    node.local = FromWire(observed.heartbeat.local());
    node.shared = FromWire(observed.heartbeat.shared());
    // Each agent measures the tier as it finds it; the best of them is what the tier can take in all.
    if (node.usable) shared_rate = std::max(shared_rate, node.shared.dump.bytes_per_second);
    snapshot.nodes.push_back(std::move(node));
  }
  snapshot.shared.bytes_per_second = shared_rate;
  return snapshot;
}

void Engine::Impl::Execute(const Plan& plan) {
  for (const PlanStep& step : plan.steps) {
    auto it = state_.jobs.find(step.job);
    if (it == state_.jobs.end()) continue;
    JobMoved move;
    if (step.method == Method::kCheckpoint) move = OrderDump(it->second, step.tier);
    move.event = OrderFor(step.method);
    move.request = plan.request;
    move.predicted = step.predicted_release;
    move.reason = step.reason;
    // A job that is only arriving gets its order when it runs: the plan is made again then.
    if (Next(it->second.state, move.event)) Move(it->second, std::move(move));
  }
}

bool Engine::Impl::AdvanceRequests() {
  std::vector<JobRecord*> waiting;
  for (auto& [id, job] : state_.jobs) {
    if (job.spec.kind == JobKind::kOnDemand && job.state == JobState::kPending) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(), [](const JobRecord* a, const JobRecord* b) {
    return std::tie(a->spec.start_by, a->id) < std::tie(b->spec.start_by, b->id);
  });
  bool any = false;
  for (JobRecord* request : waiting) {
    if (Grant(*request)) {
      any = true;
    } else if (request->plans.empty() || !StillHolds(*request, request->plans.back())) {
      Replan(*request);
      any = true;
    }
  }
  return any;
}

bool Engine::Impl::Grant(JobRecord& request) {
  const std::map<NodeId, Resources> room = Room(request.id);
  const auto fits = [&](const NodeId& node) {
    auto it = room.find(node);
    return it != room.end() && it->second.Covers(request.spec.per_node);
  };
  std::vector<NodeId> nodes;
  if (!request.plans.empty()) nodes = request.plans.back().nodes;
  if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), fits)) {
    // Other nodes may have become free before the planned ones.
    nodes.clear();
    for (const auto& [id, free] : room) {
      if (nodes.size() < static_cast<size_t>(request.spec.nodes) && fits(id)) nodes.push_back(id);
    }
    if (nodes.size() < static_cast<size_t>(request.spec.nodes)) return false;
  }
  JobMoved move;
  move.event = JobEvent::kPlace;
  move.nodes = nodes;
  Move(request, std::move(move));
  return true;
}

// Every planned node is free, or held only by jobs that are on their way off it, or will be as soon as they
// run.
bool Engine::Impl::StillHolds(const JobRecord& request, const Plan& plan) const {
  std::map<NodeId, Resources> room = Room(request.id);
  for (const auto& [id, job] : state_.jobs) {
    const bool leaving = IsReleasing(job.state) && !job.current.keep_running;
    const bool arriving =
        IsArriving(job.state) && std::any_of(plan.steps.begin(), plan.steps.end(),
                                             [&](const PlanStep& step) { return step.job == id; });
    if (!leaving && !arriving) continue;
    for (int rank : LiveRanks(job)) {
      if (auto it = room.find(job.nodes[rank]); it != room.end()) it->second += job.spec.per_node;
    }
  }
  // Processes of earlier incarnations are being ended; they do not call for another victim.
  for (const auto& [node, tasks] : state_.observed_tasks) {
    for (const auto& [id, task] : tasks) {
      auto job = state_.jobs.find(id.job);
      if (!IsLive(task.report.phase()) || job == state_.jobs.end()) continue;
      if (HoldsNodes(job->second.state) && id.incarnation == job->second.incarnation) continue;
      if (auto it = room.find(node); it != room.end()) it->second += job->second.spec.per_node;
    }
  }
  return !plan.nodes.empty() && std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const NodeId& node) {
    auto it = room.find(node);
    return it != room.end() && it->second.Covers(request.spec.per_node);
  });
}

void Engine::Impl::Replan(JobRecord& job) {
  const Snapshot snapshot = TakeSnapshot(job.id);
  Request request = MakeRequest(job.id, job.spec);
  Plan plan = MakePlan(snapshot, request, policy_);
  if (!plan.feasible && plan.earliest) {
    // It was admitted, so it is served as soon as can be. `refusal` stays, to say that it will be late.
    const std::string late = plan.refusal;
    request.start_by = *plan.earliest;
    plan = MakePlan(snapshot, request, policy_);
    plan.refusal = absl::StrCat("late: ", late);
  }
  // An unchanged answer is not worth an event; the next change of the cluster asks again.
  if (plan.nodes.empty() && !job.plans.empty() && job.plans.back().nodes.empty() &&
      job.plans.back().refusal == plan.refusal) {
    return;
  }
  Record(job.id, RequestPlanned{plan});
  Execute(plan);
}

// A victim of a request that is over and whose image is not yet committed goes on at once.
void Engine::Impl::WithdrawOrders() {
  for (auto& [id, job] : state_.jobs) {
    if (job.state != JobState::kDumping || job.current.request == JobId()) continue;
    if (RequestStillWants(job.current.request)) continue;
    JobMoved move;
    move.event = JobEvent::kDumpFailed;
    move.reason = absl::StrCat("request ", job.current.request.value(), " is over");
    Move(job, std::move(move));
  }
}

}  // namespace siding
