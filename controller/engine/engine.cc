#include "controller/engine/engine.h"

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"
#include "controller/engine/impl.h"
#include "controller/wire/check.h"

namespace siding {
namespace {

// How many times a request is planned without the lock while what its plan rests on changes.
constexpr int kTentativePlans = 3;
// Forecasts take one part in so many of a core at most, however many ask.
constexpr int kForecastShare = 20;
// The deadline that is tried where the earliest is asked for.
constexpr Duration kSoon = std::chrono::seconds(1);

absl::Status MayCordon(const Caller& caller) {
  return caller.is_operator ? absl::OkStatus()
                            : absl::PermissionDeniedError("only operators may cordon nodes");
}

}  // namespace

absl::StatusOr<TentativePlan> Engine::Impl::MakeTentativePlan(const JobSpec& spec,
                                                              std::vector<PlanKeep>* kept) {
  MutexLock one_at_a_time(dry_running_);
  MutexLock lock(mutex_);
  SIDING_ASSIGN_OR_RETURN(SharedTask task, decide_.admission.DryRun(spec));
  lock.Unlock();
  std::vector<Plan> plans = MakeFirstPlans(*task);
  if (kept != nullptr) *kept = plans.front().kept;
  return PlanTentatively(std::move(task), std::move(plans));
}

std::vector<PlanWithout> Engine::Impl::PlansWithout(JobId request, size_t number) {
  MutexLock one_at_a_time(comparing_);
  MutexLock lock(mutex_);
  const auto basis = decide_.requests.bases().Find(request, number);
  lock.Unlock();
  if (!basis) return {};
  return siding::PlansWithout(*basis->task, {basis->plan});
}

std::shared_ptr<const Engine::Backs> Engine::Impl::Returns() {
  MutexLock forecasts(returns_mutex_);
  const Time began = clock_.Now();
  const bool is_good = returns_ != nullptr && began >= returns_made_ && began < returns_until_;
  // Who asks while one is made has the last, and waits only for the first.
  if (forecasting_) {
    returned_.Wait(returns_mutex_,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(returns_mutex_) { return returns_ != nullptr; });
    return returns_;
  }
  if (is_good) return returns_;
  forecasting_ = true;
  forecasts.Unlock();
  MutexLock lock(mutex_);
  ForecastTask task = decide_.returns.Task();
  lock.Unlock();
  auto made = std::make_shared<const Backs>(MakeForecast(std::move(task)));
  forecasts.Lock();
  forecasting_ = false;
  returns_ = std::move(made);
  returns_made_ = clock_.Now();
  returns_until_ = returns_made_ + kForecastShare * (returns_made_ - began);
  returned_.NotifyAll();
  return returns_;
}

absl::StatusOr<JobSpec> Engine::Impl::WithDeadline(JobSpec spec) {
  if (spec.start_by != kEarliest) return spec;
  spec.start_by = std::max(clock_.Now(), spec.not_before) + kSoon;
  SIDING_ASSIGN_OR_RETURN(const TentativePlan tentative, MakeTentativePlan(spec));
  MutexLock lock(mutex_);
  SIDING_ASSIGN_OR_RETURN(spec.start_by, decide_.admission.EarliestFor(spec, tentative.plans.front()));
  return spec;
}

void Engine::Impl::SetPolicy(Policy policy) {
  state_.policy = std::move(policy);
  decide_.actions.PolicyChanged();
  state_.agenda.AddAll(state_.state);  // it may want fewer checkpoints to be kept
}

absl::Status Engine::Impl::Spend(const Caller& caller, size_t bytes) {
  return caller.is_operator ? absl::OkStatus()
                            : rate_limits_.Take(caller.uid, bytes, state_.policy, clock_.Now());
}

absl::StatusOr<ActionPlan> Engine::Impl::PlanAction(const Caller& caller, const Action& action) {
  MutexLock one_at_a_time(comparing_);
  MutexLock lock(mutex_);
  SIDING_RETURN_IF_ERROR(state_.recorder.Ready());
  if (action.what == Action::What::kCordon) {
    SIDING_RETURN_IF_ERROR(MayCordon(caller));
  } else {
    SIDING_RETURN_IF_ERROR(decide_.verbs.Find(caller, action.job).status());
  }
  SIDING_ASSIGN_OR_RETURN(ActionTask task, decide_.actions.Task(caller, action));
  // One at a time: nobody else waits for more than its two snapshots.
  for (JobId request : task.requests) {
    auto deadline = decide_.actions.DeadlineOf(task, request);
    if (!deadline) continue;
    lock.Unlock();
    task.plan.deadlines.push_back(MakeDeadline(task, *std::move(deadline)));
    lock.Lock();
  }
  return std::move(task.plan);
}

absl::Status Engine::Impl::OnJob(const Caller& caller, JobId id, JobDecision decide) {
  return OnJob(caller, id, {}, decide);
}

absl::Status Engine::Impl::OnJob(const Caller& caller, JobId id, IfUnchanged since, JobDecision decide) {
  MutexLock lock(mutex_);
  SIDING_RETURN_IF_ERROR(state_.recorder.Ready());
  SIDING_ASSIGN_OR_RETURN(const JobRecord* job, decide_.verbs.Find(caller, id));
  SIDING_RETURN_IF_ERROR(Spend(caller, 0));
  since.nodes.insert(since.nodes.end(), job->nodes.begin(), job->nodes.end());
  SIDING_RETURN_IF_ERROR(decide_.actions.Unchanged(since.seq, {id, since.nodes, since.any_node}));
  SIDING_RETURN_IF_ERROR(decide(decide_, *job));
  return Advance();
}

// ---- The public face: a lock, a decision, Advance(). ----

Engine::Engine(Policy policy, Journal& journal, Platform& platform, AgentLink& agents, const Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(policy), journal, platform, agents, clock)) {}
Engine::~Engine() = default;

absl::Status Engine::Start() {
  MutexLock lock(impl_->mutex_);
  return impl_->Start();
}

absl::StatusOr<Engine::Submitted> Engine::Submit(const Caller& caller, JobSpec spec,
                                                 const std::string& request_key) {
  spec.uid = caller.uid;
  spec.user = caller.user;
  const bool earliest = spec.start_by == kEarliest;
  std::optional<TentativePlan> tentative;
  MutexLock lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_ASSIGN_OR_RETURN(auto answer, impl_->decide_.admission.AnswerAtOnce(caller, spec, request_key));
  if (answer) return *std::move(answer);
  SIDING_RETURN_IF_ERROR(impl_->Spend(caller, BytesOf(spec)));
  for (int left = spec.kind == JobKind::kOnDemand ? kTentativePlans : 0; left > 0; --left) {
    lock.Unlock();
    if (earliest) {
      spec.start_by = kEarliest;
      SIDING_ASSIGN_OR_RETURN(spec, impl_->WithDeadline(std::move(spec)));
    }
    auto made = impl_->MakeTentativePlan(spec);
    lock.Lock();
    if (!made.ok()) break;  // Admission::Submit() returns the error again
    tentative = *std::move(made);
    const bool feasible = tentative->plans.front().feasible;
    if (feasible ? impl_->decide_.planning.StillGood(*tentative, spec) : !earliest) break;
  }
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  auto submitted =
      impl_->decide_.admission.Submit(caller, std::move(spec), request_key, std::move(tentative), earliest);
  SIDING_RETURN_IF_ERROR(impl_->Advance());
  return submitted;
}

absl::StatusOr<Plan> Engine::DryRun(const Caller&, const JobSpec& spec, bool compare, bool all_kept) {
  std::vector<PlanKeep> kept;
  SIDING_ASSIGN_OR_RETURN(TentativePlan tentative,
                          impl_->MakeTentativePlan(spec, all_kept ? &kept : nullptr));
  Plan& plan = tentative.plans.front();
  if (plan.earliest) plan.earliest = WithSlack(*plan.earliest, tentative.made);
  if (compare) {
    MutexLock one_at_a_time(impl_->comparing_);
    plan.without = siding::PlansWithout(*tentative.task, tentative.plans);
  }
  if (all_kept) plan.kept = std::move(kept);
  return std::move(plan);
}

std::vector<PlanWithout> Engine::PlansWithout(JobId request, size_t number) {
  return impl_->PlansWithout(request, number);
}

absl::StatusOr<JobSpec> Engine::WithDeadline(JobSpec spec) const {
  return impl_->WithDeadline(std::move(spec));
}

absl::StatusOr<Time> Engine::WouldStart(const Caller&, const JobSpec& spec) {
  {
    MutexLock lock(impl_->mutex_);
    SIDING_RETURN_IF_ERROR(impl_->decide_.admission.TakesDeadlines());
    SIDING_RETURN_IF_ERROR(impl_->decide_.admission.KnowsTheQueue());
  }
  SIDING_ASSIGN_OR_RETURN(TentativePlan tentative, impl_->MakeTentativePlan(spec));
  MutexLock lock(impl_->mutex_);
  Plan& plan = tentative.plans.front();
  if (!plan.feasible && impl_->decide_.watch.IsAnyBrieflyAway(spec.start_by)) {
    return absl::UnavailableError(
        absl::StrCat("not all nodes are known yet; with those that are: ", plan.refusal));
  }
  return impl_->decide_.admission.Promise(spec, std::move(plan));
}

absl::StatusOr<ActionPlan> Engine::PlanAction(const Caller& caller, const Action& action) {
  return impl_->PlanAction(caller, action);
}

absl::Status Engine::Suspend(const Caller& caller, JobId id, int64_t if_unchanged) {
  return impl_->OnJob(caller, id, {if_unchanged},
                      [&](Deciders& decide, const JobRecord& job) -> absl::Status {
                        SIDING_RETURN_IF_ERROR(decide.verbs.MayFreeze(caller, job));
                        return decide.hand.Give(caller, job, {.verb = HandVerb::kSuspend});
                      });
}

absl::Status Engine::Resume(const Caller& caller, JobId id, int64_t if_unchanged) {
  return impl_->OnJob(caller, id, {if_unchanged},
                      [&](Deciders& decide, const JobRecord& job) -> absl::Status {
                        // Whoever may give an order that waits may take it back.
                        SIDING_ASSIGN_OR_RETURN(const bool was_waiting, decide.hand.Withdraw(caller, job));
                        if (was_waiting) return absl::OkStatus();
                        SIDING_RETURN_IF_ERROR(decide.verbs.MayFreeze(caller, job));
                        return decide.verbs.Resume(caller, job);
                      });
}

absl::StatusOr<CheckpointId> Engine::Checkpoint(const Caller& caller, JobId id, Tier tier,
                                                int64_t if_unchanged) {
  CheckpointId checkpoint;
  SIDING_RETURN_IF_ERROR(
      impl_->OnJob(caller, id, {if_unchanged}, [&](Deciders& decide, const JobRecord& job) {
        checkpoint = CheckpointOf(job, job.checkpoint_count + 1);
        return decide.hand.Give(caller, job, {.verb = HandVerb::kCheckpoint, .tier = tier});
      }));
  return checkpoint;
}

absl::Status Engine::Vacate(const Caller& caller, JobId id, Tier tier, int64_t if_unchanged) {
  return impl_->OnJob(caller, id, {if_unchanged}, [&](Deciders& decide, const JobRecord& job) {
    return decide.hand.Give(caller, job, {.verb = HandVerb::kVacate, .tier = tier});
  });
}

absl::Status Engine::Migrate(const Caller& caller, JobId id, std::vector<NodeId> nodes,
                             int64_t if_unchanged) {
  return impl_->OnJob(
      caller, id, {if_unchanged, nodes, nodes.empty()}, [&](Deciders& decide, const JobRecord& job) {
        return decide.hand.Give(caller, job, {.verb = HandVerb::kMigrate, .target = std::move(nodes)});
      });
}

absl::Status Engine::Restart(const Caller& caller, JobId id, bool running) {
  return impl_->OnJob(caller, id, [&](Deciders& decide, const JobRecord& job) {
    return decide.verbs.Restart(caller, job, running);
  });
}

absl::Status Engine::Hold(const Caller& caller, JobId id, int64_t if_unchanged) {
  return impl_->OnJob(caller, id, {if_unchanged},
                      [&](Deciders& decide, const JobRecord& job) { return decide.verbs.Hold(caller, job); });
}

absl::Status Engine::Release(const Caller& caller, JobId id, int64_t if_unchanged) {
  return impl_->OnJob(caller, id, {if_unchanged}, [&](Deciders& decide, const JobRecord& job) {
    return decide.verbs.Release(caller, job);
  });
}

absl::Status Engine::Update(const Caller& caller, JobId id, const JobChange& change) {
  return impl_->OnJob(caller, id, [&](Deciders& decide, const JobRecord& job) {
    return decide.verbs.Update(caller, job, change);
  });
}

absl::Status Engine::Kill(const Caller& caller, JobId id, int64_t if_unchanged) {
  MutexLock lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_ASSIGN_OR_RETURN(const JobRecord* job, impl_->decide_.verbs.Find(caller, id));
  // Otherwise not counted: what a user has running can always be ended, and each job once.
  if (if_unchanged != 0) SIDING_RETURN_IF_ERROR(impl_->Spend(caller, 0));
  SIDING_RETURN_IF_ERROR(impl_->decide_.actions.Unchanged(if_unchanged, {id, job->nodes}));
  SIDING_RETURN_IF_ERROR(impl_->decide_.verbs.Kill(*job, caller.user));
  return impl_->Advance();
}

absl::Status Engine::Cordon(const Caller& caller, const NodeId& node, bool cordoned, int64_t if_unchanged) {
  MutexLock lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(MayCordon(caller));
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_RETURN_IF_ERROR(impl_->decide_.actions.Unchanged(if_unchanged, {JobId(), {node}}));
  SIDING_RETURN_IF_ERROR(impl_->decide_.verbs.Cordon(caller, node, cordoned));
  return impl_->Advance();
}

absl::Status Engine::Lose(const Caller& caller, const NodeId& node, int64_t if_unchanged) {
  MutexLock lock(impl_->mutex_);
  if (!caller.is_operator) return absl::PermissionDeniedError("only operators may say that a node is lost");
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_RETURN_IF_ERROR(impl_->decide_.actions.Unchanged(if_unchanged, {JobId(), {node}}));
  SIDING_RETURN_IF_ERROR(impl_->decide_.node_loss.Lose(node, caller.user));
  return impl_->Advance();
}

absl::Status Engine::VerifyCheckpoint(const Caller& caller, const CheckpointId& id, VerifyCallback done) {
  MutexLock lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_RETURN_IF_ERROR(impl_->decide_.verbs.FindOwner(caller, id).status());
  SIDING_RETURN_IF_ERROR(impl_->act_.verifications.Verify(id, std::move(done)));
  return impl_->Advance();
}

absl::Status Engine::DeleteCheckpoint(const Caller& caller, const CheckpointId& id) {
  MutexLock lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());
  SIDING_RETURN_IF_ERROR(impl_->decide_.verbs.FindOwner(caller, id).status());
  SIDING_RETURN_IF_ERROR(impl_->decide_.verbs.DeleteCheckpoint(caller, id));
  return impl_->Advance();
}

absl::Status Engine::OnConnected(const NodeId& node, const v1::Hello& hello) {
  SIDING_RETURN_IF_ERROR(CheckNumbers(hello));
  MutexLock lock(impl_->mutex_);
  impl_->TakeMessages();
  SIDING_RETURN_IF_ERROR(impl_->state_.recorder.Ready());  // it dials again
  SIDING_RETURN_IF_ERROR(impl_->observe_.reports.OnConnected(node, hello));
  absl::Status status = impl_->Advance();
  if (!status.ok())
    impl_->observe_.reports.OnDisconnected(node);  // refused: no more messages will come from it
  return status;
}

void Engine::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  if (const absl::Status good = CheckNumbers(message); !good.ok()) {
    impl_->limited_log_.Warn(
        absl::StrCat("node ", node.value()),
        absl::StrCat("a message from the agent of node ", node.value(), " is ignored: ", good.message()));
    return;
  }
  if (!impl_->inbox_.Add(node, message)) return;
  MutexLock lock(impl_->mutex_);
  if (impl_->inbox_.size() == 0) return;  // a thread that had the lock before has handled it
  impl_->Advance().IgnoreError();         // it has been logged, and every caller of the API is told
}

void Engine::OnDisconnected(const NodeId& node) {
  MutexLock lock(impl_->mutex_);
  impl_->TakeMessages();  // its last ones, too
  impl_->observe_.reports.OnDisconnected(node);
  impl_->Advance().IgnoreError();
}

void Engine::Tick() {
  {
    MutexLock lock(impl_->mutex_);
    impl_->Tick();
    impl_->Advance().IgnoreError();
  }
  impl_->ReplanRequests();
}

void Engine::OnManager(ManagerChanges changes) {
  MutexLock lock(impl_->mutex_);
  impl_->observe_.queue.OnManager(std::move(changes));
  impl_->Advance().IgnoreError();
}

void Engine::Read(const std::function<void(const ClusterState&)>& visit) const {
  MutexLock lock(impl_->mutex_);
  visit(impl_->state_.state);
}

bool Engine::MayAct(const Caller& caller, const JobRecord& job) const { return siding::MayAct(caller, job); }
bool Engine::MaySee(const Caller& caller, const JobRecord& job) const {
  impl_->mutex_.AssertHeld();  // by Read()
  return impl_->decide_.verbs.MaySee(caller, job);
}

std::string Engine::WhyWaits(const JobRecord& job) const {
  impl_->mutex_.AssertHeld();  // by Read()
  return impl_->decide_.waits.WhyWaits(job);
}

bool Engine::MaySeeAll(const Caller& caller) const { return caller.is_operator || !policy().private_jobs; }

std::shared_ptr<const Engine::Backs> Engine::Returns() const { return impl_->Returns(); }

size_t Engine::MessagesWaiting() const { return impl_->inbox_.size(); }

bool Engine::IsConsistent() const {
  MutexLock lock(impl_->mutex_);
  return impl_->state_.accounts.IsConsistent();
}

absl::StatusOr<std::vector<Event>> Engine::ReadEvents(int64_t seq, size_t limit, Duration wait) const {
  return impl_->events_.Read(seq, limit, wait);
}

std::vector<Event> Engine::EventsAfter(int64_t seq, size_t limit, Duration wait) const {
  return impl_->events_.After(seq, limit, wait);
}

void Engine::SetPolicy(Policy policy) {
  MutexLock lock(impl_->mutex_);
  impl_->SetPolicy(std::move(policy));
}

void Engine::ChangePolicy(Policy policy, PolicyChanged change) {
  MutexLock lock(impl_->mutex_);
  impl_->SetPolicy(std::move(policy));
  if (change.changes.empty() || !impl_->state_.recorder.Ready().ok()) return;
  impl_->state_.recorder.Record(JobId(), std::move(change));
  impl_->Advance().IgnoreError();  // it has been logged
}

void Engine::SetRetention(Retention retention) {
  MutexLock lock(impl_->mutex_);
  impl_->state_.retention = retention;
}

void Engine::SetSilence(Duration after) {
  MutexLock lock(impl_->mutex_);
  impl_->observe_.silence.set_after(after);
}

void Engine::SetCertificateEnd(std::optional<Time> ends) {
  MutexLock lock(impl_->mutex_);
  impl_->observe_.expiries.set_own(ends);
}

std::optional<Time> Engine::certificate_end() const {
  MutexLock lock(impl_->mutex_);
  return impl_->observe_.expiries.own();
}

Policy Engine::policy() const {
  MutexLock lock(impl_->mutex_);
  return impl_->state_.policy;
}

void Engine::PolicyFailed() {
  MutexLock lock(impl_->mutex_);
  ++impl_->policy_failures_;
}

int Engine::policy_failures() const {
  MutexLock lock(impl_->mutex_);
  return impl_->policy_failures_;
}

bool Engine::JournalCanBeWritten() const {
  MutexLock lock(impl_->mutex_);
  return impl_->state_.recorder.healthy();
}

int64_t Engine::quota_refusals() const {
  MutexLock lock(impl_->mutex_);
  return impl_->rate_limits_.refused();
}

Time Engine::Now() const { return impl_->clock_.Now(); }

std::string Engine::ClusterManager() const {
  MutexLock lock(impl_->mutex_);
  return impl_->platform_.manager();
}

bool Engine::IsOperator(const std::string& user) const {
  MutexLock lock(impl_->mutex_);
  return impl_->state_.policy.operators.contains(user);
}

}  // namespace siding
