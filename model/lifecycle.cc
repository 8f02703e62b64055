#include "model/lifecycle.h"

#include <algorithm>
#include <iterator>

namespace siding {
namespace {

using S = JobState;
using E = JobEvent;

struct Row {
  S from;
  E event;
  S to;
};

// Read it by blocks: a state, and every way out of it.
constexpr Row kTable[] = {
    {S::kPending, E::kPlace, S::kStarting},
    {S::kPending, E::kCancelled, S::kCancelled},

    {S::kStarting, E::kStarted, S::kRunning},
    {S::kStarting, E::kStartFailed, S::kFailed},
    {S::kStarting, E::kOrderKill, S::kKilling},
    {S::kStarting, E::kSucceeded, S::kDone},
    {S::kStarting, E::kFailed, S::kFailed},
    {S::kStarting, E::kRestartNeeded, S::kPending},

    {S::kRunning, E::kOrderSuspend, S::kSuspending},
    {S::kRunning, E::kOrderResume, S::kResuming},  // it was found frozen
    {S::kRunning, E::kOrderDump, S::kDumping},
    {S::kRunning, E::kOrderSave, S::kSaving},
    {S::kRunning, E::kOrderKill, S::kKilling},
    {S::kRunning, E::kSucceeded, S::kDone},
    {S::kRunning, E::kFailed, S::kFailed},
    {S::kRunning, E::kRestoreFailed, S::kParked},
    {S::kRunning, E::kRestartNeeded, S::kPending},

    {S::kSuspending, E::kFrozen, S::kSuspended},
    {S::kSuspending, E::kFreezeFailed, S::kResuming},
    {S::kSuspending, E::kOrderKill, S::kKilling},
    {S::kSuspending, E::kSucceeded, S::kDone},
    {S::kSuspending, E::kFailed, S::kFailed},
    {S::kSuspending, E::kRestoreFailed, S::kParked},
    {S::kSuspending, E::kRestartNeeded, S::kPending},

    {S::kSuspended, E::kOrderResume, S::kResuming},
    {S::kSuspended, E::kOrderDump, S::kDumping},
    {S::kSuspended, E::kOrderKill, S::kKilling},
    {S::kSuspended, E::kSucceeded, S::kDone},  // it ran for a moment, after a dump that was undone
    {S::kSuspended, E::kFailed, S::kFailed},
    {S::kSuspended, E::kRestoreFailed, S::kParked},
    {S::kSuspended, E::kRestartNeeded, S::kPending},

    {S::kResuming, E::kThawed, S::kRunning},
    {S::kResuming, E::kStaysFrozen, S::kSuspended},
    {S::kResuming, E::kOrderKill, S::kKilling},
    {S::kResuming, E::kSucceeded, S::kDone},
    {S::kResuming, E::kFailed, S::kFailed},
    {S::kResuming, E::kRestoreFailed, S::kParked},
    {S::kResuming, E::kRestartNeeded, S::kPending},

    {S::kDumping, E::kCommit, S::kCommitting},
    {S::kDumping, E::kDumpFailed, S::kResuming},  // until every task is seen running
    {S::kDumping, E::kStaysFrozen, S::kSuspended},
    {S::kDumping, E::kOrderKill, S::kKilling},
    {S::kDumping, E::kSucceeded, S::kDone},
    {S::kDumping, E::kFailed, S::kFailed},
    {S::kDumping, E::kRestoreFailed, S::kParked},
    {S::kDumping, E::kRestartNeeded, S::kPending},

    {S::kCommitting, E::kReleased, S::kParked},
    {S::kCommitting, E::kContinued, S::kRunning},
    {S::kCommitting, E::kDumpFailed, S::kResuming},  // no rank has left, and one cannot commit
    {S::kCommitting, E::kStaysFrozen, S::kSuspended},
    {S::kCommitting, E::kOrderKill, S::kKilling},
    {S::kCommitting, E::kSucceeded, S::kDone},
    {S::kCommitting, E::kFailed, S::kFailed},
    {S::kCommitting, E::kRestoreFailed, S::kParked},
    {S::kCommitting, E::kRestartNeeded, S::kPending},

    {S::kSaving, E::kReleased, S::kParked},
    {S::kSaving, E::kContinued, S::kRunning},
    {S::kSaving, E::kSaveFailed, S::kRunning},
    {S::kSaving, E::kOrderKill, S::kKilling},
    {S::kSaving, E::kSucceeded, S::kDone},
    {S::kSaving, E::kFailed, S::kFailed},
    {S::kSaving, E::kRestoreFailed, S::kParked},
    {S::kSaving, E::kRestartNeeded, S::kPending},

    {S::kParked, E::kPlace, S::kRestoring},
    {S::kParked, E::kRestartNeeded, S::kPending},
    {S::kParked, E::kRestoreFailed,
     S::kParked},  // its last image is gone, and it may not start over by itself
    {S::kParked, E::kCancelled, S::kCancelled},

    {S::kRestoring, E::kRestored, S::kRunning},
    {S::kRestoring, E::kRestoreFailed, S::kParked},
    {S::kRestoring, E::kRestartNeeded, S::kPending},
    {S::kRestoring, E::kOrderKill, S::kKilling},
    {S::kRestoring, E::kSucceeded, S::kDone},
    {S::kRestoring, E::kFailed, S::kFailed},

    {S::kKilling, E::kThawed, S::kRunning},        // nothing was done yet, and need not or cannot be done
    {S::kKilling, E::kStartGoesOn, S::kStarting},  // nor was it seen running
    {S::kKilling, E::kRestoreGoesOn, S::kRestoring},
    {S::kKilling, E::kRequeued, S::kPending},
    {S::kKilling, E::kReleased, S::kParked},
    {S::kKilling, E::kCancelled, S::kCancelled},
    {S::kKilling, E::kSucceeded, S::kDone},
    {S::kKilling, E::kFailed, S::kFailed},
};

constexpr const char* kStateNames[] = {"pending",   "starting", "running",    "suspending", "suspended",
                                       "resuming",  "dumping",  "committing", "saving",     "parked",
                                       "restoring", "killing",  "done",       "failed",     "cancelled"};
static_assert(std::size(kStateNames) == kJobStateCount);

constexpr const char* kEventNames[] = {
    "place",          "order-suspend",  "order-resume", "order-dump", "commit",        "order-save",
    "order-kill",     "started",        "start-failed", "frozen",     "freeze-failed", "thawed",
    "dump-failed",    "stays-frozen",   "continued",    "released",   "save-failed",   "restored",
    "restore-failed", "restart-needed", "requeued",     "cancelled",  "succeeded",     "failed",
    "start-goes-on",  "restore-goes-on"};
static_assert(std::size(kEventNames) == kJobEventCount);

struct CheckpointRow {
  const char* name;
  bool is_whole;
  bool is_unwanted;
};
constexpr CheckpointRow kCheckpointStates[] = {
    {"being made", false, false}, {"good", true, false},    {"failed", false, false}, {"damaged", true, true},
    {"refused", true, true},      {"deleted", false, true}, {"gone", false, false}};
static_assert(std::size(kCheckpointStates) == kCheckpointStateCount);

const CheckpointRow& RowOf(CheckpointState state) { return kCheckpointStates[static_cast<int>(state)]; }

constexpr const char* kNodeCopies[] = {"none", "used", "unwanted", "alone"};

}  // namespace

std::optional<JobState> Next(JobState state, JobEvent event) {
  for (const Row& row : kTable) {
    if (row.from == state && row.event == event) return row.to;
  }
  return std::nullopt;
}

bool IsTerminal(JobState state) { return state == S::kDone || state == S::kFailed || state == S::kCancelled; }

bool HoldsNodes(JobState state) { return state != S::kPending && state != S::kParked && !IsTerminal(state); }

bool IsBeginning(JobState state) { return state == S::kStarting || state == S::kRestoring; }

std::string ToString(JobState state) { return kStateNames[static_cast<int>(state)]; }
std::string ToString(JobEvent event) { return kEventNames[static_cast<int>(event)]; }

std::optional<JobState> ParseJobState(const std::string& name) {
  for (int i = 0; i < kJobStateCount; ++i) {
    if (kStateNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

std::optional<JobEvent> ParseJobEvent(const std::string& name) {
  for (int i = 0; i < kJobEventCount; ++i) {
    if (kEventNames[i] == name) return static_cast<JobEvent>(i);
  }
  return std::nullopt;
}

bool IsWhole(CheckpointState state) { return RowOf(state).is_whole; }
bool IsUnwanted(CheckpointState state) { return RowOf(state).is_unwanted; }
std::string ToString(CheckpointState state) { return RowOf(state).name; }

std::string ToString(NodeCopies copies) { return kNodeCopies[static_cast<int>(copies)]; }

std::optional<NodeCopies> ParseNodeCopies(const std::string& name) {
  const auto* const found = std::find(std::begin(kNodeCopies), std::end(kNodeCopies), name);
  if (found == std::end(kNodeCopies)) return std::nullopt;
  return static_cast<NodeCopies>(found - std::begin(kNodeCopies));
}

std::optional<CheckpointState> ParseCheckpointState(const std::string& name) {
  for (int i = 0; i < kCheckpointStateCount; ++i) {
    if (name == kCheckpointStates[i].name) return static_cast<CheckpointState>(i);
  }
  return std::nullopt;
}

}  // namespace siding
