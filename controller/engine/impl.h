// The engine's inside, shared by its source files; nobody else includes it. One file per concern:
//   engine.cc    construction, locking, reading
//   advance.cc   what follows from a decision, the journal, and only then commands
//   seen.cc      what is known of a task
//   silence.cc   nodes that are connected and say nothing
//   admission.cc who may ask for what; what is done when a deadline cannot be met
//   allowance.h  how much each user may have journalled
//   verbs.cc     what else users and operators ask
//   reports.cc   what agents say, taken down
//   observe.cc   what was taken down -> events
//   failed.cc    starts and restores that failed: what is tried again, when and where
//   hosted.cc    jobs whose tasks a cluster manager starts
//   queue.cc     what a cluster manager's queue says -> events
//   rescue.cc    jobs that a cluster manager preempts by itself
//   wishes.cc    recorded state -> what is wished of the cluster manager
//   room.cc      what is free on each node
//   snapshot.cc  state and reports -> what the planner may know
//   trial.h      plans that are made without the lock
//   requests.cc  deadline jobs: plan, order, grant, plan again
//   way_back.cc  jobs that made way come back
//   walltime.cc  jobs whose time is over
//   waits.cc     why a job does not start, or does not do what it was told
//   schedule.cc  the queue, periodic checkpoints, how many are kept
//   lost.cc      nodes that are gone for good
//   outage.cc    what is done while the journal cannot be written
//   restored.cc  a journal that is older than what it is about
//   retention.cc the end of the records of jobs that ended long ago
//   act.cc       recorded state + last reports -> commands
// Every public call is: lock; decide (Record ...); Advance(). Advance() decides what follows from that until
// nothing does, makes the events durable, and only then lets commands out.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/limited_log.h"
#include "common/logging.h"
#include "controller/engine/allowance.h"
#include "controller/engine/bookkeeping.h"
#include "controller/engine/engine.h"
#include "controller/engine/event_log.h"
#include "controller/engine/inbox.h"
#include "controller/engine/pace.h"
#include "controller/engine/predicates.h"
#include "controller/engine/trial.h"
#include "model/snapshot.h"
#include "planner/planner.h"
#include "planner/way_back.h"

namespace siding {

// Until a job whose time is over is seen to be, and until its agent has said that it has ended.
inline constexpr Duration kLookForTime = std::chrono::seconds(2);
// In which the node-hours of a user's on-demand jobs are counted.
inline constexpr Duration kQuotaWindow = std::chrono::hours(24);

class Engine::Impl {
 public:
  Impl(Policy policy, Journal& journal, Platform& platform, AgentLink& agents, const Clock& clock)
      : policy_(std::move(policy)),
        journal_(journal),
        platform_(platform),
        agents_(agents),
        clock_(clock),
        events_(journal) {}

  // ---- engine.cc ----
  // Takes the lock itself, and not while it plans.
  absl::StatusOr<Trial> MakeTrial(const JobSpec& spec);
  absl::StatusOr<JobSpec> WithDeadline(JobSpec spec);
  absl::StatusOr<Time> EarliestFor(const JobSpec& probe, const Plan& plan) const;
  // No lock is needed.
  const EventLog& events() const { return events_; }
  bool MayAct(const Caller& caller, const JobRecord& job) const;
  bool MaySee(const Caller& caller, const JobRecord& job) const {
    return !policy_.private_jobs || MayAct(caller, job);
  }
  std::string ClusterManager() const { return platform_.manager(); }
  Time Now() const { return clock_.Now(); }
  bool IsConsistent() const;                         // room.cc
  std::string WhyWaits(const JobRecord& job) const;  // waits.cc

  // ---- requests.cc ----
  // Plans that were made without the lock are as good as those that would be made now.
  bool StillGood(const Trial& trial, const JobSpec& spec) const;
  // Makes the plans again that do not hold any more. Takes the lock itself, and not while it plans.
  void ReplanRequests();

  // ---- advance.cc ----
  absl::Status Start();
  void Tick();
  // Has every job looked at, whatever its state, by the next Advance().
  void JudgeAll();
  // After every decision: what follows from it, then the journal, then the commands.
  absl::Status Advance();

  // ---- reports.cc ----
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello);
  void OnMessage(const NodeId& node, const v1::FromAgent& message);
  void TakeMessages();
  void OnDisconnected(const NodeId& node);

  // ---- queue.cc ----
  void OnManager(ManagerChanges changes);

  // ---- admission.cc ----
  // What needs no plan: why it may not be asked for, or what was answered before. None: neither.
  absl::StatusOr<std::optional<Submitted>> AnswerAtOnce(const Caller& caller, const JobSpec& spec,
                                                        const std::string& request_key) const;
  // `trial`: plans that were made a moment ago.
  // `earliest`: its deadline has been found for it. If it is refused all the same nothing is left of it.
  absl::StatusOr<Submitted> Submit(const Caller& caller, JobSpec spec, const std::string& request_key,
                                   std::optional<Trial> trial, bool earliest);
  absl::Status AgentsAreBack(const Plan& refused) const;
  // As it was answered; nullptr: it has not been.
  const JobRecord* AnsweredBefore(uint32_t uid, const std::string& request_key) const;
  absl::StatusOr<PlanningTask> DryRun(const JobSpec& spec) const;
  absl::Status TakesDeadlines() const;
  // Remembers what its user is told, for when the cluster manager has the job.
  absl::StatusOr<Time> Promise(const JobSpec& spec, Plan plan);

  // What the caller asks for will be journalled: whether that is too much by now.
  absl::Status Spend(const Caller& caller, size_t bytes) {
    return caller.is_operator ? absl::OkStatus() : allowances_.Take(caller.uid, bytes, policy_, clock_.Now());
  }

  // ---- verbs.cc ----
  absl::Status MayFreeze(const Caller& caller, const JobRecord& job) const;
  absl::Status Suspend(JobRecord& job);
  absl::Status Resume(JobRecord& job);
  bool HasRoomToGoOn(const JobRecord& job) const;
  std::vector<const JobRecord*> RunningBeside(const JobRecord& job, const NodeId& node) const;
  std::map<NodeId, Resources> RoomBesideOthers(const JobRecord& job) const;
  absl::Status MayBeSavedTo(const JobRecord& job, Tier tier) const;
  // image_quota.cc. The superseded images to delete for an image of it, if the caller is bound to the quota
  // and the job would leave one. An error: they would not be enough.
  absl::StatusOr<std::vector<CheckpointId>> MakesRoomFor(const Caller& caller, const JobRecord& job) const;
  void GiveUpImages(const std::vector<CheckpointId>& ids);
  absl::StatusOr<CheckpointId> OrderCheckpoint(JobRecord& job, Tier tier);
  absl::Status Vacate(JobRecord& job, Tier tier);
  absl::Status Migrate(JobRecord& job, std::vector<NodeId> nodes);
  absl::Status TryAgain(JobRecord& job);
  absl::Status Restart(JobRecord& job, const std::string& by);
  absl::Status Kill(JobRecord& job, const std::string& by);
  absl::Status Cordon(const NodeId& node, bool cordoned);
  absl::Status Lose(const NodeId& node, const std::string& by);  // lost.cc
  absl::Status Verify(const CheckpointId& id, VerifyCallback done);
  absl::StatusOr<std::map<int, NodeId>> WhoHas(const CheckpointRecord& checkpoint) const;
  absl::StatusOr<bool> WaitWithOthers(const CheckpointId& id, VerifyCallback& done);
  absl::Status DeleteCheckpoint(const CheckpointId& id);
  // kUnavailable while the journal cannot be written: nothing may be decided. outage.cc
  absl::Status Ready() const;
  // The job, if there is one and the caller may act on it. Counts as a request of the caller's.
  absl::StatusOr<JobRecord*> Find(const Caller& caller, JobId id);
  absl::StatusOr<JobRecord*> FindOwner(const Caller& caller, const CheckpointId& id);

  ClusterState state_;
  Retention retention_;
  Duration silent_after_{0};  // see SetSilence()
  mutable std::mutex mutex_;
  Inbox inbox_;             // with a lock of its own
  LimitedLog limited_log_;  // of what users and nodes can cause as often as they like; with a lock of its own
  std::mutex dry_running_;  // one at a time, for each takes a whole core; taken before mutex_
  Policy policy_;
  int policy_failures_ = 0;
  Allowances allowances_;

 private:
  // ---- advance.cc ----
  void LookAtAll();
  void RegainMethods();
  absl::Status Replay();
  void Record(JobId job, EventBody body);
  void Move(JobRecord& job, JobMoved move);
  absl::Status Flush();
  void Command(const NodeId& node, v1::ToAgent command);
  void SendOut();
  void FailAsTooLong(const NodeId& node, const v1::ToAgent& command);
  int64_t FreshOp() { return ++last_op_; }

  // ---- seen.cc ----
  TaskId TaskOf(const JobRecord& job, int rank) const {
    return TaskId{job.id, job.incarnation, job.first_rank + rank};
  }
  const ObservedTask* TaskOn(const NodeId& node, const TaskId& id) const;  // null: nobody has heard of it
  TaskSeen Seen(const JobRecord& job, int rank) const;
  bool IsConnected(const NodeId& node) const;

  // ---- silence.cc ----
  bool IsHeard(const NodeId& node) const;  // it is connected, and not silent
  void NoteBeat(const NodeId& node, ObservedNode& observed);
  void LookForSilence(Time last_look);

  // ---- seen.cc ----
  // Ranks that have not exited.
  std::vector<int> LiveRanks(const JobRecord& job) const;

  // ---- admission.cc ----
  absl::Status CheckRule(const JobSpec& spec) const;
  absl::Status CheckMethods(const JobSpec& spec) const;
  absl::Status CheckGraces(const JobSpec& spec) const;
  absl::Status CheckCount(const Caller& caller) const;
  double NodeHoursOf(uint32_t uid) const;
  Duration HoldOf(const JobSpec& spec) const;
  bool Postpone(const JobSpec& spec, Plan& plan) const;
  bool Queue(const JobSpec& spec, Plan& plan) const;
  bool CouldEverFit(const JobSpec& spec) const;

  // ---- waits.cc ----
  absl::Status CheckEverFits(const JobSpec& spec) const;
  bool MayHaveUnknownNodes() const;
  std::string WhyNotYet(const JobRecord& job) const;
  std::string WhyInQueue(const JobRecord& job) const;
  std::string WhyRequestWaits(const JobRecord& job) const;
  std::string WhyHangs(const JobRecord& job) const;
  std::string WhoIsAway(const JobRecord& job) const;

  // ---- walltime.cc ----
  bool IsSeenRunning(const JobRecord& job) const;
  bool EndOverdue(JobRecord& job);
  std::string WhyOverdue(const JobRecord& job) const;

  // ---- observe.cc ----
  // Events that follow from what is observed of this job. True if there was one.
  bool Judge(JobRecord& job);
  bool JudgeExits(JobRecord& job);
  bool JudgeLost(JobRecord& job);
  bool JudgeGpuState(JobRecord& job);
  bool JudgeStart(JobRecord& job);
  bool StartIsOnItsWay(const JobRecord& job) const;
  bool JudgeFreeze(JobRecord& job);
  bool JudgeDump(JobRecord& job);
  void NoteFailure(const JobRecord& job, int rank);
  bool JudgeCommit(JobRecord& job);
  bool JudgeSave(JobRecord& job);
  bool HaveAllSaved(const JobRecord& job) const;
  bool JudgeKill(JobRecord& job);

  // ---- failed.cc ----
  struct Retry {
    int rounds = 0;
    Time at;  // until then it is tried on nodes that it has not been tried on in this round only
    std::set<NodeId> tried;  // in this round
  };
  void StartFailed(JobRecord& job, int rank, const v1::TaskReport& report);
  void SavedStartFailed(JobRecord& job, int rank, const v1::TaskReport& report, const std::string& why);
  void RestoreFailed(JobRecord& job, int rank, const v1::TaskReport& report);
  void Pause(const JobRecord& job, int failures);
  std::string TryElsewhereOrLater(const JobRecord& job, int rank, bool outside);
  const std::set<NodeId>* NotOn(const JobRecord& job) const;
  bool WaitsForItsRound(const JobRecord& job) const;
  bool MayStartOver(const JobRecord& job) const;
  bool NeedsAWord(const JobRecord& job) const;
  static std::string HowToStartOver(const JobRecord& job);
  void FallBack(JobRecord& job, const std::string& why);
  void FallBackBehindSave(JobRecord& job, const std::string& why);
  void StartAnew(JobRecord& job, const std::string& why);
  std::vector<NodeId> WhereTasksMayLive(const JobRecord& job) const;

  // ---- reports.cc ----
  void OnDamaged(const NodeId& node, const v1::DamagedImage& image);
  void OnReport(const NodeId& node, const v1::TaskReport& report);
  bool HasRoomFor(const NodeId& node, const v1::TaskReport& report, const v1::TaskReport* before);
  bool MayClaim(const NodeId& node);
  void TakeNotes(const NodeId& node, const v1::TaskReport& report);
  bool IsPlacedOn(const NodeId& node, const TaskId& task) const;
  void OnResult(const NodeId& node, const v1::OpResult& result);
  void OnVerified(const v1::OpResult& result);
  void DropVerifications(const NodeId& node, const std::string& why);
  void OnDeleted(const NodeId& node, const v1::OpResult& result);

  // ---- hosted.cc ----
  struct HostedTask {
    NodeId node;
    const v1::TaskReport* report;
  };
  void Follow(const NodeId& node, const v1::TaskReport& report);
  JobRecord* FindHosted(const v1::TaskReport& report);
  std::vector<HostedTask> TasksTogether(const NodeId& node, const v1::TaskReport& report) const;
  bool IsStepOf(const JobRecord& job, const TaskId& task) const;
  bool BackToScript(JobRecord& job);
  bool GoesOnInQueue(const JobRecord& job) const;
  bool HasOtherSteps(const JobRecord& job) const;
  bool AreWholeJob(JobId id, const std::vector<HostedTask>& tasks) const;
  bool MayRunOn(JobId id, const NodeId& node) const;
  // Why images on its nodes' own disks are none that it could go on from; empty: they are.
  std::string WhyNotLocal(const JobRecord& job) const;

  // ---- queue.cc ----
  const ManagedJob* QueuedAs(JobId id) const;  // null: it is not in a cluster manager's queue
  void FollowQueue(JobId id);
  void Enlist(const ManagedJob& queued);
  bool MayEnlist(const ManagedJob& queued) const;
  bool TakePromise(const JobSpec& spec);
  bool GiveUpInVain(JobRecord& request);
  Resources HeldBy(const JobRecord& job, const NodeId& node) const;
  void FollowRequest(JobRecord& job, const ManagedJob* queued);
  void FollowWaiting(JobRecord& job, const ManagedJob* queued);
  void FollowWaitingAll();
  // As the manager has started it again, unless its agents have reported it.
  const ManagedJob* ComingBack(const JobRecord& job) const;
  void TakeOthers(std::map<NodeId, Resources>& room) const;
  Resources CapacityOf(const NodeId& node, const ObservedNode& observed) const;

  // ---- rescue.cc ----
  void Rescue();
  struct Doomed {
    JobRecord* job;
    Time by;
  };
  std::vector<Doomed> WhoIsDoomed();
  bool OrderRescue(JobRecord& job, JobMoved move, Time by);

  // ---- wishes.cc ----
  ManagerWishes WishesNow() const;
  void WishFor(const JobRecord& request, ManagerWishes& wishes) const;

  // ---- requests.cc ----
  bool AdvanceRequests();
  bool Grant(JobRecord& request);
  PlanningTask TaskFor(JobId id, const JobSpec& spec) const;
  std::vector<Plan> PlanFor(JobId id, const JobSpec& spec) const;
  bool StandsOn(const Trial& trial) const;
  void Adopt(std::vector<Plan> plans);
  void Order(const Plan& plan, const PlanStep& step);
  bool OrderWhatIsDue(const Plan& plan);
  bool MayLeaveNow(const JobRecord& job) const;
  void DumpFrozen();
  bool IsInTheWay(const JobRecord& job) const;
  bool WillLeave(const Plan& plan, const JobRecord& job) const;
  bool IsFor(const JobRecord& request, const std::vector<NodeId>& nodes) const;
  bool HasFailed(const JobRecord& request, const Plan& plan);
  bool IsBrieflyAway(const NodeId& node, Time start_by) const;
  bool StillHolds(const JobRecord& request, const Plan& plan) const;
  bool RunsLate(const JobRecord& request, const Plan& plan) const;
  std::set<JobId> GoneOf(const Plan& plan) const;
  bool CouldBeSooner(const JobRecord& request) const;
  std::optional<Time> ExpectedEnd(const JobRecord& job) const;
  JobRecord* WantsAnotherPlan(JobId id);  // null: no
  void AdoptInstead(const JobRecord& request, std::vector<Plan> plans);
  void WithdrawOrders();
  Request MakeRequest(JobId id, const JobSpec& spec) const;
  // ---- snapshot.cc ----
  Time ExpectedRelease(const JobRecord& job) const;
  JobView ViewOf(const JobRecord& job) const;
  JobView ViewOfComingBack(const JobRecord& job, const ManagedJob& queued) const;
  Snapshot TakeSnapshot(const std::vector<JobId>& requests) const;
  Snapshot SnapshotFor(const JobSpec& spec, const std::vector<JobId>& requests) const;
  Bytes LastImage(const JobRecord& job) const;
  Bytes ImageOf(const JobRecord& job) const;

  // ---- room.cc ----
  struct Account {  // of a usable node
    Resources capacity;
    Resources free;  // what neither jobs nor strays hold; it may be promised to one that waits
    bool operator==(const Account&) const = default;
  };
  const std::map<NodeId, Account>& Accounts() const;
  std::optional<Account> AccountOf(const NodeId& node) const;
  // Something happened that may have changed the node's account.
  void Touch(const NodeId& node) { stale_.insert(node); }
  void TouchAll();
  void TouchNodesOf(JobId job);
  void TouchTasksOf(JobId job);
  std::pair<bool, int> StandingOf(JobId job) const;
  // What is free on each usable node, as these requests see it, their own reservations included. None: as the
  // batch queue sees it, without what is reserved or held for suspended jobs.
  std::map<NodeId, Resources> Room(const std::vector<JobId>& requests) const;
  bool IsEnding(const JobRecord& request) const;
  void GiveWhatIsFrozen(std::map<NodeId, Resources>& room) const;
  Resources HeldByStrays(const NodeId& node) const;
  void TakeLeftTasks(std::map<NodeId, Resources>& room) const;
  bool Usable(const NodeId& node) const;
  // Of the usable nodes, were they empty.
  std::map<NodeId, Resources> Capacities() const;

  // ---- schedule.cc ----
  std::vector<NodeId> WithoutExited(const JobRecord& job, std::vector<NodeId> tied) const;
  std::vector<NodeId> TiedTo(const JobRecord& job) const;
  std::vector<NodeId> VacatedBy(const JobRecord& job) const;
  Duration TimeLeft(const JobRecord& job) const;
  void AddReleases(std::vector<NodeRoom>& room) const;
  // Jobs that made way: frozen ones go on or move elsewhere, parked ones are restored.
  bool BringBack();
  std::vector<Returning> WhoMayReturn() const;
  bool MayReturn(const JobRecord& job) const;
  Returning ReturningOf(const JobRecord& job) const;
  bool MustWait(const JobRecord& job) const;
  bool HasLeftTasks(const JobRecord& job) const;
  std::map<NodeId, Time> HeldUntil() const;
  Duration TimeToMove(const JobRecord& job) const;
  bool GoesOnFromImage(const JobRecord& job) const;
  bool PlaceWaiting();
  void KeepHeadroom(std::vector<NodeRoom>& room, const std::vector<Waiting>& waiting) const;
  Duration CheckpointIntervalOf(const JobRecord& job) const;
  bool LeavesWithin(const JobRecord& job, Duration time) const;
  bool CheckpointOnSchedule(JobRecord& job);
  void ExpireCheckpoints(JobRecord& job);
  bool MayComeBack(const JobRecord& job) const;
  CheckpointId CheckpointOf(const JobRecord& job, int number) const;
  // The same without a caller.
  absl::StatusOr<std::vector<CheckpointId>> MakesRoomForImage(const JobRecord& job) const;
  bool HasRoomOnSchedule(const JobRecord& job);
  Bytes SizeOfNextImage(const JobRecord& job) const;
  Duration TimeToDump(const JobRecord& job, Tier tier) const;
  JobMoved OrderDump(const JobRecord& job, Tier tier) const;
  // As it asked for; none if it is frozen already.
  Duration NoticeOf(const JobRecord& job) const;
  // A dump of which it is told.
  JobMoved OrderLeave(const JobRecord& job, Tier tier) const;
  // The request that this job made way for still needs the nodes.
  bool RequestStillWants(JobId request) const;

  // ---- lost.cc ----
  bool IsKnown(const NodeId& node) const;
  absl::Status MayBeLost(const NodeId& node) const;
  bool IsLost(const NodeId& node) const { return state_.IsLost(node); }
  bool JudgeImages(JobRecord& job);
  bool JudgeGivenUp(JobRecord& job);
  std::vector<NodeId> TargetOf(const JobRecord& job) const;

  // ---- outage.cc ----
  void BeginOutage(const absl::Status& status);
  void EndOutage();
  void TakeBack();
  void LookAtEverything();

  // ---- restored.cc ----
  void NoteRestored();
  bool IsCatchingUp() const { return clock_.Now() < caught_up_at_; }
  static int NextIncarnation(const JobRecord& job);
  void CatchUp(const v1::TaskReport& report);
  std::vector<NodeId> WhereItLives(const JobRecord& job, int incarnation) const;
  void HoldBackBeside(const TaskId& id, v1::TaskPhase phase);
  bool JudgeFrozen(JobRecord& job);
  bool MayThaw(const JobRecord& job) const;
  void LetGo(const NodeId& node, const TaskId& id, const v1::TaskReport& report);

  // ---- retention.cc ----
  void ExpireFailed();
  void ForgetEnded();
  std::vector<JobId> WhoMayBeForgotten();
  std::set<JobId> StillSpokenOf() const;
  bool HasNoImage(const JobRecord& job);
  bool KeepsImages(const JobRecord& job) const;
  bool ItsNodesAreThere(const JobRecord& job) const;
  void DropTracesOf(JobId id);
  void CompactJournal();

  // ---- act.cc ----
  void Act();
  void PutStart(const JobRecord& job, v1::ToAgent& command) const;
  void ActOnJob(JobRecord& job);
  // Somebody has recorded that this task is to be there.
  bool IsWanted(const JobRecord& job, const NodeId& node, const TaskId& task) const;
  void ActOnStrays();
  bool IsLeftAlone(const JobRecord& job, const ObservedTask& task) const;
  void ActOnLeftTasks();
  void NoteStartsOf(const JobRecord& job);
  void EndStarts();
  // A task of this job's last incarnation whose end is waited for: its report is kept until then.
  static bool IsLeftTask(const JobRecord& job, const NodeId& node, const TaskId& task);
  void EndStray(const NodeId& node, const TaskId& task, int64_t op);
  void ActOnDeletions();
  bool IsBeingWritten(const CheckpointRecord& checkpoint, int rank) const;
  // The node to ask for an image: the one that dumped it, or for a shared one any that is there.
  NodeId NodeWithImage(const CheckpointRecord& checkpoint, int rank) const;
  // Sends at most once for each (task, op, kind), unless nothing has changed for a while.
  void Send(const NodeId& node, const TaskId& task, v1::ToAgent command);
  int64_t OpOf(const JobRecord& job) const;
  // How long work on a job's GPUs may be waited for before a drain; 0: as long as usual.
  Duration LockPatience(const JobRecord& job) const;

  Journal& journal_;
  Platform& platform_;
  AgentLink& agents_;
  const Clock& clock_;
  EventLog events_;

  std::vector<Event> unflushed_;
  std::vector<std::pair<NodeId, v1::ToAgent>> outbox_;
  absl::Status health_;  // not OK while the journal cannot be written: nothing may be decided or done
  Time try_at_;          // when it is tried again, and how long after the last time
  Duration try_after_{0};

  mutable std::map<NodeId, Account> accounts_;
  mutable std::set<NodeId> stale_;  // nodes whose accounts are to be made again

  // Jobs whose reports or state changed since they were last judged.
  std::set<JobId> to_judge_;
  std::set<JobId> held_back_;  // frozen, and not to be thawed yet: looked at again by the next Tick()
  // Of jobs that ended while they were started: the orders to start these may still be on their way.
  std::map<NodeId, std::set<TaskId>> may_start_;
  JobId queue_head_;      // as of the last look, the first that waits for room, and that others wait behind
  bool schedule_ = true;  // something changed that may let a waiting job go on
  ManagerWishes wishes_;  // as they follow from the last look
  bool wish_ = false;     // they are new
  Pace pace_;             // of the looks at the whole cluster that follow
  Time last_full_look_;
  std::map<JobId, std::set<JobId>> gone_tried_;  // of requests: those awaited and gone, when last planned
  std::map<JobId, Time> in_doubt_;               // requests whose plans do not hold, since when
  std::map<JobId, int> to_replan_;               // and how often that was done in vain
  std::deque<Promised> promises_;                // to jobs that a cluster manager does not have yet
  std::map<JobId, Time>
      not_before_;  // of jobs that a node could not start, restore or thaw: the next attempt
  std::map<JobId, Retry>
      retries_;  // of jobs that could not be restored, though nothing is known against the image

  std::map<std::pair<TaskId, NodeId>, Sent> sent_;
  std::map<Image, Deletion> deletions_;
  std::map<int64_t, AskedToDelete> deletion_by_op_;  // those that have not been answered
  int64_t last_op_ = 0;

  std::map<int64_t, AskedToVerify> verifications_;  // by op
  std::map<CheckpointId, std::set<int>> deleted_ranks_;
  Time started_;                  // no agent has been heard before
  Time awake_since_;              // this controller has looked every second or so
  Time agents_back_at_;           // those of the controller before this one are there by then
  std::set<JobId> without_room_;  // jobs of which it is noted that their images would be too many
  Time compact_not_before_;
  Time expire_failed_at_;
  Time caught_up_at_;
};

}  // namespace siding
