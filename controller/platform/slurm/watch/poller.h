// Asks Slurm what there is and says what has changed since.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/client.h"
#include "controller/platform/slurm/watch/changes.h"

namespace siding::slurm {

// Not thread-safe. The client must outlive it.
class Poller {
 public:
  explicit Poller(Client& client) : client_(client) {}
  // What has changed since the last poll that succeeded; at the first one all that there is has. On an error
  // nothing counts as changed: a Slurm that does not answer has not lost its jobs.
  absl::StatusOr<Changes> Poll();
  // As they were at that poll. Partitions and reservations that cannot be had stay what they were; the same
  // pointer again means that nothing has changed.
  const std::vector<QueueJob>& jobs() const { return *jobs_; }
  const Client::List<Partition>& partitions() const { return partitions_; }
  const Client::List<Reservation>& reservations() const { return reservations_; }

 private:
  Client& client_;
  Client::List<Partition> partitions_ = std::make_shared<const std::vector<Partition>>();
  Client::List<Reservation> reservations_ = std::make_shared<const std::vector<Reservation>>();
  Client::List<QueueJob> jobs_ = std::make_shared<const std::vector<QueueJob>>();
  Client::List<QueueNode> nodes_ = std::make_shared<const std::vector<QueueNode>>();
};

}  // namespace siding::slurm
