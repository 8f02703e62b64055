// The state machine of one task on a node: an order or an observation changes the record and yields actions.
// Everything that changes a task's phase, or decides what is done next, goes through it, in the agent and in
// the simulation alike. A transition that is not in the table of machine.cc does not happen.
//
// How it works. One piece of work is under way at a time. An order that comes meanwhile waits (the newest
// replaces the one before it; a kill replaces all, and interrupts the work). A commit, an abort
// and a barrier's pass do not wait: they are about the work itself. The caller carries out the actions in
// their order, does the work, reports its result as an observation, and ends with WorkDone; the machine then
// names the next work.
//
// Pure: no threads, no clock, no files. Not thread-safe. A call never fails: what makes no sense in the
// task's phase is answered with the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/task/shim.pb.h"
#include "agent/task/task_record.pb.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"

namespace siding {

enum class TaskEvent {
  // Ordered.
  kLaunch,
  kRestore,
  kSuspend,
  kResume,
  kDump,
  kCommit,
  kAbort,
  kSave,
  kKill,
  // Observed.
  kStartsOver,  // the image is not this job's: launched instead
  kStarted,
  kStartFailed,
  kPrepared,    // the image is whole and durable
  kCommitting,  // the image is about to become visible
  kRuns,        // after a suspend, a resume, a dump or a restart of the agent
  kFrozen,      // the same
  kFoundAgain,  // by a new agent
  // The end of its processes.
  kCheckpointed,
  kSaved,
  kExited,
  kVanished,
};
inline constexpr int kTaskEventCount = 21;

// nullopt: the event means nothing in that phase.
std::optional<v1::TaskPhase> NextPhase(v1::TaskPhase phase, TaskEvent event);
std::string ToString(TaskEvent event);

enum class TaskWork {
  kNone,
  kStart,      // launch or restore, as ordered
  kFailStart,  // the record could not be written: the task is not started, `error` says why
  kSuspend,
  kResume,
  kDump,
  kSave,
  kKill,
  kAdopt,     // bring a task of an earlier agent into a known state
  kFinalize,  // find out how it ended, and observe Ended
};

struct TaskAction {
  enum Kind {
    kRecord,         // write the record; an error is logged only
    kRecordStart,    // write the record; after an error observe StartNotRecorded and drop the rest
    kRecordFirst,    // write the record; an error is the caller's
    kRecordDurably,  // write the record, so that it survives a power cut
    kSend,           // send the report
    kReleaseGpus,    // the task does not need its GPUs any more
    kWake,           // the work under way looks at decision(), may_pass(), interrupted(), ended() again
    kAbandonDump,    // end CRIU by force
    kKillProcesses,  // the work under way does not stop for a kill: end all processes beside it
    kBegin,          // begin `work`
    kFinalizeNow,    // finalize before anything is reported; there are no processes to wait for
  };
  Kind kind;
  TaskWork work = TaskWork::kNone;
  v1::ToAgent order = {};  // that the work is for
  std::string error = {};
};
using TaskActions = std::vector<TaskAction>;

namespace task {

// Observations. An empty error means success.
struct StartNotRecorded {
  std::string error;
};
struct StartsOver {};
struct Started {};
struct StartFailed {
  std::string error;
  bool image_damaged = false, no_gpu = false, node_problem = false, outside_problem = false;
  bool image_refused = false;
};
struct SuspendEnded {
  bool frozen;
  std::string error;
};
struct ResumeEnded {
  std::string error;
};
struct Captured {};  // it is about to come to the last barrier before it runs on
struct AtBarrier {   // and waits there
  v1::DumpBarrier barrier;
};
struct RunsOn {  // its image is finished behind it
  Duration stopped;
};
struct Prepared {
  int64_t image_bytes;
  int64_t new_bytes;         // of them: what no earlier image on that tier has
  std::string image_digest;  // as Manifest::digest
  Duration waited{0};        // for other ranks
};
struct Committing {};
struct CommitNotRecorded {};
struct Committed {};  // the image is visible
// A dump that is over, with its task alive unless it ended by itself.
struct DumpEnded {
  bool frozen;
  bool cut_short;  // CRIU did not undo what it had begun
  std::string error;
  bool tier_problem = false;  // the tier is to blame for it
};
struct SaveTold {};  // the program is about to get its signal
struct SaveNotTold {};
struct SaveEnded {
  bool marked;  // it has written its marker
  std::string error;
};
struct KillBegun {};   // something is about to be done to end it
struct ShimEnded {};   // its processes are gone, or the shim that watches them is
struct AgentStops {};  // work is undone, and nothing new begins
struct WorkDone {
  bool agent_stops = false;
};
// How the processes ended. `exit` is null if that is not known.
struct Ended {
  const agent::ShimExit* exit;
  bool image_visible;             // that of the last dump
  bool used_all_memory = false;   // that it may have
  int64_t killed_for_memory = 0;  // processes of it, by the kernel
};
// By a new agent. kUnknown: it cannot be told, so it is taken to live.
struct FoundAgain {
  enum Shim { kLives, kGone, kUnknown };
  bool same_boot;
  Shim shim;
};
struct AdoptEnded {
  bool frozen;
  std::string error;
};

}  // namespace task

using TaskObservation =
    std::variant<task::StartNotRecorded, task::StartsOver, task::Started, task::StartFailed,
                 task::SuspendEnded, task::ResumeEnded, task::Captured, task::AtBarrier, task::RunsOn,
                 task::Prepared, task::Committing, task::CommitNotRecorded, task::Committed, task::DumpEnded,
                 task::SaveTold, task::SaveNotTold, task::SaveEnded, task::KillBegun, task::ShimEnded,
                 task::AgentStops, task::WorkDone, task::Ended, task::FoundAgain, task::AdoptEnded>;

class TaskMachine {
 public:
  enum class Decision { kNone, kCommit, kAbort };

  explicit TaskMachine(agent::TaskRecord record) : record_(std::move(record)) {}

  // `now` never goes back; only differences count. An order that comes twice is carried out once.
  TaskActions Take(const v1::ToAgent& order, Time now);
  TaskActions Observe(const TaskObservation& seen);

  // Facts that decide nothing here (memory, GPUs, who the init is) are written by the caller.
  agent::TaskRecord& record() { return record_; }
  const agent::TaskRecord& record() const { return record_; }
  v1::TaskPhase phase() const { return record_.report().phase(); }
  bool busy() const { return work_ != TaskWork::kNone; }
  const v1::ToAgent& current() const { return current_; }
  Decision decision() const { return decision_; }
  v1::DumpBarrier may_pass() const { return may_pass_; }  // the last that the dump under way may
  bool interrupted() const { return interrupted_; }       // the work is to make way for a kill
  bool kill_at_once() const { return kill_at_once_; }     // the rest of a kill's grace is waived
  bool ended() const { return ended_; }                   // ShimEnded was observed
  bool called_off() const { return interrupted_ || decision_ == Decision::kAbort; }

 private:
  TaskActions Decide(const v1::ToAgent& order);
  TaskActions Pass(const v1::ToAgent& order);
  TaskActions TakeWhileBusy(const v1::ToAgent& order, Time now);
  TaskActions Plan(const v1::ToAgent& order);
  TaskActions Begin(TaskWork work, const v1::ToAgent& order);
  // False, and nothing has changed: the table has no such transition.
  bool Move(TaskEvent event, int64_t op = 0);
  TaskActions Report() const;
  void Fail(int64_t op, const std::string& error, bool tier_problem = false);
  void ForgetImage();
  bool ExitPending() const;

  TaskActions On(const task::StartNotRecorded& seen);
  TaskActions On(const task::StartsOver& seen);
  TaskActions On(const task::Started& seen);
  TaskActions On(const task::StartFailed& seen);
  TaskActions On(const task::SuspendEnded& seen);
  TaskActions On(const task::ResumeEnded& seen);
  TaskActions On(const task::Captured& seen);
  TaskActions On(const task::AtBarrier& seen);
  TaskActions On(const task::RunsOn& seen);
  TaskActions On(const task::Prepared& seen);
  TaskActions On(const task::Committing& seen);
  TaskActions On(const task::CommitNotRecorded& seen);
  TaskActions On(const task::Committed& seen);
  TaskActions On(const task::DumpEnded& seen);
  TaskActions On(const task::SaveTold& seen);
  TaskActions On(const task::SaveNotTold& seen);
  TaskActions On(const task::SaveEnded& seen);
  TaskActions On(const task::KillBegun& seen);
  TaskActions On(const task::ShimEnded& seen);
  TaskActions On(const task::AgentStops& seen);
  TaskActions On(const task::WorkDone& seen);
  TaskActions On(const task::Ended& seen);
  TaskActions On(const task::FoundAgain& seen);
  TaskActions On(const task::AdoptEnded& seen);

  agent::TaskRecord record_;
  TaskWork work_ = TaskWork::kNone;
  v1::ToAgent current_;                 // the order that the work is for
  std::optional<v1::ToAgent> pending_;  // to be carried out next
  Decision decision_ = Decision::kNone;
  v1::DumpBarrier may_pass_ = v1::BARRIER_NONE;
  bool interrupted_ = false;
  bool kill_at_once_ = false;
  bool ended_ = false;
  bool told_before_ = false;              // to save itself, before the save under way
  std::optional<Time> kill_waits_since_;  // for the work under way
};

}  // namespace siding
