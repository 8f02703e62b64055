#include <algorithm>
#include <chrono>
#include <cmath>

#include "sim/simulation.h"

namespace siding::sim {

bool Simulation::ServeAtOnce(int j) {
  const int nodes = Spec(j).trace.nodes;
  if (late_.empty() && machine_.free() >= nodes) {
    Start(j, machine_.Take(nodes, j));
    return true;
  }
  if (strategy_.kind != Strategy::Kind::kPlan) return false;
  const Plan plan = MakeAPlan(j);
  out_.jobs[j].feasible = plan.feasible;
  if (!plan.feasible) return false;
  Execute(j, plan);
  return true;
}

void Simulation::PrepareSnapshot() {
  snapshot_.shared.bytes_per_second = shared_bandwidth_;
  const Rate to_shared{p_.node_bandwidth, FromSeconds(p_.overhead), p_.spread};
  for (int n = 0; n < w_.nodes; ++n) {
    NodeView node;
    node.id = NodeId("n" + std::to_string(n));
    node.capacity = {1, Bytes{static_cast<int64_t>(p_.node_memory)}, 0};
    node.ram_available = node.capacity.memory;
    node.shared = {to_shared, to_shared};  // nobody makes way to a local disk
    snapshot_.nodes.push_back(std::move(node));
  }
}

Plan Simulation::MakeAPlan(int j) {
  snapshot_.now = At(now_);
  snapshot_.shared.in_flight = Bytes{static_cast<int64_t>(in_flight_)};
  for (int n = 0; n < w_.nodes; ++n) {
    NodeView& node = snapshot_.nodes[n];
    // A node with a frozen job in its memory is not used for others.
    node.usable = machine_.sleeper(n) == kNobody && machine_.kept_for(n) == kNobody;
    node.free = {machine_.is_free(n), node.capacity.memory, 0};
  }
  snapshot_.jobs.clear();
  for (int v : holders_) {
    if (jobs_[v].state == JobState::kRunning)
      snapshot_.jobs.push_back(Spec(v).on_demand ? ViewOfRequest(v) : View(v));
  }
  const Job& spec = Spec(j);
  const Request request{JobId(j + 1),
                        spec.trace.nodes,
                        {1, Bytes{static_cast<int64_t>(spec.bytes)}, 0},
                        At(spec.start_by() + p_.tolerance),
                        {},
                        FromSeconds(spec.trace.requested)};
  const auto start = std::chrono::steady_clock::now();
  Plan plan = MakePlan(snapshot_, request, strategy_.policy);
  out_.planning += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

JobView Simulation::View(int v) {
  CountWork(v);
  const SimJob& job = jobs_[v];
  JobView view;
  view.id = JobId(v + 1);
  view.job_class = strategy_.policy.classes.empty() ? -1 : 0;
  view.per_node = {1, Bytes{0}, 0};
  view.methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill};
  for (int node : job.nodes) {
    view.nodes.push_back(snapshot_.nodes[node].id);
    view.memory.push_back(Bytes{static_cast<int64_t>(Spec(v).bytes)});
  }
  view.running_since = At(now_ - job.done);
  view.durable_at = At(now_ - (job.done - job.newest.work));
  if (job.newest.work > 0) view.way_back = WayBack(v);
  const ProtectionSchedule& schedule = schedules_[v];
  view.most_lost = FromSeconds(schedule.MostLost(job.computing));
  if (const double until = BusyUntil(v); until > 0) view.saved_by = At(until);
  view.kill_grace = FromSeconds(p_.kill_grace);
  view.preemptions = out_.jobs[v].preemptions;
  if (job.last_preempted >= 0) view.last_preempted = At(job.last_preempted);
  return view;
}

double Simulation::BusyUntil(int v) const {
  const SimJob& job = jobs_[v];
  const double until = schedules_[v].BusyUntil(job.computing + now_ - job.since);
  return until > 0 ? job.since + until - job.computing : 0;
}

Duration Simulation::WayBack(int v) const {
  const Job& spec = Spec(v);
  if (IsOnDisksOnly(v)) return FromSeconds(LocalTransferTime(p_, spec.bytes));
  return FromSeconds(
      std::max(NodeTransferTime(p_, spec.bytes), spec.bytes * spec.trace.nodes / shared_bandwidth_));
}

JobView Simulation::ViewOfRequest(int j) const {
  JobView view;
  view.id = JobId(j + 1);
  view.kind = JobKind::kOnDemand;
  view.per_node = {1, Bytes{0}, 0};
  for (int node : jobs_[j].nodes) {
    view.nodes.push_back(snapshot_.nodes[node].id);
    view.memory.emplace_back();
  }
  view.ends_at = At(jobs_[j].since + Remaining(j));
  return view;
}

void Simulation::Execute(int j, const Plan& plan) {
  SimJob& request = jobs_[j];
  for (const NodeId& id : plan.nodes) {
    const int node = std::atoi(id.value().c_str() + 1);
    request.nodes.push_back(node);
    if (!machine_.is_free(node)) ++request.awaited;
    machine_.Keep(node, j);
  }
  for (const PlanStep& step : plan.steps) {
    const int victim = static_cast<int>(step.job.value()) - 1;
    if (step.begin <= snapshot_.now) {
      Preempt(victim, step.method);
      continue;
    }
    due_[victim] = step.method;
    const double at = ToSeconds(step.begin.time_since_epoch());
    events_.push({at, SimEvent::Kind::kDue, victim, jobs_[victim].incarnation});
  }
  // Without victims, or with only frozen ones, it may have been granted by now.
  if (request.awaited == 0 && request.state == JobState::kPending) Grant(j);
}

void Simulation::Due(int v) {
  const Method method = due_.at(v);
  due_.erase(v);
  Preempt(v, method);
}

void Simulation::LeaveNow(int request) {
  if (strategy_.policy.min_runtime > Duration(0) || strategy_.policy.cooldown > Duration(0)) return;
  std::set<int> victims;
  for (int node : jobs_[request].nodes) {
    const int holder = machine_.runner(node);
    if (holder == kNobody || jobs_[holder].state != JobState::kRunning) continue;
    if (!due_.contains(holder)) return;
    victims.insert(holder);
  }
  for (int victim : victims) {
    if (!due_.contains(victim) || jobs_[victim].state != JobState::kRunning) continue;
    if (due_.at(victim) == Method::kKill || BusyUntil(victim) == 0) Due(victim);
  }
}

void Simulation::Preempt(int v, Method method) {
  SimJob& job = jobs_[v];
  CountWork(v);
  for (int node : job.nodes) out_.used_nodes += machine_.kept_for(node) != kNobody;
  ++out_.jobs[v].preemptions;
  out_.given_up_nodes += static_cast<int>(job.nodes.size());
  job.last_preempted = job.away_since = now_;
  job.failed = false;
  job.leaving = method;
  ++job.incarnation;  // its end will not come as it was foreseen
  switch (method) {
    case Method::kSuspend:
      Move(v, {JobEvent::kOrderSuspend, JobEvent::kFrozen});
      Freeze(v);
      break;
    case Method::kCheckpoint:
    case Method::kApp:
      Dump(v);
      break;
    case Method::kKill:
      Move(v, {JobEvent::kOrderKill});
      events_.push({now_ + p_.kill_grace, SimEvent::Kind::kGone, v, job.incarnation});
      break;
  }
}

void Simulation::Dump(int v) {
  Move(v, {JobEvent::kOrderDump});
  const double bytes = Spec(v).bytes * Spec(v).trace.nodes;
  in_flight_ += bytes;
  out_.jobs[v].bytes_written += bytes;
  const double took = DumpTime(v);
  out_.jobs[v].dumping += took;
  events_.push({now_ + took, SimEvent::Kind::kGone, v, jobs_[v].incarnation});
}

void Simulation::Freeze(int v) {
  Log(v, LogEntry::What::kSleep);
  Release(v);
  frozen_.push_back(v);
  for (int node : jobs_[v].nodes) {
    machine_.Stop(node);
    machine_.Sleep(node, v);
    NodeFree(node);
  }
}

void Simulation::Gone(int v) {
  SimJob& job = jobs_[v];
  if (job.leaving == Method::kKill) {
    out_.jobs[v].redone += FallBack(v);
    Move(v, {After(v) == JobState::kParked ? JobEvent::kReleased : JobEvent::kRequeued});
  } else {
    in_flight_ -= Spec(v).bytes * Spec(v).trace.nodes;
    job.at_start = job.done;
    job.newest = job.safe = {job.done};
    job.computing = 0;
    if (moving_.contains(v)) Thaw(v);
    Move(v, {JobEvent::kCommit, JobEvent::kReleased});
  }
  returning_.push_back(v);
  LeaveForNow(v);
}

void Simulation::Grant(int j) {
  std::vector<int> nodes = std::exchange(jobs_[j].nodes, {});
  for (int node : nodes) {
    machine_.Run(node, j);
    machine_.Unkeep(node);
  }
  Start(j, std::move(nodes));
}

void Simulation::Fail(const Failure& failure) {
  for (int j : {machine_.runner(failure.node), machine_.sleeper(failure.node)}) {
    if (j == kNobody) continue;
    SimJob& job = jobs_[j];
    if (job.state == JobState::kRunning) CountWork(j);
    // Else the node is back with its disk at once, and nobody gives it up for the newest copied image.
    if (failure.loses_disk) job.newest = job.safe;
    if (job.state == JobState::kKilling || job.state == JobState::kStarting)
      continue;  // gone in a moment anyway
    if (job.state == JobState::kDumping) in_flight_ -= Spec(j).bytes * Spec(j).trace.nodes;
    if (job.state == JobState::kSuspended || moving_.contains(j)) Thaw(j);
    out_.jobs[j].redone_failures += FallBack(j);
    Move(j, {After(j) == JobState::kParked ? JobEvent::kRestoreFailed : JobEvent::kRestartNeeded});
    if (job.away_since < 0) job.away_since = now_;
    job.failed = true;
    (Spec(j).on_demand ? late_ : returning_).push_back(j);
    LeaveForNow(j);
  }
  if (failure.loses_disk) LoseDisk(failure.node);
}

void Simulation::Thaw(int j) {
  if (moving_.erase(j) > 0) {
    promised_ -= Spec(j).trace.nodes;
  } else {
    frozen_.erase(std::find(frozen_.begin(), frozen_.end(), j));
  }
  Hold(j);
  for (int node : jobs_[j].nodes) machine_.Wake(node);
}

}  // namespace siding::sim
