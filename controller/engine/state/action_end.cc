#include "controller/engine/state/action_end.h"

namespace siding {
namespace {

struct Row {
  JobState state;
  JobEvent event;
  ActionEnd end;
};

using S = JobState;
using E = JobEvent;
using A = JobAction;

// A program may have ended before it was seen to run.
constexpr Row kTable[] = {
    {S::kStarting, E::kStarted, {A::kStart, true}},
    {S::kStarting, E::kSucceeded, {A::kStart, true}},
    {S::kStarting, E::kFailed, {A::kStart, true}},
    {S::kStarting, E::kStartFailed, {A::kStart, false}},
    {S::kStarting, E::kRestartNeeded, {A::kStart, false}},

    {S::kSuspending, E::kFrozen, {A::kSuspend, true}},
    {S::kSuspending, E::kFreezeFailed, {A::kSuspend, false}},

    {S::kResuming, E::kThawed, {A::kResume, true}},
    {S::kResuming, E::kStaysFrozen, {A::kResume, false}},

    {S::kDumping, E::kDumpFailed, {A::kCheckpoint, false}},
    {S::kDumping, E::kStaysFrozen, {A::kCheckpoint, false}},
    {S::kCommitting, E::kDumpFailed, {A::kCheckpoint, false}},
    {S::kCommitting, E::kStaysFrozen, {A::kCheckpoint, false}},
    {S::kCommitting, E::kContinued, {A::kCheckpoint, true}},
    {S::kCommitting, E::kReleased, {A::kCheckpoint, true}},

    {S::kSaving, E::kContinued, {A::kSave, true}},
    {S::kSaving, E::kReleased, {A::kSave, true}},
    {S::kSaving, E::kSaveFailed, {A::kSave, false}},

    {S::kKilling, E::kRequeued, {A::kKill, true}},
    {S::kKilling, E::kReleased, {A::kKill, true}},
    {S::kKilling, E::kCancelled, {A::kKill, true}},

    {S::kRestoring, E::kRestored, {A::kRestore, true}},
    {S::kRestoring, E::kSucceeded, {A::kRestore, true}},
    {S::kRestoring, E::kFailed, {A::kRestore, true}},
    {S::kRestoring, E::kRestoreFailed, {A::kRestore, false}},
    {S::kRestoring, E::kRestartNeeded, {A::kRestore, false}},
};

}  // namespace

std::optional<ActionEnd> EndOf(const JobRecord& job, const JobMoved& move) {
  // After a failed freeze or dump the job is only seen running again.
  if (job.state == JobState::kResuming && job.current.event != JobEvent::kOrderResume) return std::nullopt;
  if (job.state == JobState::kKilling && move.event == JobEvent::kFailed && job.current.over_limit)
    return ActionEnd{JobAction::kKill, true};
  for (const Row& row : kTable) {
    if (row.state == job.state && row.event == move.event) return row.end;
  }
  return std::nullopt;
}

}  // namespace siding
