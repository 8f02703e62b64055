// Prometheus metrics over HTTP: counted from the engine's state when they are asked for, so that nothing
// has to remember to count.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/engine/engine.h"

namespace siding {

// siding_jobs{state}, siding_nodes{state}, siding_requests_total{result}, siding_preemptions_total,
// siding_job_preemptions{job},
// siding_stuck_jobs{why}, siding_restarts_total, siding_lost_node_seconds_total, siding_checkpoint_bytes,
// siding_damaged_checkpoints_total, siding_gpu_states_lost_total, siding_scrubbed_bytes_total{node},
// siding_copied_bytes_total{node}, siding_certificate_end_timestamp_seconds{holder},
// siding_journal_events_total, siding_lost_messages_total,
// siding_leader: 1 of the active controller.
class Metrics {
 public:
  // Serves /metrics at `address` (an IPv4 address, or one of IPv6 in brackets) and `port` until destroyed;
  // port 0: serves nothing. `engine` must outlive it, and so must what `lost_messages` asks
  // (ClusterManager::lost_messages).
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(
      const std::string& address, int port, const Engine& engine,
      std::function<int64_t()> lost_messages = [] { return 0; });
  // Of a controller that stands by: siding_leader 0, and nothing else.
  static absl::StatusOr<std::unique_ptr<Metrics>> StartStandingBy(const std::string& address, int port);
  virtual ~Metrics() = default;
};

}  // namespace siding
