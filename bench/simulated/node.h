// A node that exists only as the messages of its agent. It obeys the controller's orders as a real one does:
// what it is told takes time, phases follow on each other, and every change is reported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// How long what a node is told to do takes. All zero: it is done at once, and jobs never end by themselves.
struct SimulatedTiming {
  Duration launch{0};
  Duration freeze{0};           // and thaw, commit, kill
  double bytes_per_second = 0;  // of dumps and restores; 0: at once
  Duration mean_run{0};         // of a batch job, drawn from an exponential distribution; 0: for ever
};

struct SimulatedNodeOptions {
  std::string name;
  int slots = 10;
  int64_t memory = 256LL << 30;     // of the node
  int64_t task_memory = 4LL << 30;  // resident bytes of every task
  SimulatedTiming timing;
};

// Pure: time is passed in. Not thread-safe.
class SimulatedNode {
 public:
  explicit SimulatedNode(SimulatedNodeOptions options) : options_(std::move(options)) {}

  // As the first message of a connection: with the tasks as they are now.
  v1::Hello Describe() const;
  v1::Heartbeat Measure() const;

  // Begins what the command asks for, and returns what there is to say of it at once. A command that comes
  // again changes nothing and is answered again.
  std::vector<v1::FromAgent> Take(const v1::ToAgent& command, Time now);
  // What has become so by `now`, as reports.
  std::vector<v1::FromAgent> Advance(Time now);
  // When Advance() will have something to say; nothing: not unless it is told to do something.
  std::optional<Time> NextDue() const;

  int tasks() const { return static_cast<int>(tasks_.size()); }

 private:
  struct Task {
    v1::TaskReport report;
    Duration run{0};            // that is left of it; 0: it never ends by itself
    std::optional<Time> ends;   // while it runs
    std::optional<Time> due;    // of what is under way
    v1::TaskPhase then{};       // the phase that it will be in
    std::optional<Time> told;   // when its progress was last reported
    bool frozen = false;        // as it was before the dump
    bool keep_running = false;  // after the dump
    bool leaves_together = false;
    bool keeps_connections = false;
    v1::DumpBarrier next{};  // that it comes to, if it is to be DUMPING, or PREPARED again
  };

  void Begin(Task& task, v1::TaskPhase phase, Duration takes, v1::TaskPhase then, Time now);
  void Finish(Task& task, Time now);
  void Start(Task& task, const v1::JobSpec& spec, v1::TaskPhase phase, Duration takes, Time now);
  void Obey(Task& task, const v1::ToAgent& command, Time now);
  void Dump(Task& task, const v1::ToAgent& command, Time now);
  void ComeTo(Task& task, v1::DumpBarrier barrier, Duration takes, Time now);
  void Pass(Task& task, Time now);
  void StopRunning(Task& task, Time now);
  Duration Copying() const;
  v1::FromAgent ProgressOf(Task& task, Time now) const;

  const SimulatedNodeOptions options_;
  std::map<TaskId, Task> tasks_;
};

}  // namespace siding
