#include "planner/board.h"

namespace siding {

bool LeavesFor(const JobView& job, const Request& request) {
  return job.releasing_at && (job.releasing_for == JobId() || job.releasing_for == request.id);
}

Board::Board(const Snapshot& snapshot, const Request& request, const std::vector<Candidate>& candidates,
             Duration within)
    : snapshot_(snapshot), request_(request), within_(within), states_(snapshot.nodes.size()) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const NodeView& node = snapshot.nodes[i];
    states_[i].free = node.free;
    states_[i].eligible = node.usable && node.capacity.Covers(request.per_node);
  }
  for (const Candidate& candidate : candidates) {
    const JobView& job = *candidate.job;
    if (!LeavesFor(job, request) || *job.releasing_at - snapshot.now > within) continue;
    for (int node : candidate.nodes) {
      if (node >= 0) states_[node].free += job.per_node;
    }
  }
  for (size_t i = 0; i < states_.size(); ++i) states_[i].free_anyway = IsFree(static_cast<int>(i));
}

void Board::Apply(const Candidate& candidate, const Option& option, int sign) {
  const JobView& job = *candidate.job;
  for (size_t rank = 0; rank < candidate.nodes.size(); ++rank) {
    if (candidate.nodes[rank] < 0) continue;
    NodeState& state = states_[candidate.nodes[rank]];
    state.free.slots += sign * job.per_node.slots;
    if (option.StaysInRam()) {
      state.frozen.value += sign * job.memory[rank].value;
    } else {
      state.free.memory.value += sign * job.per_node.memory.value;
      state.free.gpus += sign * job.per_node.gpus;
    }
    if (option.method == Method::kCheckpoint) {
      (option.ToLocalDisk() ? state.to_disk : state.to_shared).value += sign * job.memory[rank].value;
    }
  }
}

Duration Board::WriteTime(int node, Tier tier) const {
  const Bytes bytes = tier == Tier::kLocal ? states_[node].to_disk : states_[node].to_shared;
  if (bytes == Bytes{0}) return Duration(0);
  return (tier == Tier::kLocal ? snapshot_.nodes[node].local : snapshot_.nodes[node].shared).dump.For(bytes);
}

bool Board::Fits(int node) const {
  const NodeState& state = states_[node];
  const NodeView& view = snapshot_.nodes[node];
  const Bytes beside = state.eligible ? request_.per_node.memory : Bytes{0};
  if (state.frozen > Bytes{0} && state.frozen + beside > view.ram_available) return false;
  return state.to_disk <= view.local_disk_free && WriteTime(node, Tier::kLocal) <= within_ &&
         WriteTime(node, Tier::kShared) <= within_;
}

}  // namespace siding
