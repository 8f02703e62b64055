// Slurm's jobs as `squeue` shows them. Pure: the text comes from elsewhere.
//
//     SLURM_TIME_FORMAT=%s squeue --all --array --noheader --states=all --format=FORMAT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/units.h"

namespace siding::slurm {

// What --format= is to be. The name comes last: it is the user's, and may hold anything but the end of a
// line.
inline constexpr char kQueueFormat[] = "%A|%F|%K|%U|%T|%P|%q|%a|%D|%C|%b|%N|%n|%Q|%V|%S|%e|%l|%r|%j";

enum class JobPhase {
  kPending,    // waits, or comes back into the queue
  kStarting,   // has nodes that are being made ready
  kRunning,    // also while it is told of its preemption
  kSuspended,  // holds memory and GPUs
  kEnding,     // its processes are being ended
  kEnded,
  kUnknown,  // a state that this version does not know
};

struct QueueJob {
  // A pending element of an array has no number of its own yet: this is the array's.
  int64_t id = 0;
  int64_t array = 0;           // equal to `id` for a job that is no array's
  std::optional<int> element;  // in its array
  uint32_t uid = 0;
  JobPhase phase = JobPhase::kUnknown;
  std::string state;  // Slurm's word for it
  std::string partition, qos, account;
  int nodes = 0;
  int cpus = 0;  // on all nodes
  int gpus_per_node = 0;
  std::vector<NodeId> on;       // empty while it has none
  std::vector<NodeId> only_on;  // asked for by name
  int64_t priority = 0;
  std::optional<Time> submitted;
  std::optional<Time> started;    // or expected to
  std::optional<Time> ends;       // at the latest
  std::optional<Duration> limit;  // nothing: not limited, or not known
  std::string reason;             // why it waits
  std::string name;
};

// kInvalidArgument names the line and what was expected of it.
absl::StatusOr<std::vector<QueueJob>> ParseQueue(const std::string& text);

// "10:00", "1:02:03", "365-00:00:00", "1-2"; kInvalidArgument if it is nothing of the kind.
absl::StatusOr<std::optional<Duration>> ParseLimit(const std::string& text);

// How many GPUs a list of generic resources asks for: "gpu:2", "gres:gpu:h200:4,gres:nvme",
// "gpu:h200:4(S:0-1)", "N/A".
int GpusOf(const std::string& gres);

}  // namespace siding::slurm
