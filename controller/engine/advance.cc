// Decide, record, act: what follows from a decision, the journal, and only then the commands.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "controller/engine/impl.h"

namespace siding {
namespace {

constexpr Duration kFullLook = std::chrono::seconds(1);
// In which the agents of a controller of before dial this one: twice as long as they wait at most.
constexpr Duration kAgentsDial = std::chrono::seconds(10);

}  // namespace

absl::Status Engine::Impl::Start() {
  SIDING_RETURN_IF_ERROR(Replay());
  SIDING_RETURN_IF_ERROR(FaultAt<"engine.replayed: the journal has been read">());
  // Operation numbers for checkpoint commands only have to differ within one life of the controller and from
  // those before it, whose answers may still arrive.
  started_ = clock_.Now();
  if (state_.last_seq > 0) agents_back_at_ = started_ + kAgentsDial;
  last_op_ = ToMicros(started_);
  NoteRestored();
  JudgeAll();
  return Flush();
}

absl::Status Engine::Impl::Replay() {
  return journal_.Replay([this](const Event& event) {
    Apply(state_, event);
    events_.Append({event});
  });
}

void Engine::Impl::Record(JobId job, EventBody body) {
  Event event{state_.last_seq + 1, clock_.Now(), job, std::move(body)};
  const auto standing = StandingOf(job);
  TouchNodesOf(job);
  Apply(state_, event);
  TouchNodesOf(job);
  if (StandingOf(job) != standing) TouchTasksOf(job);
  if (job == JobId()) TouchAll();
  if (job != JobId()) to_judge_.insert(job);
  schedule_ = true;
  unflushed_.push_back(std::move(event));
}

void Engine::Impl::Move(JobRecord& job, JobMoved move) {
  if (move.event == JobEvent::kPlace && move.incarnation == 0) move.incarnation = NextIncarnation(job);
  if (const auto next = Next(job.state, move.event); next && IsTerminal(*next)) NoteStartsOf(job);
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
  if (spdlog::should_log(spdlog::level::info)) {
    for (const Event& event : unflushed_)
      spdlog::info("job {} {}: {}", event.job.value(), KindOf(event), Describe(event));
  }
  events_.Append(std::exchange(unflushed_, {}));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Advance() {
  TakeMessages();
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
  SendOut();
  if (!IsCatchingUp() && std::exchange(wish_, false)) platform_.Want(wishes_);
  return absl::OkStatus();
}

void Engine::Impl::SendOut() {
  for (auto& [node, command] : std::exchange(outbox_, {})) {
    if (command.ByteSizeLong() > kMostOrder) {
      FailAsTooLong(node, command);
      continue;
    }
    FaultHere<"engine.order: an order is about to go to an agent">();
    agents_.Send(node, std::move(command));
  }
}

// What is submitted is within limits far below this one. A longer order would break the agent's stream, each
// time that it is sent, and everybody's jobs there would be lost with it: it counts as refused by the agent.
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
  if (command.has_launch() || command.has_restore()) OnMessage(node, message);
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

// A method that failed is not given up for ever: a kernel of minutes ends, and memory is unmapped.
void Engine::Impl::RegainMethods() {
  std::vector<std::pair<JobId, Method>> due;
  for (const auto& [id, job] : state_.unfinished) {
    if (job->in_ram) continue;  // it is not to run for a moment every time
    for (const auto& [method, at] : job->methods_back_at) {
      if (at <= clock_.Now()) due.push_back({id, method});
    }
  }
  for (const auto& [id, method] : due) Record(id, MethodRegained{method});
}

void Engine::Impl::Tick() {
  const Time now = clock_.Now();
  if (now - last_full_look_ < kFullLook) {
    // One that was to wait until now, or a step of its plan, may have no second to lose.
    const auto& requests = state_.index.requests();
    const auto is_due = [&](Time at) { return at > last_full_look_ && at <= now; };
    schedule_ |= std::any_of(requests.begin(), requests.end(), [&](const auto& entry) {
      if (!WaitsForItsNodes(*entry.second)) return false;
      const std::vector<PlanStep>& steps = entry.second->plans.back().steps;
      return is_due(entry.second->spec.not_before) ||
             std::any_of(steps.begin(), steps.end(),
                         [&](const PlanStep& step) { return is_due(step.begin); });
    });
    return;
  }
  LookForSilence(std::exchange(last_full_look_, now));
  if (!health_.ok()) EndOutage();
  if (!health_.ok()) return;
  to_judge_.merge(held_back_);
  held_back_.clear();
  for (const auto& [id, job] : state_.unfinished) {
    if (job->state != JobState::kRunning || EndOverdue(*job) || CheckpointOnSchedule(*job))
      to_judge_.insert(id);
  }
  RegainMethods();
  ActOnStrays();
  ActOnLeftTasks();
  EndStarts();
  ExpireFailed();
  ForgetEnded();
  ActOnDeletions();
  CompactJournal();
  FollowWaitingAll();
  schedule_ = true;
}

}  // namespace siding
