#include "controller/engine/decide/batch_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "controller/engine/state/predicates.h"
#include "controller/platform/ownership.h"

namespace siding {
namespace {

// The first job that has to wait; the others wait behind it. A job that can continue only on its own nodes
// holds up no job elsewhere.
JobId HeadOf(const std::vector<Waiting>& waiting, const std::vector<Placement>& placements) {
  std::set<JobId> placed;
  for (const Placement& placement : placements) placed.insert(placement.job);
  const Waiting* head = nullptr;
  for (const Waiting& job : waiting) {
    if (placed.contains(job.id) || !job.only_on.empty() || !job.not_on.empty()) continue;
    if (head == nullptr || GoesBefore(job, *head)) head = &job;
  }
  return head == nullptr ? JobId() : head->id;
}

}  // namespace

std::vector<NodeRoom> WithoutHeadroom(const std::map<NodeId, Resources>& room,
                                      const std::vector<Waiting>& waiting,
                                      const std::map<NodeId, Resources>& capacities, int headroom) {
  std::vector<NodeRoom> left;
  left.reserve(room.size());
  for (const auto& [id, free] : room) left.push_back({id, free, {}});
  if (headroom == 0) return left;
  std::set<NodeId> needed;
  for (const Waiting& job : waiting) needed.insert(job.only_on.begin(), job.only_on.end());
  int kept = 0;
  std::erase_if(left, [&](const NodeRoom& node) {
    const bool idle = node.free == capacities.at(node.id);
    return idle && !needed.contains(node.id) && kept++ < headroom;
  });
  return left;
}

void DropWhoFitsNowhere(std::vector<Waiting>& waiting, const std::map<NodeId, Resources>& capacities,
                        int headroom) {
  std::map<NodeId, Resources> empty;
  for (NodeRoom& node : WithoutHeadroom(capacities, waiting, capacities, headroom))
    empty.emplace(std::move(node.id), node.free);
  std::erase_if(waiting, [&](const Waiting& job) { return !CouldFit(job, empty); });
}

bool IsAnyLimited(const std::vector<Waiting>& waiting) {
  return std::any_of(waiting.begin(), waiting.end(),
                     [](const Waiting& job) { return job.at_most > Duration(0); });
}

bool BatchQueue::IsInQueue(const JobRecord& job) const {
  if (HoldsNodes(job.state) || !OwnershipOf(job.spec).siding_starts) return false;
  // Other on-demand jobs that are to start from the beginning are granted by Requests::Advance().
  return !IsRequest(job) || job.state != JobState::kPending || IsQueued(job);
}

Waiting BatchQueue::WaitingOf(const JobRecord& job) const {
  const int priority = IsRequest(job) ? std::numeric_limits<int>::max() : job.spec.priority;
  Waiting w{job.id, priority, job.submitted, job.spec.nodes, job.spec.per_node, TiedTo(job)};
  if (ContinuesFromImage(job)) w.only_on = WithoutExited(job, std::move(w.only_on));
  w.avoid = VacatedBy(job);
  w.at_most = std::max(Duration(0), planning_.TimeLeft(job).value_or(Duration(0)));
  return w;
}

bool BatchQueue::PlaceWaiting() {
  std::vector<Waiting> waiting;
  for (const auto& [id, idle] : state_.index.waiting()) {
    const JobRecord& job = *idle;
    if (recovery_.MustWait(job) || !IsInQueue(job)) continue;
    Waiting w = WaitingOf(job);
    if (const std::set<NodeId>* tried = recovery_.NotOn(job)) {
      if (!w.only_on.empty()) continue;
      w.not_on = *tried;
    }
    waiting.push_back(std::move(w));
  }
  queue_head_ = JobId();
  if (waiting.empty()) return false;
  const std::map<NodeId, Resources> capacities = accounts_.Capacities();
  DropWhoFitsNowhere(waiting, capacities, policy_.headroom_nodes);
  if (waiting.empty()) return false;
  std::vector<NodeRoom> room =
      WithoutHeadroom(accounts_.Room({}), waiting, capacities, policy_.headroom_nodes);
  if (IsAnyLimited(waiting)) AddReleases(room);
  const std::vector<Placement> placements = platform_.Place(waiting, std::move(room));
  queue_head_ = HeadOf(waiting, placements);
  for (const Placement& placement : placements) {
    const JobRecord& job = state_.jobs.at(placement.job);
    if (!cluster_.AreUsable(placement.nodes)) continue;  // one before it is tried there first
    JobMoved move;
    move.event = JobEvent::kPlace;
    const std::vector<NodeId> tied = TiedTo(job);
    move.nodes = tied.empty() ? placement.nodes : tied;
    if (ContinuesFromImage(job)) move.checkpoint = job.checkpoints.back();
    recorder_.Move(job, std::move(move));
  }
  return !placements.empty();
}

std::vector<NodeId> BatchQueue::TiedTo(const JobRecord& job) const {
  if (ContinuesFromImage(job)) {
    const CheckpointRecord& checkpoint = state_.checkpoints.at(job.checkpoints.back());
    if (checkpoint.tier == Tier::kLocal) return checkpoint.nodes;
  }
  return cluster_.TargetOf(job);
}

// A job that starts from the beginning starts with all its ranks, whatever images it has.
bool BatchQueue::ContinuesFromImage(const JobRecord& job) const {
  return job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kCheckpoint;
}

// Ranks that had ended when the image was made need no room, and their nodes need not be up.
std::vector<NodeId> BatchQueue::WithoutExited(const JobRecord& job, std::vector<NodeId> tied) const {
  const std::map<int, int>& exited = state_.checkpoints.at(job.checkpoints.back()).exited;
  std::vector<NodeId> needed;
  for (int rank = 0; rank < static_cast<int>(tied.size()); ++rank) {
    if (!exited.contains(rank)) needed.push_back(std::move(tied[rank]));
  }
  return needed;
}

// An operator or its user wants it off these nodes; no request does.
std::vector<NodeId> BatchQueue::VacatedBy(const JobRecord& job) const {
  const bool vacated = job.state == JobState::kParked && job.current.event == JobEvent::kOrderDump &&
                       job.current.request == JobId() && job.displaced_by == JobId();
  return vacated ? job.last_nodes : std::vector<NodeId>();
}

void BatchQueue::AddReleases(std::vector<NodeRoom>& room) const {
  for (NodeRoom& node : room) {
    for (const auto& [id, rank] : state_.index.On(node.id)) {
      const JobRecord& job = *state_.unfinished.at(id);
      const std::optional<Duration> left = planning_.TimeLeft(job);
      if (left && *left > Duration(0) && !job.exited.contains(rank))
        node.releases.push_back({*left, cluster_.HeldBy(job, node.id)});
    }
  }
}

}  // namespace siding
