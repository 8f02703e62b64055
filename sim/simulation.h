// The event loop behind sim/replay.h: the lifecycle of every job (simulation.cc), preemption (preemption.cc),
// and the base scheduler, EASY backfilling, with the way back of those who made way (backfilling.cc).
#pragma once

#include <initializer_list>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "planner/planner.h"
#include "sim/machine.h"
#include "sim/protection_schedule.h"
#include "sim/replay.h"

namespace siding::sim {

struct SimEvent {
  // At one moment nodes become free before requests are handled.
  enum class Kind { kEnd, kGone, kRestored, kCopied, kFailure, kDue, kSubmit };
  double at = 0;
  Kind kind = Kind::kSubmit;
  int job = 0;          // kFailure: which of them
  int incarnation = 0;  // of the job; an event of an earlier one means nothing
  bool operator<(const SimEvent& o) const {
    return std::tie(o.at, o.kind, o.job, o.incarnation) < std::tie(at, kind, job, incarnation);
  }
};

struct SimJob {
  JobState state = JobState::kPending;
  int incarnation = 0;
  std::vector<int> nodes;
  double since = 0;        // it computes since then, if kRunning
  double done = 0;         // seconds of work, up to `since`
  double at_start = 0;     // of these, before it was started or restored
  double computing = 0;    // seconds since then in which it was to compute, up to `since`
  Saved newest;            // what a kill leaves
  Saved safe;              // of it, what is left without its nodes' disks
  double uncopied = 0;     // bytes of the newest that these nodes' disks have alone, if that is not safe
  std::vector<int> disks;  // it has no nodes, and those have its newest image
  double copied_at = 0;    // until then it can continue on these only
  double away_since = -1;  // made way then and has not come back; -1: has not
  double last_preempted = -1;
  bool failed = false;  // and has not computed since
  Method leaving = Method::kKill;
  int awaited = 0;  // on-demand: nodes that are kept for it and not yet free
};

// Runs once.
class Simulation {
 public:
  Simulation(const Workload& workload, const Strategy& strategy, bool keep_log);
  Replayed Run();

 private:
  bool unfinished() const { return finished_ < jobs_.size(); }
  const Job& Spec(int j) const { return w_.jobs[j]; }

  // ---- lifecycle ----
  void Move(int j, std::initializer_list<JobEvent> events);
  void Log(int j, LogEntry::What what);
  void Handle(const SimEvent& event);
  void Submit(int j);
  // Its nodes are taken already.
  void Compute(int j, JobEvent event);
  void Start(int j, std::vector<int> nodes);
  void ReturnedAt(int j);
  void End(int j);
  void Hold(int j);
  void Release(int j);
  // Off its nodes, for good or to come back.
  void Leave(int j);
  // To come back. An image that only their disks have is copied behind it.
  void LeaveForNow(int j);
  void NodeFree(int node);

  // ---- work ----
  // From `since` on, or once it has nodes again, until so much work is done.
  double TimeFor(int j, double work) const;
  // What it has done by now, and what of that would survive.
  void CountWork(int j);
  void CountSaves(int j);
  // Back to its last saved work. Returns the seconds of work that are lost.
  double FallBack(int j);
  // After a kill or a failure a job continues from its newest image or own save, or from the beginning.
  JobState After(int j) const { return jobs_[j].newest.work > 0 ? JobState::kParked : JobState::kPending; }
  double DumpTime(int j);
  double RestoreTime(int j) const;
  // From its nodes' own disks.
  double LocalRestoreTime(int j) const;
  double BytesToRestore(int j) const;

  // ---- preemption ----
  bool ServeAtOnce(int j);
  void PrepareSnapshot();
  static Time At(double seconds) { return Time(FromSeconds(seconds)); }
  Plan MakeAPlan(int j);
  JobView View(int v);
  // An image on schedule is under way until then; 0: none is.
  double BusyUntil(int v) const;
  // Its restore, as the planner knows it: at measured speed.
  Duration WayBack(int v) const;
  // A deadline job that computes, and will have ended when it said.
  JobView ViewOfRequest(int j) const;
  void Execute(int j, const Plan& plan);
  // Those that were to leave for it later do so when no other job is waited for any more: a job whose end was
  // expected has ended before. Where guards may hold them back they keep to the plan, and so do those with an
  // image under way.
  void LeaveNow(int request);
  // A step of a plan that was to wait, unless the job has left meanwhile.
  void Due(int v);
  void Preempt(int v, Method method);
  void Dump(int v);
  void Freeze(int v);
  // The victim's processes are gone.
  void Gone(int v);
  // All its nodes are free.
  void Grant(int j);
  void Fail(const Failure& failure);
  // It has its nodes' slots again, if only to lose them.
  void Thaw(int j);

  // ---- images on nodes' own disks ----
  bool IsOnDisksOnly(int j) const { return jobs_[j].newest.work > jobs_[j].safe.work; }
  // It has left such an image behind, which is being copied.
  void CopyFromDisks(int j);
  // Its newest image is in shared storage as well.
  void Copied(int j);
  void LoseDisk(int node);
  // All nodes that have its newest image are free.
  bool IsFreeOnDisks(int j) const;
  // As many as it needs, and those that have its image if they are free.
  std::vector<int> TakeNodes(int j);

  // ---- the base scheduler ----
  void Reserve();
  bool Fits(int j) const;
  void Schedule();
  void WakeFrozen();
  // There are nodes for it, and those who compute where it is frozen will stay longer than moving takes.
  bool MovingIsSooner(int j);
  // Its memory is written where it is; then it takes other nodes like any that made way.
  void MoveAway(int j);
  // As its user said, and what images on schedule add to it.
  double Remaining(int j) const { return TimeFor(j, Spec(j).trace.requested); }
  // When `nodes` nodes are free if all jobs take as long as they said, and how many are left over then.
  std::pair<double, int> Reservation(int nodes) const;

  const Workload& w_;
  const Parameters& p_;
  const Strategy& strategy_;
  const bool keep_log_;
  Machine machine_;
  std::vector<SimJob> jobs_;
  std::vector<ProtectionSchedule> schedules_;
  double shared_bandwidth_ = 0;  // for those who make way and come back
  std::priority_queue<SimEvent> events_;
  double now_ = 0;
  std::vector<int> late_, returning_, queue_, frozen_;
  Snapshot snapshot_;
  double in_flight_ = 0;                          // bytes on their way to shared storage
  std::map<int, Method> due_;                     // how they will leave, by steps that are still to come
  std::set<int> moving_;                          // frozen, and being written to continue elsewhere
  int promised_ = 0;                              // nodes that these will take
  std::set<int> holders_;                         // jobs with nodes, frozen ones left out
  int held_ = 0, batch_held_ = 0, reserved_ = 0;  // nodes
  size_t finished_ = 0;
  Replayed out_;
};

}  // namespace siding::sim
