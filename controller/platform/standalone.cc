#include <algorithm>
#include <optional>
#include <tuple>

#include "controller/platform/platform.h"

namespace siding {
namespace {

class StandalonePlatform final : public Platform {
 public:
  std::vector<Placement> Place(const std::vector<Waiting>& waiting, std::vector<NodeRoom> room) override {
    std::vector<const Waiting*> queue;
    queue.reserve(waiting.size());
    for (const Waiting& job : waiting) queue.push_back(&job);
    std::sort(queue.begin(), queue.end(),
              [](const Waiting* a, const Waiting* b) { return GoesBefore(*a, *b); });
    std::vector<Placement> placements;
    std::optional<Duration> until;  // when the first that has to wait can start
    for (const Waiting* job : queue) {
      if (until && (job->at_most == Duration(0) || job->at_most > *until)) continue;
      std::vector<NodeId> nodes = ChooseNodes(*job, room);
      if (!nodes.empty()) {
        for (const NodeId& node : nodes) Take(*Find(room, node), *job);
        placements.push_back({job->id, std::move(nodes)});
      } else if (!job->not_on.empty()) {
        // One that has just failed somewhere waits for its own time, and holds back nobody until then.
        continue;
      } else if (!job->only_on.empty()) {
        // One that can go on only where its image lies holds those nodes alone.
        std::erase_if(room, [&](const NodeRoom& node) {
          return std::find(job->only_on.begin(), job->only_on.end(), node.id) != job->only_on.end();
        });
      } else if (!until) {
        // The first that does not fit holds back the rest: were the small ones let past it whatever they do,
        // a gang might never find its nodes free together.
        until = CanStartWithin(*job, room);
        if (!until) break;
      }
    }
    return placements;
  }

 private:
  static void Take(NodeRoom& node, const Waiting& job) {
    node.free -= job.per_node;
    if (job.at_most > Duration(0)) node.releases.push_back({job.at_most, job.per_node});
  }

  // When the node has room for the job, as far as that is known.
  static std::optional<Duration> HasRoomWithin(const Waiting& job, NodeRoom node) {
    std::sort(node.releases.begin(), node.releases.end(),
              [](const Release& a, const Release& b) { return a.within < b.within; });
    if (node.free.Covers(job.per_node)) return Duration(0);
    for (const Release& release : node.releases) {
      node.free += release.what;
      if (node.free.Covers(job.per_node)) return release.within;
    }
    return std::nullopt;
  }

  static std::optional<Duration> CanStartWithin(const Waiting& job, const std::vector<NodeRoom>& room) {
    std::vector<Duration> within;
    for (const NodeRoom& node : room) {
      if (const auto has_room = HasRoomWithin(job, node)) within.push_back(*has_room);
    }
    const auto last = static_cast<size_t>(job.nodes) - 1;
    if (within.size() <= last) return std::nullopt;
    std::nth_element(within.begin(), within.begin() + job.nodes - 1, within.end());
    return within[last];
  }

  static NodeRoom* Find(std::vector<NodeRoom>& room, const NodeId& id) {
    auto it = std::find_if(room.begin(), room.end(), [&](const NodeRoom& r) { return r.id == id; });
    return it == room.end() ? nullptr : &*it;
  }

  // By rank; empty if it does not fit. Best fit: not the nodes to be avoided, then the nodes with the
  // least left over, then by name.
  static std::vector<NodeId> ChooseNodes(const Waiting& job, std::vector<NodeRoom>& room) {
    if (!job.only_on.empty()) {
      for (const NodeId& node : job.only_on) {
        const NodeRoom* found = Find(room, node);
        if (found == nullptr || !found->free.Covers(job.per_node)) return {};
      }
      return job.only_on;
    }
    std::vector<const NodeRoom*> fitting;
    for (const NodeRoom& node : room) {
      if (node.free.Covers(job.per_node) && !job.not_on.contains(node.id)) fitting.push_back(&node);
    }
    const size_t need = static_cast<size_t>(job.nodes);
    if (fitting.size() < need) return {};
    const auto is_avoided = [&](const NodeRoom* node) {
      return std::find(job.avoid.begin(), job.avoid.end(), node->id) != job.avoid.end();
    };
    std::partial_sort(fitting.begin(), fitting.begin() + job.nodes, fitting.end(),
                      [&](const NodeRoom* a, const NodeRoom* b) {
                        return std::tuple(is_avoided(a), a->free.slots, a->free.gpus, a->free.memory, a->id) <
                               std::tuple(is_avoided(b), b->free.slots, b->free.gpus, b->free.memory, b->id);
                      });
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < need; ++i) nodes.push_back(fitting[i]->id);
    return nodes;
  }
};

}  // namespace

std::unique_ptr<Platform> NewStandalonePlatform() { return std::make_unique<StandalonePlatform>(); }

}  // namespace siding
