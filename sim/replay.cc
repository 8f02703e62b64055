#include "sim/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include "planner/planner.h"
#include "sim/machine.h"

namespace siding::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct SimEvent {
  // At one moment nodes come free before anybody asks for them.
  enum class Kind { kEnd, kGone, kRestored, kFailure, kSubmit };
  double at = 0;
  Kind kind = Kind::kSubmit;
  int job = 0;          // kFailure: the node
  int incarnation = 0;  // of the job; an event of an earlier one means nothing
  bool operator<(const SimEvent& o) const {
    return std::tie(o.at, o.kind, o.job, o.incarnation) < std::tie(at, kind, job, incarnation);
  }
};

struct SimJob {
  JobState state = JobState::kPending;
  int incarnation = 0;
  std::vector<int> nodes;
  double since = 0;     // it computes since then, if kRunning
  double done = 0;      // seconds of work, up to `since`
  double durable = 0;   // of these, what a kill leaves
  double stopped = -1;  // made way then and has not come back; -1: has not
  double last_preempted = -1;
  bool has_image = false;
  Method leaving = Method::kKill;
  int awaited = 0;  // on-demand: nodes that are kept for it and not yet free
};

class Simulation {
 public:
  Simulation(const Workload& workload, const Strategy& strategy, bool keep_log)
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

  Replayed Run() {
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

 private:
  bool unfinished() const { return finished_ < jobs_.size(); }
  const Job& Spec(int j) const { return w_.jobs[j]; }

  // ---- lifecycle ----

  void Move(int j, std::initializer_list<JobEvent> events) {
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

  void Log(int j, LogEntry::What what) {
    if (keep_log_) out_.log.push_back({now_, j, what, jobs_[j].nodes});
  }

  void Handle(const SimEvent& event) {
    if (event.kind == SimEvent::Kind::kSubmit) return Submit(event.job);
    if (event.kind == SimEvent::Kind::kFailure) return Fail(event.job);
    if (event.incarnation != jobs_[event.job].incarnation) return;
    if (event.kind == SimEvent::Kind::kEnd) return End(event.job);
    if (event.kind == SimEvent::Kind::kGone) return Gone(event.job);
    Compute(event.job, JobEvent::kRestored);
  }

  void Submit(int j) {
    if (!Spec(j).on_demand) {
      queue_.push_back(j);
    } else if (!ServeAtOnce(j)) {
      late_.push_back(j);
    }
  }

  // Its nodes are taken already.
  void Compute(int j, JobEvent event) {
    SimJob& job = jobs_[j];
    Move(j, {event});
    if (event == JobEvent::kRestored) out_.jobs[j].restoring += now_ - job.since;
    job.since = now_;
    if (out_.jobs[j].first_start < 0) out_.jobs[j].first_start = now_;
    events_.push({now_ + Spec(j).trace.runtime - job.done, SimEvent::Kind::kEnd, j, job.incarnation});
  }

  void Start(int j, std::vector<int> nodes) {
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

  void ReturnedAt(int j) {
    SimJob& job = jobs_[j];
    if (job.stopped >= 0) out_.jobs[j].displaced += now_ - job.stopped;
    job.stopped = -1;
  }

  void End(int j) {
    SimJob& job = jobs_[j];
    Move(j, {JobEvent::kSucceeded});
    job.done = Spec(j).trace.runtime;
    Leave(j);
    Log(j, LogEntry::What::kDone);
    out_.jobs[j].end = now_;
    ++finished_;
  }

  void Hold(int j) {
    holders_.insert(j);
    held_ += static_cast<int>(jobs_[j].nodes.size());
    if (!Spec(j).on_demand) batch_held_ += static_cast<int>(jobs_[j].nodes.size());
  }

  void Release(int j) {
    holders_.erase(j);
    held_ -= static_cast<int>(jobs_[j].nodes.size());
    if (!Spec(j).on_demand) batch_held_ -= static_cast<int>(jobs_[j].nodes.size());
  }

  // Off its nodes, for good or to come back.
  void Leave(int j) {
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

  void NodeFree(int node) {
    const int request = machine_.kept_for(node);
    if (request != kNobody && --jobs_[request].awaited == 0) Grant(request);
  }

  // ---- work ----

  // What it has done by now, and what of that would survive.
  void CountWork(int j) {
    SimJob& job = jobs_[j];
    job.done += now_ - job.since;
    job.since = now_;
    if (const double interval = Spec(j).own_interval; interval > 0)
      job.durable = std::max(job.durable, std::floor(job.done / interval) * interval);
  }

  // Back to its last durable work. Returns the seconds of work that are lost.
  double FallBack(int j) {
    SimJob& job = jobs_[j];
    return std::exchange(job.done, job.durable) - job.durable;
  }

  // What a kill or a failure leaves goes on from its own last save, or from the beginning.
  JobState After(int j) const { return jobs_[j].durable > 0 ? JobState::kParked : JobState::kPending; }

  double TransferTime(int j, double bandwidth) {
    const Job& spec = Spec(j);
    return spec.speed * (p_.overhead + spec.bytes / bandwidth);
  }
  double DumpTime(int j) {
    return std::max(TransferTime(j, p_.node_bandwidth), in_flight_ / p_.shared_bandwidth);
  }
  double RestoreTime(int j) {
    const double all = Spec(j).bytes * Spec(j).trace.nodes;
    return std::max(TransferTime(j, p_.node_bandwidth), all / p_.shared_bandwidth);
  }

  // ---- preemption ----

  bool ServeAtOnce(int j) {
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

  void PrepareSnapshot() {
    snapshot_.shared.bytes_per_second = p_.shared_bandwidth;
    const Rate to_shared{p_.node_bandwidth, FromSeconds(p_.overhead), p_.spread};
    for (int n = 0; n < w_.nodes; ++n) {
      NodeView node;
      node.id = NodeId("n" + std::to_string(n));
      node.capacity = {1, Bytes{static_cast<int64_t>(p_.node_memory)}, 0};
      node.ram_available = node.capacity.memory;
      node.shared = {to_shared, to_shared};  // images on local disks are not simulated
      snapshot_.nodes.push_back(std::move(node));
    }
  }

  static Time At(double seconds) { return Time(FromSeconds(seconds)); }

  Plan MakeAPlan(int j) {
    snapshot_.now = At(now_);
    snapshot_.shared.in_flight = Bytes{static_cast<int64_t>(in_flight_)};
    for (int n = 0; n < w_.nodes; ++n) {
      NodeView& node = snapshot_.nodes[n];
      // A node in whose memory somebody sleeps is nobody's but theirs.
      node.usable = machine_.sleeper(n) == kNobody && machine_.kept_for(n) == kNobody;
      node.free = {machine_.is_free(n), node.capacity.memory, 0};
    }
    snapshot_.jobs.clear();
    for (int v : holders_) {
      if (!Spec(v).on_demand && jobs_[v].state == JobState::kRunning) snapshot_.jobs.push_back(View(v));
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

  JobView View(int v) {
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
    view.durable_at = At(now_ - (job.done - job.durable));
    view.kill_grace = FromSeconds(p_.kill_grace);
    view.preemptions = out_.jobs[v].preemptions;
    if (job.last_preempted >= 0) view.last_preempted = At(job.last_preempted);
    return view;
  }

  void Execute(int j, const Plan& plan) {
    SimJob& request = jobs_[j];
    std::set<int> its;
    for (const NodeId& id : plan.nodes) {
      const int node = std::atoi(id.value().c_str() + 1);
      its.insert(node);
      request.nodes.push_back(node);
      if (!machine_.is_free(node)) ++request.awaited;
      machine_.Keep(node, j);
    }
    for (const PlanStep& step : plan.steps) {
      const int victim = static_cast<int>(step.job.value()) - 1;
      for (int node : jobs_[victim].nodes) out_.used_nodes += its.contains(node);
      Preempt(victim, step.method);
    }
    // Without victims, or with only frozen ones, it may have been granted by now.
    if (request.awaited == 0 && request.state == JobState::kPending) Grant(j);
  }

  void Preempt(int v, Method method) {
    SimJob& job = jobs_[v];
    CountWork(v);
    ++out_.jobs[v].preemptions;
    out_.given_up_nodes += static_cast<int>(job.nodes.size());
    job.last_preempted = job.stopped = now_;
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

  void Dump(int v) {
    Move(v, {JobEvent::kOrderDump});
    const double bytes = Spec(v).bytes * Spec(v).trace.nodes;
    in_flight_ += bytes;
    out_.jobs[v].bytes_written += bytes;
    const double took = DumpTime(v);
    out_.jobs[v].dumping += took;
    events_.push({now_ + took, SimEvent::Kind::kGone, v, jobs_[v].incarnation});
  }

  void Freeze(int v) {
    Log(v, LogEntry::What::kSleep);
    Release(v);
    frozen_.push_back(v);
    for (int node : jobs_[v].nodes) {
      machine_.Stop(node);
      machine_.Sleep(node, v);
      NodeFree(node);
    }
  }

  // The victim's processes are gone.
  void Gone(int v) {
    SimJob& job = jobs_[v];
    if (job.leaving == Method::kKill) {
      out_.jobs[v].redone += FallBack(v);
      Move(v, {After(v) == JobState::kParked ? JobEvent::kReleased : JobEvent::kRequeued});
    } else {
      in_flight_ -= Spec(v).bytes * Spec(v).trace.nodes;
      job.durable = job.done;
      if (moving_.contains(v)) Thaw(v);
      Move(v, {JobEvent::kCommit, JobEvent::kReleased});
    }
    returning_.push_back(v);
    Leave(v);
  }

  // All its nodes are free.
  void Grant(int j) {
    std::vector<int> nodes = std::exchange(jobs_[j].nodes, {});
    for (int node : nodes) {
      machine_.Run(node, j);
      machine_.Unkeep(node);
    }
    Start(j, std::move(nodes));
  }

  void Fail(int node) {
    for (int j : {machine_.runner(node), machine_.sleeper(node)}) {
      if (j == kNobody) continue;
      SimJob& job = jobs_[j];
      if (job.state == JobState::kRunning) CountWork(j);
      if (job.state == JobState::kKilling || job.state == JobState::kStarting)
        continue;  // gone in a moment anyway
      if (job.state == JobState::kDumping) in_flight_ -= Spec(j).bytes * Spec(j).trace.nodes;
      if (job.state == JobState::kSuspended || moving_.contains(j)) Thaw(j);
      out_.jobs[j].redone_failures += FallBack(j);
      Move(j, {After(j) == JobState::kParked ? JobEvent::kRestoreFailed : JobEvent::kRestartNeeded});
      if (job.stopped < 0) job.stopped = now_;
      (Spec(j).on_demand ? late_ : returning_).push_back(j);
      Leave(j);
    }
  }

  // It has its nodes' slots again, if only to lose them.
  void Thaw(int j) {
    if (moving_.erase(j) > 0) {
      promised_ -= Spec(j).trace.nodes;
    } else {
      frozen_.erase(std::find(frozen_.begin(), frozen_.end(), j));
    }
    Hold(j);
    for (int node : jobs_[j].nodes) machine_.Wake(node);
  }

  // ---- the base scheduler ----

  void Reserve() {
    int most = 0;
    for (const Job& job : w_.jobs) most = job.on_demand ? most : std::max(most, job.trace.nodes);
    reserved_ = std::min(static_cast<int>(std::ceil(p_.on_demand_share * w_.nodes)), w_.nodes - most);
  }

  bool Fits(int j) const {
    const int nodes = Spec(j).trace.nodes;
    if (machine_.free() < nodes) return false;
    return Spec(j).on_demand || batch_held_ + nodes <= w_.nodes - reserved_;
  }

  void Schedule() {
    WakeFrozen();
    std::sort(returning_.begin(), returning_.end(),
              [&](int a, int b) { return std::pair(jobs_[a].stopped, a) < std::pair(jobs_[b].stopped, b); });
    if (late_.empty() && returning_.empty() && queue_.empty()) return;
    double shadow = kNever;  // when the first that does not fit can start
    int extra = 0;           // nodes that it leaves over then
    bool waits = false;
    for (std::vector<int>* list : {&late_, &returning_, &queue_}) {
      size_t kept = 0;
      for (size_t i = 0; i < list->size(); ++i) {
        const int j = (*list)[i];
        const int nodes = Spec(j).trace.nodes;
        bool start = machine_.free() > 0 && Fits(j);
        if (start && waits) {
          const bool in_time = now_ + Remaining(j) <= shadow;
          start = in_time || nodes <= extra;
          if (start && !in_time) extra -= nodes;
        }
        if (start) {
          Start(j, machine_.Take(nodes, j));
          continue;
        }
        (*list)[kept++] = j;
        if (!waits) {
          waits = true;
          std::tie(shadow, extra) = Reservation(nodes);
        }
      }
      list->resize(kept);
    }
  }

  void WakeFrozen() {
    std::vector<int> order = frozen_;
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return std::pair(jobs_[a].stopped, a) < std::pair(jobs_[b].stopped, b); });
    for (int j : order) {
      const auto idle = [&](int n) {
        return machine_.runner(n) == kNobody && machine_.kept_for(n) == kNobody;
      };
      if (!std::all_of(jobs_[j].nodes.begin(), jobs_[j].nodes.end(), idle)) {
        if (MovingIsSooner(j)) MoveAway(j);
        continue;
      }
      Thaw(j);
      for (int node : jobs_[j].nodes) machine_.Run(node, j);
      Log(j, LogEntry::What::kWake);
      ReturnedAt(j);
      Move(j, {JobEvent::kOrderResume});
      Compute(j, JobEvent::kThawed);
    }
  }

  // There are nodes for it, and those who compute where it is frozen will stay longer than moving takes.
  bool MovingIsSooner(int j) {
    if (machine_.free() - promised_ < Spec(j).trace.nodes ||
        strategy_.policy.strategy != siding::Strategy::kLeastLoss)
      return false;
    double until = now_;
    for (int node : jobs_[j].nodes) {
      const int runner = machine_.runner(node);
      if (runner != kNobody) until = std::max(until, jobs_[runner].since + Remaining(runner));
    }
    return now_ + DumpTime(j) + RestoreTime(j) < until;
  }

  // Its memory is written where it is; then it takes other nodes like any that made way.
  void MoveAway(int j) {
    promised_ += Spec(j).trace.nodes;
    jobs_[j].leaving = Method::kCheckpoint;
    ++jobs_[j].incarnation;
    frozen_.erase(std::find(frozen_.begin(), frozen_.end(), j));
    moving_.insert(j);
    Dump(j);
  }

  // As its user said.
  double Remaining(int j) const { return Spec(j).trace.requested - jobs_[j].done; }

  // When `nodes` nodes are free if everybody takes as long as they said, and how many are left over then.
  std::pair<double, int> Reservation(int nodes) const {
    std::vector<std::pair<double, int>> ends;
    for (int j : holders_) {
      const SimJob& job = jobs_[j];
      const double since = job.state == JobState::kRunning ? job.since : now_;
      ends.emplace_back(std::max(now_, since + Remaining(j)), static_cast<int>(job.nodes.size()));
    }
    std::sort(ends.begin(), ends.end());
    int free = machine_.free();
    for (const auto& [end, count] : ends) {
      free += count;
      if (free >= nodes) return {end, free - nodes};
    }
    return {kNever, 0};
  }

  const Workload& w_;
  const Parameters& p_;
  const Strategy& strategy_;
  const bool keep_log_;
  Machine machine_;
  std::vector<SimJob> jobs_;
  std::priority_queue<SimEvent> events_;
  double now_ = 0;
  std::vector<int> late_, returning_, queue_, frozen_;
  Snapshot snapshot_;
  double in_flight_ = 0;                          // bytes on their way to shared storage
  std::set<int> moving_;                          // frozen, and being written to go on elsewhere
  int promised_ = 0;                              // nodes that these will take
  std::set<int> holders_;                         // jobs with nodes, frozen ones left out
  int held_ = 0, batch_held_ = 0, reserved_ = 0;  // nodes
  size_t finished_ = 0;
  Replayed out_;
};

}  // namespace

Replayed Replay(const Workload& workload, const Strategy& strategy, bool keep_log) {
  return Simulation(workload, strategy, keep_log).Run();
}

}  // namespace siding::sim
