#include "controller/engine/state/job_index.h"

#include "controller/engine/state/cluster_state.h"

namespace siding {
namespace {

void Put(JobIndex::Jobs& jobs, JobRecord& job, bool belongs) {
  if (belongs) {
    jobs[job.id] = &job;
  } else {
    jobs.erase(job.id);
  }
}

}  // namespace

void JobIndex::Update(JobRecord& job) {
  const bool unfinished = !IsTerminal(job.state), holds = HoldsNodes(job.state);
  Put(requests_, job, unfinished && IsRequest(job));
  Put(waiting_, job, unfinished && !holds);
  Put(unsettled_, job, holds && (job.state != JobState::kRunning || job.in_ram));
  Put(with_orders_, job, unfinished && job.waiting_order.has_value());
  std::set<JobId>& users = by_user_[job.spec.uid];
  if (unfinished) {
    users.insert(job.id);
  } else {
    users.erase(job.id);
  }
  if (users.empty()) by_user_.erase(job.spec.uid);
  Move(job.id, holds ? job.nodes : std::vector<NodeId>());
}

void JobIndex::Move(JobId job, const std::vector<NodeId>& nodes) {
  const auto known = nodes_.find(job);
  if (known != nodes_.end()) {
    if (known->second == nodes) return;
    for (size_t rank = 0; rank < known->second.size(); ++rank) {
      const auto there = on_.find(known->second[rank]);
      there->second.erase({job, static_cast<int>(rank)});
      if (there->second.empty()) on_.erase(there);
    }
    nodes_.erase(known);
  }
  if (nodes.empty()) return;
  for (size_t rank = 0; rank < nodes.size(); ++rank) on_[nodes[rank]].insert({job, static_cast<int>(rank)});
  nodes_[job] = nodes;
}

size_t JobIndex::CountOf(uint32_t uid) const {
  const auto found = by_user_.find(uid);
  return found == by_user_.end() ? 0 : found->second.size();
}

const JobIndex::Ranks& JobIndex::On(const NodeId& node) const {
  static const Ranks kNone;
  const auto found = on_.find(node);
  return found == on_.end() ? kNone : found->second;
}

}  // namespace siding
