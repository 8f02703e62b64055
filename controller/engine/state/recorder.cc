#include "controller/engine/state/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/logging.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

constexpr Duration kTryAgain = std::chrono::seconds(1);
constexpr Duration kTryAgainAtLatest = std::chrono::seconds(30);

// If one of these changes, other tasks of the job count as its own or as strays.
std::pair<bool, int> AllocationState(const DurableState& state, JobId id) {
  const auto job = state.jobs.find(id);
  return job == state.jobs.end() ? std::pair(false, -1)
                                 : std::pair(HoldsNodes(job->second.state), job->second.incarnation);
}

}  // namespace

absl::Status Recorder::Replay() {
  return journal_.Replay([this](const Event& event) {
    Apply(state_, event);
    events_.Append({event});
  });
}

void Recorder::Record(JobId job, EventBody body) {
  Event event{state_.last_seq + 1, clock_.Now(), job, std::move(body)};
  const auto before = AllocationState(state_, job);
  accounts_.TouchNodesOf(job);
  Apply(state_, event);
  accounts_.TouchNodesOf(job);
  if (AllocationState(state_, job) != before) accounts_.TouchTasksOf(job);
  if (job == JobId()) accounts_.TouchAll();
  if (job != JobId()) agenda_.jobs.insert(job);
  agenda_.schedule = true;
  unflushed_.push_back(std::move(event));
}

void Recorder::Move(const JobRecord& job, JobMoved move) {
  if (move.event == JobEvent::kPlace && move.incarnation == 0) move.incarnation = NextIncarnation(job);
  if (const auto next = Next(job.state, move.event); next && IsTerminal(*next)) starts_.NoteStartsOf(job);
  Record(job.id, EventBody(std::move(move)));
}

absl::Status Recorder::Flush(bool acts) {
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

absl::Status Recorder::Ready() const {
  return health_.ok() ? absl::OkStatus() : absl::UnavailableError(health_.message());
}

void Recorder::BeginOutage(const absl::Status& status) {
  health_ =
      absl::Status(status.code(), absl::StrCat("journal: ", status.message(),
                                               "; nothing was changed, and nothing is until this is mended"));
  spdlog::critical("{}", std::string(health_.message()));
  unflushed_.clear();
  TakeBack();
  try_after_ = std::clamp(2 * try_after_, kTryAgain, kTryAgainAtLatest);
  try_at_ = clock_.Now() + try_after_;
}

// The durable state as the journal has it.
void Recorder::TakeBack() {
  static_cast<DurableState&>(state_) = DurableState();
  if (const absl::Status replayed = Replay(); !replayed.ok()) {
    health_ = absl::DataLossError(absl::StrCat("journal: ", replayed.message()));
    spdlog::critical("{}; restart when this is mended", std::string(health_.message()));
  }
  starts_.TakeBack();
  accounts_.TouchAll();
  agenda_.jobs.clear();
}

// A journal that is damaged, or that another controller has taken over, does not recover by itself.
bool Recorder::EndOutage() {
  const Time now = clock_.Now();
  if (now < try_at_ || absl::IsDataLoss(health_) || absl::IsAborted(health_) ||
      absl::IsFailedPrecondition(health_))
    return false;
  if (const absl::Status tried = journal_.Append({}); !tried.ok()) {
    try_after_ = std::min(2 * try_after_, kTryAgainAtLatest);
    try_at_ = now + try_after_;
    return false;
  }
  spdlog::warn("the journal can be written again");
  health_ = absl::OkStatus();
  return true;
}

}  // namespace siding
