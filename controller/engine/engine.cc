#include "controller/engine/engine.h"

#include <algorithm>

#include "common/fault.h"
#include "common/status.h"
#include "controller/engine/impl.h"
#include "controller/wire/check.h"

namespace siding {
namespace {

constexpr size_t kRecentEvents = 20000;
constexpr Duration kFullLook = std::chrono::seconds(1);

}  // namespace

TaskId IdOf(const v1::TaskReport& report) {
  return TaskId{JobId(report.task().job()), report.task().incarnation(), report.task().rank()};
}

bool IsLive(v1::TaskPhase phase) {
  switch (phase) {
    case v1::LAUNCHING:
    case v1::RUNNING:
    case v1::SUSPENDED:
    case v1::DUMPING:
    case v1::PREPARED:
    case v1::RESTORING:
      return true;
    default:
      return false;
  }
}

bool IsGone(v1::TaskPhase phase) { return phase != v1::TASK_PHASE_UNSPECIFIED && !IsLive(phase); }

absl::Status Engine::Impl::Start() {
  SIDING_RETURN_IF_ERROR(journal_.Replay(0, [this](const Event& event) {
    Apply(state_, event);
    recent_.push_back(event);
    if (recent_.size() > kRecentEvents) recent_.pop_front();
  }));
  SIDING_RETURN_IF_ERROR(FaultAt<"engine.replayed: the journal has been read">());
  // Operation numbers for checkpoint commands only have to differ within one life of the controller and from
  // those before it, whose answers may still arrive.
  last_op_ = ToMicros(clock_.Now());
  NoteRestored();
  JudgeAll();
  return Flush();
}

void Engine::Impl::Record(JobId job, EventBody body) {
  Event event{state_.last_seq + 1, clock_.Now(), job, std::move(body)};
  Apply(state_, event);
  if (job != JobId()) to_judge_.insert(job);
  schedule_ = true;
  unflushed_.push_back(std::move(event));
}

void Engine::Impl::Move(JobRecord& job, JobMoved move) {
  if (move.event == JobEvent::kPlace && move.incarnation == 0) move.incarnation = NextIncarnation(job);
  Record(job.id, EventBody(std::move(move)));
}

absl::Status Engine::Impl::Flush() {
  // What follows from decisions of before must not be done either if somebody else decides by now.
  const bool acts = !outbox_.empty() || wish_;
  if (unflushed_.empty() && (!acts || !health_.ok())) return health_;
  FaultHere<"engine.decided: events are about to be written to the journal">();
  const absl::Status written = unflushed_.empty() ? journal_.Confirm() : journal_.Append(unflushed_);
  if (!written.ok()) {
    BeginOutage(written);
    return health_;
  }
  FaultHere<"engine.recorded: events are durable, no order has gone out">();
  try_after_ = Duration(0);
  for (Event& event : unflushed_) {
    spdlog::info("job {} {}: {}", event.job.value(), KindOf(event), Describe(event));
    recent_.push_back(std::move(event));
    if (recent_.size() > kRecentEvents) recent_.pop_front();
  }
  unflushed_.clear();
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status Engine::Impl::Advance() {
  SIDING_RETURN_IF_ERROR(Ready());
  // Each round either records an event or is the last, and the lifecycle table has no cycle that needs no
  // report from outside, so this ends.
  for (bool more = true; more;) {
    more = false;
    while (!to_judge_.empty()) {
      const JobId id = *to_judge_.begin();
      to_judge_.erase(to_judge_.begin());
      auto it = state_.jobs.find(id);
      if (it == state_.jobs.end()) continue;
      while (Judge(it->second)) {
      }
      ExpireCheckpoints(it->second);
      // What Judge recorded put the job on the list again; it has been looked at already.
      to_judge_.erase(id);
      ActOnJob(it->second);
    }
    if (schedule_ && pace_.MayBegin(clock_.Now())) {
      LookAtAll();
      more = !to_judge_.empty();
    }
  }
  if (!Flush().ok()) return Ready();
  for (auto& [node, command] : std::exchange(outbox_, {})) {
    FaultHere<"engine.order: an order is about to go to an agent">();
    agents_.Send(node, std::move(command));
  }
  if (!IsCatchingUp() && std::exchange(wish_, false)) platform_.Want(wishes_);
  return absl::OkStatus();
}

// With a thousand nodes this takes milliseconds, and hundreds of reports may come at once. What is put off is
// made up for by the next call that may look, at the latest by Tick().
void Engine::Impl::LookAtAll() {
  schedule_ = false;
  if (IsCatchingUp()) return;
  const Time began = clock_.Now();
  Rescue();
  WithdrawOrders();
  AdvanceRequests();
  DumpFrozen();
  BringBack();
  PlaceWaiting();
  if (!platform_.manager().empty()) {
    ManagerWishes wishes = WishesNow();
    wish_ |= wishes != wishes_;
    wishes_ = std::move(wishes);
  }
  pace_.Took(began, clock_.Now());
}

void Engine::Impl::JudgeAll() {
  for (const auto& [id, job] : state_.jobs) to_judge_.insert(id);
}

void Engine::Impl::Command(const NodeId& node, v1::ToAgent command) {
  outbox_.emplace_back(node, std::move(command));
}

TaskSeen Engine::Impl::Seen(const JobRecord& job, int rank) const {
  TaskSeen seen;
  if (static_cast<size_t>(rank) >= job.nodes.size()) return seen;
  const NodeId& node = job.nodes[rank];
  if (auto it = state_.observed_nodes.find(node); it != state_.observed_nodes.end()) {
    seen.connected = it->second.connected;
  }
  auto tasks = state_.observed_tasks.find(node);
  if (tasks == state_.observed_tasks.end()) return seen;
  auto task = tasks->second.find(TaskOf(job, rank));
  if (task == tasks->second.end()) return seen;
  seen.known = true;
  seen.report = task->second.report;
  seen.progress = task->second.progress;
  return seen;
}

std::vector<int> Engine::Impl::LiveRanks(const JobRecord& job) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < job.spec.nodes; ++rank) {
    if (!job.exited.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

absl::Status Engine::Impl::OnConnected(const NodeId& node, const v1::Hello& hello) {
  ObservedNode& observed = state_.observed_nodes[node];
  if (observed.connected) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", node.value(),
                     " has an agent connected already; is another one running with the same name?"));
  }
  observed.connected = true;
  observed.last_heard = clock_.Now();
  observed.hello = hello;
  // The list is whole: a task that is not in it is not there.
  auto& tasks = state_.observed_tasks[node];
  for (const auto& [id, task] : tasks) to_judge_.insert(id.job);
  tasks.clear();
  for (const v1::TaskReport& report : hello.tasks()) {
    const TaskId id = IdOf(report);
    if (id.job.value() <= 0 || id.rank < 0) continue;
    tasks[id] = {WithShortTexts(report), std::nullopt};
    to_judge_.insert(id.job);
    Follow(node, report);
    CatchUp(report);
    TakeNotes(node, report);
  }
  std::erase_if(sent_, [&](const auto& sent) { return sent.first.second == node; });
  for (auto& [image, deletion] : deletions_) deletion.sent = Time{};
  for (const auto& [id, job] : state_.unfinished) {
    if (std::find(job->nodes.begin(), job->nodes.end(), node) != job->nodes.end()) to_judge_.insert(id);
  }
  schedule_ = true;
  return absl::OkStatus();
}

void Engine::Impl::OnDisconnected(const NodeId& node) {
  state_.observed_nodes[node].connected = false;
  // Its answers are lost with the connection. Deletions are asked for again.
  std::vector<int64_t> lost;
  for (const auto& [op, asked] : verifications_) {
    if (asked.node == node) lost.push_back(op);
  }
  for (int64_t op : lost) {
    v1::OpResult result;
    result.set_op(op);
    result.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
    result.set_message(absl::StrCat("node ", node.value(), " went away before it had answered"));
    OnVerified(result);
  }
  schedule_ = true;
}

void Engine::Impl::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  ObservedNode& observed = state_.observed_nodes[node];
  observed.last_heard = clock_.Now();
  // Reports come again, with the next heartbeat; what somebody waits for does not.
  if (!health_.ok() && !verifications_.contains(message.result().op())) return;
  switch (message.what_case()) {
    case v1::FromAgent::kHeartbeat: {
      const bool first = observed.heartbeat.ram_available() == 0;
      observed.heartbeat = message.heartbeat();
      observed.heartbeat.clear_tasks();
      observed.heartbeat.clear_damaged();
      for (const v1::DamagedImage& image : message.heartbeat().damaged()) OnDamaged(node, image);
      for (const v1::TaskReport& report : message.heartbeat().tasks()) OnReport(node, report);
      schedule_ |= first;
      break;
    }
    case v1::FromAgent::kReport:
      OnReport(node, message.report());
      break;
    case v1::FromAgent::kProgress: {
      const v1::TaskRef& ref = message.progress().task();
      auto& tasks = state_.observed_tasks[node];
      auto it = tasks.find(TaskId{JobId(ref.job()), ref.incarnation(), ref.rank()});
      if (it != tasks.end()) it->second.progress = message.progress();
      break;
    }
    case v1::FromAgent::kResult:
      OnResult(node, message.result());
      break;
    default:
      break;
  }
}

void Engine::Impl::Tick() {
  const Time now = clock_.Now();
  if (now - last_full_look_ < kFullLook) return;
  last_full_look_ = now;
  if (!health_.ok()) EndOutage();
  if (!health_.ok()) return;
  for (const auto& [id, job] : state_.unfinished) {
    if (job->state != JobState::kRunning || CheckpointOnSchedule(*job)) to_judge_.insert(id);
  }
  ActOnStrays();
  ActOnLeftTasks();
  ForgetEnded();
  ActOnDeletions();
  CompactJournal();
  FollowWaitingAll();
  schedule_ = true;
}

std::vector<Event> Engine::Impl::EventsAfter(int64_t seq, size_t limit, Duration wait) const {
  std::unique_lock lock(mutex_);
  const auto newest = [&] { return recent_.empty() ? 0 : recent_.back().seq; };
  changed_.wait_for(lock, wait, [&] { return newest() > seq; });
  std::vector<Event> events;
  if (newest() <= seq) return events;
  if (recent_.front().seq > seq + 1) {
    const absl::Status status = journal_.Replay(seq, [&](const Event& event) {
      if (events.size() < limit && event.seq < recent_.front().seq) events.push_back(event);
    });
    if (!status.ok()) spdlog::warn("old events cannot be read: {}", std::string(status.message()));
  }
  for (const Event& event : recent_) {
    if (events.size() >= limit) break;
    if (event.seq > seq) events.push_back(event);
  }
  return events;
}

bool Engine::Impl::MayAct(const Caller& caller, const JobRecord& job) const {
  return caller.is_operator || caller.uid == job.spec.uid;
}

// ---- The public face: a lock, a decision, Advance(). ----

Engine::Engine(Policy policy, Journal& journal, Platform& platform, AgentLink& agents, const Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(policy), journal, platform, agents, clock)) {}
Engine::~Engine() = default;

absl::Status Engine::Start() {
  std::lock_guard lock(impl_->mutex_);
  return impl_->Start();
}

absl::StatusOr<Engine::Submitted> Engine::Submit(const Caller& caller, JobSpec spec,
                                                 const std::string& request_key) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  spec.uid = caller.uid;
  spec.user = caller.user;
  auto submitted = impl_->Submit(caller, std::move(spec), request_key);
  SIDING_RETURN_IF_ERROR(impl_->Advance());
  return submitted;
}

absl::StatusOr<Plan> Engine::DryRun(const Caller&, const JobSpec& spec) {
  std::lock_guard lock(impl_->mutex_);
  return impl_->DryRun(spec);
}

absl::StatusOr<Time> Engine::WouldStart(const Caller&, const JobSpec& spec) {
  std::lock_guard lock(impl_->mutex_);
  return impl_->WouldStart(spec);
}

absl::Status Engine::Suspend(const Caller& caller, JobId id) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_RETURN_IF_ERROR(impl_->MayFreeze(caller, *job));
  SIDING_RETURN_IF_ERROR(impl_->Suspend(*job));
  return impl_->Advance();
}

absl::Status Engine::Resume(const Caller& caller, JobId id) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_RETURN_IF_ERROR(impl_->MayFreeze(caller, *job));
  SIDING_RETURN_IF_ERROR(impl_->Resume(*job));
  return impl_->Advance();
}

absl::StatusOr<CheckpointId> Engine::Checkpoint(const Caller& caller, JobId id, Tier tier) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_ASSIGN_OR_RETURN(CheckpointId checkpoint, impl_->OrderCheckpoint(*job, tier));
  SIDING_RETURN_IF_ERROR(impl_->Advance());
  return checkpoint;
}

absl::Status Engine::Vacate(const Caller& caller, JobId id, Tier tier) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_RETURN_IF_ERROR(impl_->Vacate(*job, tier));
  return impl_->Advance();
}

absl::Status Engine::Migrate(const Caller& caller, JobId id, std::vector<NodeId> nodes) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_RETURN_IF_ERROR(impl_->Migrate(*job, std::move(nodes)));
  return impl_->Advance();
}

absl::Status Engine::Kill(const Caller& caller, JobId id) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_ASSIGN_OR_RETURN(JobRecord * job, impl_->Find(caller, id));
  SIDING_RETURN_IF_ERROR(impl_->Kill(*job, caller.user));
  return impl_->Advance();
}

absl::Status Engine::Cordon(const Caller& caller, const NodeId& node, bool cordoned) {
  std::lock_guard lock(impl_->mutex_);
  if (!caller.is_operator) return absl::PermissionDeniedError("only operators may cordon nodes");
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_RETURN_IF_ERROR(impl_->Cordon(node, cordoned));
  return impl_->Advance();
}

absl::Status Engine::VerifyCheckpoint(const Caller& caller, const CheckpointId& id, VerifyCallback done) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_RETURN_IF_ERROR(impl_->FindOwner(caller, id).status());
  SIDING_RETURN_IF_ERROR(impl_->Verify(id, std::move(done)));
  return impl_->Advance();
}

absl::Status Engine::DeleteCheckpoint(const Caller& caller, const CheckpointId& id) {
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());
  SIDING_RETURN_IF_ERROR(impl_->FindOwner(caller, id).status());
  SIDING_RETURN_IF_ERROR(impl_->DeleteCheckpoint(id));
  return impl_->Advance();
}

absl::Status Engine::OnConnected(const NodeId& node, const v1::Hello& hello) {
  SIDING_RETURN_IF_ERROR(CheckNumbers(hello));
  std::lock_guard lock(impl_->mutex_);
  SIDING_RETURN_IF_ERROR(impl_->Ready());  // it dials again
  SIDING_RETURN_IF_ERROR(impl_->OnConnected(node, hello));
  absl::Status status = impl_->Advance();
  if (!status.ok()) impl_->OnDisconnected(node);  // refused: nothing more will be heard of it
  return status;
}

void Engine::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  if (const absl::Status good = CheckNumbers(message); !good.ok()) {
    spdlog::warn("a message from the agent of node {} is ignored: {}", node.value(),
                 std::string(good.message()));
    return;
  }
  std::lock_guard lock(impl_->mutex_);
  impl_->OnMessage(node, message);
  impl_->Advance().IgnoreError();  // it has been logged, and every caller of the API is told
}

void Engine::OnDisconnected(const NodeId& node) {
  std::lock_guard lock(impl_->mutex_);
  impl_->OnDisconnected(node);
  impl_->Advance().IgnoreError();
}

void Engine::Tick() {
  std::lock_guard lock(impl_->mutex_);
  impl_->Tick();
  impl_->Advance().IgnoreError();
}

void Engine::OnManager(ManagerChanges changes) {
  std::lock_guard lock(impl_->mutex_);
  impl_->OnManager(std::move(changes));
  impl_->Advance().IgnoreError();
}

void Engine::Read(const std::function<void(const ClusterState&)>& visit) const {
  std::lock_guard lock(impl_->mutex_);
  visit(impl_->state_);
}

bool Engine::MayAct(const Caller& caller, const JobRecord& job) const { return impl_->MayAct(caller, job); }
bool Engine::MaySee(const Caller& caller, const JobRecord& job) const { return impl_->MaySee(caller, job); }

std::vector<Event> Engine::EventsAfter(int64_t seq, size_t limit, Duration wait) const {
  return impl_->EventsAfter(seq, limit, wait);
}

void Engine::SetPolicy(Policy policy) {
  std::lock_guard lock(impl_->mutex_);
  impl_->policy_ = std::move(policy);
  impl_->JudgeAll();  // it may want fewer checkpoints to be kept
}

void Engine::SetRetention(Retention retention) {
  std::lock_guard lock(impl_->mutex_);
  impl_->retention_ = retention;
}

Policy Engine::policy() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->policy_;
}

void Engine::PolicyFailed() {
  std::lock_guard lock(impl_->mutex_);
  ++impl_->policy_failures_;
}

int Engine::policy_failures() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->policy_failures_;
}

std::string Engine::ClusterManager() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->ClusterManager();
}

bool Engine::IsOperator(const std::string& user) const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->policy_.operators.contains(user);
}

}  // namespace siding
