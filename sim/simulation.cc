#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace siding::sim {
namespace {

// Of the jobs that have images on schedule.
double MeanInterval(const std::vector<ProtectionSchedule>& schedules,
                    double (ProtectionSchedule::*interval)() const) {
  double sum = 0, count = 0;
  for (const ProtectionSchedule& schedule : schedules) {
    if (!schedule.protects()) continue;
    sum += (schedule.*interval)();
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

Simulation::Simulation(const Workload& workload, const Strategy& strategy, bool keep_log)
    : w_(workload),
      p_(workload.parameters),
      strategy_(strategy),
      keep_log_(keep_log),
      machine_(workload.nodes),
      jobs_(workload.jobs.size()) {
  out_.jobs.resize(jobs_.size());
  for (const Job& job : w_.jobs) schedules_.emplace_back(job, strategy.policy, p_, w_.nodes);
  out_.interval = MeanInterval(schedules_, &ProtectionSchedule::interval);
  out_.copy_interval = MeanInterval(schedules_, &ProtectionSchedule::copy_interval);
  const bool protects =
      std::any_of(schedules_.begin(), schedules_.end(), [](const auto& s) { return s.protects(); });
  shared_bandwidth_ = p_.shared_bandwidth * (protects ? strategy.policy.ShareLeft() : 1);
  for (size_t j = 0; j < jobs_.size(); ++j)
    events_.push({w_.jobs[j].trace.submit, SimEvent::Kind::kSubmit, static_cast<int>(j), 0});
  for (size_t i = 0; i < w_.failures.size(); ++i)
    events_.push({w_.failures[i].at, SimEvent::Kind::kFailure, static_cast<int>(i), 0});
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
  if (event.kind == SimEvent::Kind::kFailure) return Fail(w_.failures[event.job]);
  if (event.incarnation != jobs_[event.job].incarnation) return;
  if (event.kind == SimEvent::Kind::kEnd) return End(event.job);
  if (event.kind == SimEvent::Kind::kGone) return Gone(event.job);
  if (event.kind == SimEvent::Kind::kDue) return Due(event.job);
  if (event.kind == SimEvent::Kind::kCopied) return Copied(event.job);
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
  if (event == JobEvent::kRestored) {
    out_.jobs[j].restoring += now_ - job.since;
    if (job.failed) out_.jobs[j].restoring_failures += now_ - job.since;
  }
  if (event != JobEvent::kThawed) {
    job.at_start = job.done;
    job.computing = 0;
    job.failed = false;
  }
  job.since = now_;
  if (out_.jobs[j].first_start < 0) out_.jobs[j].first_start = now_;
  events_.push({now_ + TimeFor(j, Spec(j).trace.runtime), SimEvent::Kind::kEnd, j, job.incarnation});
}

void Simulation::Start(int j, std::vector<int> nodes) {
  SimJob& job = jobs_[j];
  job.nodes = std::move(nodes);
  ++job.incarnation;
  Hold(j);
  Log(j, LogEntry::What::kTake);
  ReturnedAt(j);
  const bool restore = job.state == JobState::kParked;
  const bool from_disks = job.nodes == std::exchange(job.disks, {});
  job.copied_at = 0;
  Move(j, {JobEvent::kPlace});
  if (!restore) return Compute(j, JobEvent::kStarted);
  job.since = now_;
  const double takes = from_disks ? LocalRestoreTime(j) : RestoreTime(j);
  events_.push({now_ + takes, SimEvent::Kind::kRestored, j, job.incarnation});
}

void Simulation::ReturnedAt(int j) {
  SimJob& job = jobs_[j];
  if (job.away_since >= 0) out_.jobs[j].displaced += now_ - job.away_since;
  job.away_since = -1;
}

void Simulation::End(int j) {
  SimJob& job = jobs_[j];
  CountWork(j);
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

double Simulation::TimeFor(int j, double work) const {
  const SimJob& job = jobs_[j];
  return schedules_[j].TimeFor(work - job.at_start) - job.computing;
}

void Simulation::CountWork(int j) {
  SimJob& job = jobs_[j];
  const ProtectionSchedule& schedule = schedules_[j];
  const double passed = now_ - job.since, before = job.computing, done = job.done;
  job.computing += passed;
  job.done = job.at_start + schedule.Work(job.computing);
  job.since = now_;
  if (schedule.protects()) {
    JobResult& result = out_.jobs[j];
    const double stopped = schedule.Stopped(job.computing) - schedule.Stopped(before);
    result.stopped += stopped;
    result.slowed += std::max(0.0, passed - stopped - (job.done - done));
    result.bytes_written += schedule.Written(job.computing) - schedule.Written(before);
    result.bytes_copied += schedule.WrittenByCopies(job.computing) - schedule.WrittenByCopies(before);
  }
  CountSaves(j);
}

void Simulation::CountSaves(int j) {
  SimJob& job = jobs_[j];
  const ProtectionSchedule& schedule = schedules_[j];
  const auto save = [](Saved& last, const Saved& saved) {
    if (saved.work > last.work) last = saved;
  };
  if (const double saved = schedule.Durable(job.computing); saved > 0) {
    save(job.newest, {job.at_start + saved, schedule.SharesPages(job.computing)});
    job.uncopied = schedule.Uncopied(job.computing);
  }
  if (Saved copied = schedule.Copied(job.computing); copied.work > 0) {
    copied.work += job.at_start;
    save(job.safe, copied);
  }
  if (const double interval = Spec(j).own_interval; interval > 0) {
    const double saved = std::floor(job.done / interval) * interval;
    save(job.newest, {saved});
    save(job.safe, {saved});
  }
}

double Simulation::FallBack(int j) {
  SimJob& job = jobs_[j];
  const double lost = job.done - job.newest.work;
  job.done = job.at_start = job.newest.work;
  job.computing = 0;
  return lost;
}

double Simulation::DumpTime(int j) {
  return std::max(Spec(j).speed * NodeTransferTime(p_, Spec(j).bytes), in_flight_ / shared_bandwidth_);
}

double Simulation::RestoreTime(int j) const {
  const Job& spec = Spec(j);
  const double bytes = BytesToRestore(j);
  return std::max(spec.speed * NodeTransferTime(p_, bytes), bytes * spec.trace.nodes / shared_bandwidth_);
}

double Simulation::LocalRestoreTime(int j) const {
  return Spec(j).speed * LocalTransferTime(p_, BytesToRestore(j));
}

double Simulation::BytesToRestore(int j) const {
  // An image that shares pages is read and written once more in its tier, before it is read.
  return (jobs_[j].newest.shares ? 3 : 1) * Spec(j).bytes;
}

Replayed Replay(const Workload& workload, const Strategy& strategy, bool keep_log) {
  return Simulation(workload, strategy, keep_log).Run();
}

}  // namespace siding::sim
