// What the stream to the controller (agent/link) needs of the rest of the agent, and the other way round.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/gpu/allocated_gpus.h"
#include "siding/v1/agent.pb.h"
#include "store/store.h"

namespace siding {

// Takes messages for the controller. Thread-safe; never blocks. While there is no connection messages are
// dropped: all reports are sent again on connection, and a result counts only on the connection on which it
// was asked for (the controller asks again, or tells the user that the node went away).
class ReportSink {
 public:
  virtual ~ReportSink() = default;
  virtual void Send(v1::FromAgent message) = 0;
};

// Runs tasks. Thread-safe.
class TaskHost {
 public:
  virtual ~TaskHost() = default;
  // Starts what the command asks and returns at once; what comes of it goes to the sink. Idempotent: a
  // command whose operation is done or under way changes nothing, but the task's report is sent again.
  // A Welcome comes before all that a controller orders on its connection.
  virtual void Execute(const v1::ToAgent& command) = 0;
  // As Execute() with a launch or a restore of a task that is new here, or whose earlier life under the same
  // name is over; but the task's shim is started by a cluster manager, in the folder that is returned.
  // `gpus`: what is known of those that it has given to the task. `ready` is called once, from another
  // thread: OK when the shim's orders are in the folder, else why there will be none.
  virtual absl::StatusOr<std::string> ExpectShim(const v1::ToAgent& start, const GpuAllocation& gpus,
                                                 std::function<void(absl::Status)> ready) = 0;
  // The whole images in a tier.
  virtual absl::StatusOr<std::vector<ImageKey>> Images(v1::Tier tier) = 0;
  // Every task known here, ended ones until they are forgotten.
  virtual std::vector<v1::TaskReport> Reports() = 0;
  // Node name, capacity, criu's state; tasks included.
  virtual v1::Hello Describe() = 0;
  // Free RAM and disk, measured rates; tasks included. May take some milliseconds, but waits for no tier.
  virtual v1::Heartbeat Measure() = 0;
};

}  // namespace siding
