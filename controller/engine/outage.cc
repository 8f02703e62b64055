// The journal could not be written: the disk is full, say. What was decided and not recorded is taken back,
// so that nothing is shown or done that a restart would not know; then nothing is decided until something can
// be written again. What is observed meanwhile is said again by those who see it.
#include <algorithm>

#include "controller/engine/impl.h"

namespace siding {
namespace {

constexpr Duration kTryAgain = std::chrono::seconds(1);
constexpr Duration kTryAgainAtLatest = std::chrono::seconds(30);

}  // namespace

absl::Status Engine::Impl::Ready() const {
  return health_.ok() ? absl::OkStatus() : absl::UnavailableError(health_.message());
}

void Engine::Impl::BeginOutage(const absl::Status& status) {
  health_ =
      absl::Status(status.code(), absl::StrCat("journal: ", status.message(),
                                               "; nothing was changed, and nothing is until this is mended"));
  spdlog::critical("{}", std::string(health_.message()));
  // Nobody will answer what is not sent.
  for (const auto& [node, command] : outbox_) verifications_.erase(command.op());
  outbox_.clear();
  unflushed_.clear();
  TakeBack();
  try_after_ = std::clamp(2 * try_after_, kTryAgain, kTryAgainAtLatest);
  try_at_ = clock_.Now() + try_after_;
}

// The durable state as the journal has it.
void Engine::Impl::TakeBack() {
  static_cast<DurableState&>(state_) = DurableState();
  if (const absl::Status replayed = Replay(); !replayed.ok()) {
    health_ = absl::DataLossError(absl::StrCat("journal: ", replayed.message()));
    spdlog::critical("{}; restart when this is mended", std::string(health_.message()));
  }
  // Of a job whose end was taken back, it is decided again. An end that is recorded stays one.
  for (auto& [node, tasks] : may_start_) {
    std::erase_if(tasks, [&](const TaskId& id) {
      const auto job = state_.jobs.find(id.job);
      return job == state_.jobs.end() || !IsTerminal(job->second.state);
    });
  }
  TouchAll();
  // Commands that were held back count as sent, and events that were taken back as seen.
  sent_.clear();
  for (auto& [image, deletion] : deletions_) deletion.again_at = Time{};
  deleted_ranks_.clear();
  to_judge_.clear();
}

// A journal that is damaged, or that another controller has taken over, does not get well by itself.
void Engine::Impl::EndOutage() {
  const Time now = clock_.Now();
  if (now < try_at_ || absl::IsDataLoss(health_) || absl::IsAborted(health_) ||
      absl::IsFailedPrecondition(health_))
    return;
  if (const absl::Status tried = journal_.Append({}); !tried.ok()) {
    try_after_ = std::min(2 * try_after_, kTryAgainAtLatest);
    try_at_ = now + try_after_;
    return;
  }
  spdlog::warn("the journal can be written again");
  health_ = absl::OkStatus();
  LookAtEverything();
}

// As after a restart whose agents and cluster manager have said what they see.
void Engine::Impl::LookAtEverything() {
  std::set<JobId> queued;
  for (const auto& [id, job] : state_.queue.jobs) queued.insert(id);
  if (state_.queue.seen) {
    for (const auto& [id, job] : state_.unfinished) queued.insert(id);
  }
  for (const JobId& id : queued) FollowQueue(id);
  for (const auto& [node, tasks] : state_.observed_tasks) {
    for (const auto& [id, task] : tasks) {
      Follow(node, task.report);
      TakeNotes(node, task.report);
    }
  }
  JudgeAll();
  schedule_ = true;
  wish_ = true;
}

}  // namespace siding
