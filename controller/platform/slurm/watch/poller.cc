#include "controller/platform/slurm/watch/poller.h"

#include <utility>

#include "common/status.h"

namespace siding::slurm {

absl::StatusOr<Changes> Poller::Poll() {
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueJob> jobs, client_.Jobs());
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueNode> nodes, client_.Nodes());
  // Those of the site's, which not everybody may see.
  if (auto partitions = client_.Partitions(); partitions.ok()) partitions_ = *std::move(partitions);
  if (auto reservations = client_.Reservations(); reservations.ok()) reservations_ = *std::move(reservations);
  Changes changes;
  if (jobs != jobs_) changes.jobs = Compare(*jobs_, *jobs);
  if (nodes != nodes_) changes.nodes = Compare(*nodes_, *nodes);
  jobs_ = std::move(jobs);
  nodes_ = std::move(nodes);
  return changes;
}

}  // namespace siding::slurm
