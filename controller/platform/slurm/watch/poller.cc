#include "controller/platform/slurm/watch/poller.h"

#include <utility>

#include "common/status.h"

namespace siding::slurm {

absl::StatusOr<Changes> Poller::Poll() {
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueJob> jobs, client_.Jobs());
  SIDING_ASSIGN_OR_RETURN(Client::List<QueueNode> nodes, client_.Nodes());
  Changes changes;
  if (jobs != jobs_) changes.jobs = Compare(*jobs_, *jobs);
  if (nodes != nodes_) changes.nodes = Compare(*nodes_, *nodes);
  jobs_ = std::move(jobs);
  nodes_ = std::move(nodes);
  return changes;
}

}  // namespace siding::slurm
