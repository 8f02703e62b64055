// The life of a job as one table: (state, event) -> state. Everything that changes a job's state goes
// through Next(), in the controller and in the simulator alike; what is not in the table cannot happen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace siding {

enum class JobState {
  kPending,   // waits for nodes; starts from the beginning
  kStarting,  // nodes chosen, tasks being launched
  kRunning,
  kSuspending,  // freeze ordered
  kSuspended,   // frozen in RAM; its slots are free
  kResuming,
  kDumping,     // dump ordered; every task can still run on as if nothing had happened
  kCommitting,  // all tasks dumped; from here on the image counts
  kSaving,      // the program was told to save itself
  kParked,      // waits for nodes; continues from a checkpoint
  kRestoring,
  kKilling,
  kDone,
  kFailed,
  kCancelled,
};
inline constexpr int kJobStateCount = 15;

enum class JobEvent {
  // Ordered by the engine.
  kPlace,  // nodes chosen
  kOrderSuspend,
  kOrderResume,
  kOrderDump,
  kCommit,  // all tasks reported a whole, durable image
  kOrderSave,
  kOrderKill,
  // Observed.
  kStarted,      // all tasks run
  kStartFailed,  // could not be launched; the job fails, and says why
  kFrozen,       // all tasks frozen
  kFreezeFailed,
  kThawed,       // all tasks run again after a freeze
  kDumpFailed,   // some task could not be dumped; all run on
  kStaysFrozen,  // a frozen job could not be dumped or resumed; it stays as it was
  kContinued,    // committed or saved, and the tasks were to keep running
  kReleased,     // all tasks are gone and an image (or the program's own save) stands for them
  kSaveFailed,
  kRestored,
  kRestoreFailed,  // parked (again): with a checkpoint to try, or until a user says what to do
  kRestartNeeded,  // back to the beginning: nothing to restore from, or a user said so
  kRequeued,       // gone after a kill, to start again
  kCancelled,      // gone after a kill, for good
  kSucceeded,      // every task exited with 0
  kFailed,         // some task exited otherwise
  // The order to end it was withdrawn before it had begun: it is as before.
  kStartGoesOn,
  kRestoreGoesOn,
};
inline constexpr int kJobEventCount = 26;

// nullopt: the event means nothing in that state and must be ignored (a late report) or refused (an order).
std::optional<JobState> Next(JobState state, JobEvent event);

bool IsTerminal(JobState state);
// It has tasks on its nodes, frozen ones included.
bool HoldsNodes(JobState state);
// Its tasks are being started, from the beginning or from an image.
bool IsBeginning(JobState state);

// What has become of a checkpoint.
enum class CheckpointState {
  kBeingMade,
  kGood,     // the images of all ranks are in the store
  kFailed,   // it never became whole, and left nothing
  kDamaged,  // one of its images is not what was written; kept for a look at what happened
  kRefused,  // it is as it was written, and no restore takes it; kept as a damaged one is
  kDeleted,  // not needed any more; nodes are told to take it out of the store
  kGone,     // they have done so
};
inline constexpr int kCheckpointStateCount = 7;
// Of a checkpoint in shared storage: the images on the own disks of the nodes that have made them, from which
// it was copied.
enum class NodeCopies : uint8_t {
  kNone,
  kUsed,      // they are there: a restore on these nodes reads them
  kUnwanted,  // not needed any more; nodes are told to remove them
  kAlone,     // said once: they are all that there is, as what is in shared storage is damaged
};
std::string ToString(NodeCopies copies);
std::optional<NodeCopies> ParseNodeCopies(const std::string& name);
// All of it was there, so the store holds it, and it can be verified and deleted.
bool IsWhole(CheckpointState state);
// It is to be taken out of the store.
bool IsUnwanted(CheckpointState state);

std::string ToString(JobState state);
std::string ToString(JobEvent event);
std::optional<JobState> ParseJobState(const std::string& name);
std::optional<JobEvent> ParseJobEvent(const std::string& name);
std::string ToString(CheckpointState state);
std::optional<CheckpointState> ParseCheckpointState(const std::string& name);

}  // namespace siding
