// Observe, decide, record, act: the engine's loop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/logging.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "controller/engine/impl.h"

namespace siding {
namespace {

constexpr Duration kFullLook = std::chrono::seconds(1);
// A request whose plans were outdated so often before they were done is planned with the lock.
constexpr int kUnlockedPlans = 3;

}  // namespace

absl::Status Engine::Impl::Start() {
  SIDING_RETURN_IF_ERROR(state_.recorder.Replay());
  SIDING_RETURN_IF_ERROR(FaultAt<"engine.replayed: the journal has been read">());
  StartUp& startup = state_.startup;
  startup.started = clock_.Now();
  if (state_.state.last_seq > 0) startup.agents_back_at = startup.started + kAgentsDial;
  act_.orders.NumberFrom(ToMicros(startup.started));
  observe_.copy.NoteRestored();
  state_.agenda.AddAll(state_.state);
  return Flush();
}

void Engine::Impl::TakeMessages() {
  for (const Inbox::Item& item : inbox_.Take()) observe_.reports.OnMessage(item.node, item.message);
}

absl::Status Engine::Impl::Advance() {
  TakeMessages();
  SIDING_RETURN_IF_ERROR(state_.recorder.Ready());
  Agenda& agenda = state_.agenda;
  // Each round either records an event or is the last, and the lifecycle table has no cycle that needs no
  // report from outside, so this ends.
  for (bool more = true; more;) {
    more = false;
    while (!agenda.jobs.empty()) {
      const JobId id = *agenda.jobs.begin();
      agenda.jobs.erase(agenda.jobs.begin());
      const auto job = state_.state.jobs.find(id);
      if (job == state_.state.jobs.end()) continue;
      while (observe_.job.Observe(job->second)) {
      }
      decide_.checkpoints.ExpireCheckpoints(job->second);
      // What Observe() recorded put the job on the list again; it has been looked at already.
      agenda.jobs.erase(id);
      act_.jobs.Act(job->second);
      observe_.stragglers.Note(job->second);
    }
    if (agenda.schedule && throttle_.Allows(clock_.Now())) {
      Schedule();
      more = !agenda.jobs.empty();
    }
  }
  act_.steps.Act();
  // An order does not wait for the look that the throttle has put off, and may be one to make room.
  if (agenda.schedule && !act_.orders.empty() && !state_.startup.IsCatchingUp(clock_.Now())) BuildDesired();
  if (!Flush().ok()) return state_.recorder.Ready();
  // Before orders go out: whoever ends a pod must know by then for whom its node is kept.
  if (!state_.startup.IsCatchingUp(clock_.Now()) && std::exchange(agenda.desired, false))
    platform_.SetDesired(desired_);
  SendOut();
  return absl::OkStatus();
}

// With a thousand nodes this takes milliseconds, and hundreds of reports may come at once. A call that the
// throttle does not allow is made up for by the next one that it does, at the latest by Tick().
void Engine::Impl::Schedule() {
  state_.agenda.schedule = false;
  if (state_.startup.IsCatchingUp(clock_.Now())) return;
  const Time began = clock_.Now();
  decide_.rescue.SaveDoomed();
  decide_.requests.WithdrawOrders();
  decide_.requests.Advance();
  decide_.hand.BeginWaiting();
  decide_.requests.DumpFrozen();
  decide_.way_backs.BringBack();
  decide_.batch.PlaceWaiting();
  BuildDesired();
  throttle_.Finished(began, clock_.Now());
}

void Engine::Impl::BuildDesired() {
  if (platform_.manager().empty()) return;
  DesiredState desired = act_.desired.Build();
  // The first one is told though nothing be in it: what is left of an earlier controller's is taken back
  // then.
  const bool is_first = !std::exchange(desired_is_told_, true);
  state_.agenda.desired |= is_first || desired != desired_;
  desired_ = std::move(desired);
}

absl::Status Engine::Impl::Flush() {
  // Orders from earlier decisions must not be sent either if another controller has taken over.
  const bool acts = !act_.orders.empty() || state_.agenda.desired;
  const bool was_healthy = state_.recorder.healthy();
  absl::Status durable = state_.recorder.Flush(acts);
  if (!durable.ok() && was_healthy) {
    // Orders that are not sent get no answer, and events that were taken back count as not seen.
    for (const int64_t op : act_.orders.Drop()) act_.verifications.Drop(op);
    act_.deletions.TakeBack();
    act_.copies.AskAgain();
  }
  return durable;
}

void Engine::Impl::SendOut() {
  for (const auto& [node, command] : act_.orders.SendOut()) FailAsTooLong(node, command);
}

// Submissions have limits far below this one. A longer order would break the agent's stream each time it is
// sent, and with it the orders of all jobs there. It counts as refused by the agent.
void Engine::Impl::FailAsTooLong(const NodeId& node, const v1::ToAgent& command) {
  const std::string why = absl::StrCat("its order has ", command.ByteSizeLong(),
                                       " bytes, and an agent is sent ", kMostOrder, " at most");
  spdlog::error("job {} on {}: {}", command.task().job(), node.value(), why);
  v1::FromAgent message;
  v1::TaskReport& report = *message.mutable_report();
  *report.mutable_task() = command.task();
  report.set_op(command.op());
  report.set_error(why);
  if (command.has_launch()) report.set_phase(v1::LAUNCH_FAILED);
  if (command.has_restore()) report.set_phase(v1::RESTORE_FAILED);
  if (command.has_launch() || command.has_restore()) observe_.reports.OnMessage(node, message);
}

void Engine::Impl::Tick() {
  const Time now = clock_.Now();
  Agenda& agenda = state_.agenda;
  if (now - last_full_look_ < kFullLook) {
    agenda.schedule |= StepIsDue(last_full_look_, now);
    return;
  }
  observe_.silence.DetectSilence(std::exchange(last_full_look_, now));
  if (!state_.recorder.healthy() && state_.recorder.EndOutage()) LookAtEverything();
  if (!state_.recorder.healthy()) return;
  agenda.jobs.merge(agenda.next_tick);
  agenda.next_tick.clear();
  for (const auto& [id, job] : state_.state.unfinished) {
    if (decide_.hand.WithdrawLate(*job) || job->state != JobState::kRunning ||
        decide_.walltime.EndOverdue(*job))
      agenda.jobs.insert(id);
  }
  for (const JobId id : decide_.checkpoints.CheckpointOnSchedule()) agenda.jobs.insert(id);
  observe_.faults.EndPauses();
  decide_.recovery.RegainMethods();
  observe_.copy.HoldBack();
  observe_.expiries.Tell();
  act_.steps.LookAtAll();
  act_.strays.EndStrays();
  act_.strays.EndLeftTasks();
  act_.strays.EndPendingStarts();
  decide_.ended.ExpireFailed();
  for (const JobId& id : decide_.ended.PurgeEnded()) Forget(id);
  decide_.copied.Expire();
  observe_.missing.Settle();
  act_.copies.OrderCopies(decide_.copied.ToCopy(), decide_.copied.MustWait());
  act_.deletions.OrderDeletions();
  decide_.ended.CompactJournal();
  observe_.queue.FollowWaitingAll();
  agenda.schedule = true;
}

// A request that was to wait until now, or a step of its plan, must not wait for the next full look.
bool Engine::Impl::StepIsDue(Time since, Time now) const {
  const auto is_due = [&](Time at) { return at > since && at <= now; };
  const auto& requests = state_.state.index.requests();
  return std::any_of(requests.begin(), requests.end(), [&](const auto& entry) {
    if (!WaitsForItsNodes(*entry.second)) return false;
    const std::vector<PlanStep>& steps = entry.second->plans.back().steps;
    return is_due(entry.second->spec.not_before) ||
           std::any_of(steps.begin(), steps.end(), [&](const PlanStep& step) { return is_due(step.begin); });
  });
}

// As after a restart, when agents and cluster manager have reported.
void Engine::Impl::LookAtEverything() {
  const ClusterState& state = state_.state;
  std::set<JobId> queued;
  for (const auto& [id, job] : state.queue.jobs) queued.insert(id);
  if (state.queue.seen) {
    for (const auto& [id, job] : state.unfinished) queued.insert(id);
  }
  for (const JobId& id : queued) observe_.queue.FollowQueue(id);
  for (const auto& [node, tasks] : state.observed_tasks) {
    for (const auto& [id, task] : tasks) {
      observe_.tasks.Follow(node, task.report);
      observe_.reports.RecordNotes(node, task.report);
    }
  }
  state_.agenda.AddAll(state);
  state_.agenda.schedule = true;
  state_.agenda.desired = true;
}

// What is kept about the job beside its record.
void Engine::Impl::Forget(JobId job) {
  decide_.watch.Forget(job);
  decide_.requests.Forget(job);
  decide_.recovery.TryAtOnce(job);
  decide_.quota.Forget(job);
  decide_.checkpoints.Forget(job);
  act_.orders.Forget(job);
  observe_.stragglers.Forget(job);
}

void Engine::Impl::ReplanRequests() {
  MutexLock lock(mutex_);
  for (const auto& [id, attempts] : decide_.requests.TakeToReplan()) {
    const JobRecord* request = decide_.watch.WantsAnotherPlan(id);
    if (request == nullptr || !state_.recorder.healthy()) continue;
    const SharedTask task = decide_.planning.TaskFor(id, request->spec);
    const bool unlocked = attempts < kUnlockedPlans;
    const bool in_time = decide_.watch.IsServedInTimeOnly(*request);
    const auto plan = [&task, in_time] {
      return PlanTentatively(task, in_time ? MakePlans(*task) : MakePlansAtLeastLate(*task));
    };
    std::optional<TentativePlan> tentative;
    if (unlocked) {
      lock.Unlock();
      tentative = plan();
      lock.Lock();
    } else {
      tentative = plan();
    }
    request = decide_.watch.WantsAnotherPlan(id);
    if (request == nullptr || !state_.recorder.healthy()) continue;
    if (unlocked && !decide_.planning.StandsOn(*tentative)) {
      decide_.requests.ReplanLater(id, attempts + 1);
      continue;
    }
    decide_.requests.AdoptInstead(*request, std::move(tentative->plans), task);
    Advance().IgnoreError();  // it has been logged, and every caller of the API is told
  }
}

}  // namespace siding
