// What the metrics show, as values of one moment.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/engine/engine.h"
#include "controller/notify/counts.h"
#include "model/totals.h"

namespace siding {

// Whom the metrics ask. All of it must outlive them; the functions are called from any thread, and block for
// no longer than a file's status does.
struct MetricSources {
  const Engine& engine;
  std::function<int64_t()> lost_messages;                 // ClusterManager::lost_messages
  std::function<int64_t()> journal_bytes;                 // with its log
  std::function<std::map<std::string, int64_t>()> calls;  // of the API, by their result
  std::function<std::vector<ToldCounts>()> told;          // of those who are told of events; may be empty
};

// Of a deadline job that has not started: whether it will in time.
enum class Outlook : uint8_t { kInTime, kAtRisk, kLate };

struct Look {
  bool leads = false;  // of a controller that stands by nothing else is known
  Time now;

  struct OfState {
    int jobs = 0;
    // Since when the first of them is in it, of those that are not held, without the time that it was
    // promised there; 0: there is none.
    Time oldest;
  };
  std::array<OfState, kJobStateCount> jobs{};
  int held = 0, most_preemptions = 0;
  int unrestored = 0, unstarted = 0;  // parked jobs: their last restore failed; nothing is left to restore
  std::map<Outlook, int> outlooks;
  Tally tally;
  Totals totals;

  std::map<std::string, int> nodes;  // by state
  int cordoned = 0;
  struct OfNode {
    bool connected = false;
    int64_t scrubbed = 0, copied = 0, local_free = 0;  // bytes
  };
  // Those whose agents have told it: one that has connected a moment ago has not, nor do nodes that have
  // none.
  std::map<NodeId, OfNode> by_node;
  std::optional<int64_t> shared_free;            // of the node that has most; none: no node has a shared tier
  std::map<std::string, Time> certificate_ends;  // by who has it

  std::array<int, kCheckpointStateCount> checkpoints{};
  std::map<Tier, int64_t> image_bytes;  // that good ones have written

  std::optional<bool> manager_answers;  // none: there is no cluster manager
  bool journal_can_be_written = true;
  int64_t events = 0, journal_bytes = 0, lost_messages = 0, policy_failures = 0, quota_refusals = 0;
  std::map<std::string, int64_t> calls;
  std::vector<ToldCounts> told;
};

// Takes the engine's lock, for a walk over its jobs, nodes and checkpoints.
Look TakeLook(const MetricSources& sources);

}  // namespace siding
