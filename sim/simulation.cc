#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace siding::sim {

Simulation::Simulation(const Workload& workload, const Strategy& strategy, bool keep_log)
    : w_(workload),
      p_(workload.parameters),
      strategy_(strategy),
      keep_log_(keep_log),
      machine_(workload.nodes),
      jobs_(workload.jobs.size()) {
  out_.jobs.resize(jobs_.size());
  for (size_t j = 0; j < jobs_.size(); ++j)
    events_.push({w_.jobs[j].trace.submit, SimEvent::Kind::kSubmit, static_cast<int>(j), 0});
  for (const Failure& failure : w_.failures)
    events_.push({failure.at, SimEvent::Kind::kFailure, failure.node, 0});
  if (strategy.kind == Strategy::Kind::kReservation) Reserve();
  PrepareSnapshot();
}

Replayed Simulation::Run() {
  while (unfinished() && !events_.empty()) {
    const double before = now_;
    now_ = events_.top().at;
    out_.busy += (now_ - before) * held_;
    while (!events_.empty() && events_.top().at == now_) {
      const SimEvent event = events_.top();
      events_.pop();
      Handle(event);
    }
    Schedule();
  }
  out_.span = now_;
  for (size_t j = 0; j < jobs_.size(); ++j) out_.jobs[j].state = jobs_[j].state;
  return std::move(out_);
}

void Simulation::Move(int j, std::initializer_list<JobEvent> events) {
  for (JobEvent event : events) {
    const auto next = Next(jobs_[j].state, event);
    if (!next) {
      std::fprintf(stderr, "job %d is %s: %s means nothing there\n", j, ToString(jobs_[j].state).c_str(),
                   ToString(event).c_str());
      std::abort();
    }
    jobs_[j].state = *next;
  }
}

void Simulation::Log(int j, LogEntry::What what) {
  if (keep_log_) out_.log.push_back({now_, j, what, jobs_[j].nodes});
}

void Simulation::Handle(const SimEvent& event) {
  if (event.kind == SimEvent::Kind::kSubmit) return Submit(event.job);
  if (event.kind == SimEvent::Kind::kFailure) return Fail(event.job);
  if (event.incarnation != jobs_[event.job].incarnation) return;
  if (event.kind == SimEvent::Kind::kEnd) return End(event.job);
  if (event.kind == SimEvent::Kind::kGone) return Gone(event.job);
  if (event.kind == SimEvent::Kind::kDue) return Due(event.job);
  Compute(event.job, JobEvent::kRestored);
}

void Simulation::Submit(int j) {
  if (!Spec(j).on_demand) {
    queue_.push_back(j);
  } else if (!ServeAtOnce(j)) {
    late_.push_back(j);
  }
}

void Simulation::Compute(int j, JobEvent event) {
  SimJob& job = jobs_[j];
  Move(j, {event});
  if (event == JobEvent::kRestored) out_.jobs[j].restoring += now_ - job.since;
  job.since = now_;
  if (out_.jobs[j].first_start < 0) out_.jobs[j].first_start = now_;
  events_.push({now_ + Spec(j).trace.runtime - job.done, SimEvent::Kind::kEnd, j, job.incarnation});
}

void Simulation::Start(int j, std::vector<int> nodes) {
  SimJob& job = jobs_[j];
  job.nodes = std::move(nodes);
  ++job.incarnation;
  Hold(j);
  Log(j, LogEntry::What::kTake);
  ReturnedAt(j);
  const bool restore = job.state == JobState::kParked;
  Move(j, {JobEvent::kPlace});
  if (!restore) return Compute(j, JobEvent::kStarted);
  job.since = now_;
  events_.push({now_ + RestoreTime(j), SimEvent::Kind::kRestored, j, job.incarnation});
}

void Simulation::ReturnedAt(int j) {
  SimJob& job = jobs_[j];
  if (job.stopped >= 0) out_.jobs[j].displaced += now_ - job.stopped;
  job.stopped = -1;
}

void Simulation::End(int j) {
  SimJob& job = jobs_[j];
  Move(j, {JobEvent::kSucceeded});
  job.done = Spec(j).trace.runtime;
  Leave(j);
  Log(j, LogEntry::What::kDone);
  out_.jobs[j].end = now_;
  ++finished_;
}

void Simulation::Hold(int j) {
  holders_.insert(j);
  held_ += static_cast<int>(jobs_[j].nodes.size());
  if (!Spec(j).on_demand) batch_held_ += static_cast<int>(jobs_[j].nodes.size());
}

void Simulation::Release(int j) {
  holders_.erase(j);
  held_ -= static_cast<int>(jobs_[j].nodes.size());
  if (!Spec(j).on_demand) batch_held_ -= static_cast<int>(jobs_[j].nodes.size());
}

void Simulation::Leave(int j) {
  SimJob& job = jobs_[j];
  Log(j, LogEntry::What::kLeave);
  Release(j);
  ++job.incarnation;
  for (int node : std::exchange(job.nodes, {})) {
    if (machine_.runner(node) != j) continue;  // it was frozen there, and others compute
    machine_.Stop(node);
    NodeFree(node);
  }
}

void Simulation::NodeFree(int node) {
  const int request = machine_.kept_for(node);
  if (request == kNobody) return;
  if (--jobs_[request].awaited == 0) {
    Grant(request);
  } else {
    LeaveNow(request);
  }
}

void Simulation::CountWork(int j) {
  SimJob& job = jobs_[j];
  job.done += now_ - job.since;
  job.since = now_;
  if (const double interval = Spec(j).own_interval; interval > 0)
    job.durable = std::max(job.durable, std::floor(job.done / interval) * interval);
}

double Simulation::FallBack(int j) {
  SimJob& job = jobs_[j];
  return std::exchange(job.done, job.durable) - job.durable;
}

double Simulation::TransferTime(int j, double bandwidth) {
  const Job& spec = Spec(j);
  return spec.speed * (p_.overhead + spec.bytes / bandwidth);
}

double Simulation::DumpTime(int j) {
  return std::max(TransferTime(j, p_.node_bandwidth), in_flight_ / p_.shared_bandwidth);
}

double Simulation::RestoreTime(int j) {
  const double all = Spec(j).bytes * Spec(j).trace.nodes;
  return std::max(TransferTime(j, p_.node_bandwidth), all / p_.shared_bandwidth);
}

Replayed Replay(const Workload& workload, const Strategy& strategy, bool keep_log) {
  return Simulation(workload, strategy, keep_log).Run();
}

}  // namespace siding::sim
