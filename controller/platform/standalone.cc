#include <algorithm>
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
    std::sort(queue.begin(), queue.end(), [](const Waiting* a, const Waiting* b) {
      return std::tuple(-a->priority, a->submitted, a->id) < std::tuple(-b->priority, b->submitted, b->id);
    });
    std::vector<Placement> placements;
    for (const Waiting* job : queue) {
      std::vector<NodeId> nodes = ChooseNodes(*job, room);
      if (nodes.empty()) {
        // The first that does not fit holds back the rest: were the small ones let past it, a gang might
        // never find its nodes free together. One that can go on only where its image lies holds those nodes
        // alone. One that has just failed somewhere waits for its own time, and holds back nobody until then.
        if (!job->not_on.empty()) continue;
        if (job->only_on.empty()) break;
        std::erase_if(room, [&](const NodeRoom& node) {
          return std::find(job->only_on.begin(), job->only_on.end(), node.id) != job->only_on.end();
        });
        continue;
      }
      for (const NodeId& node : nodes) Find(room, node)->free -= job->per_node;
      placements.push_back({job->id, std::move(nodes)});
    }
    return placements;
  }

 private:
  static NodeRoom* Find(std::vector<NodeRoom>& room, const NodeId& id) {
    auto it = std::find_if(room.begin(), room.end(), [&](const NodeRoom& r) { return r.id == id; });
    return it == room.end() ? nullptr : &*it;
  }

  // By rank; empty if it does not fit. Best fit: the nodes with the least left over, then by name.
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
    std::partial_sort(fitting.begin(), fitting.begin() + job.nodes, fitting.end(),
                      [](const NodeRoom* a, const NodeRoom* b) {
                        return std::tuple(a->free.slots, a->free.gpus, a->free.memory, a->id) <
                               std::tuple(b->free.slots, b->free.gpus, b->free.memory, b->id);
                      });
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < need; ++i) nodes.push_back(fitting[i]->id);
    return nodes;
  }
};

}  // namespace

std::unique_ptr<Platform> NewStandalonePlatform() { return std::make_unique<StandalonePlatform>(); }

}  // namespace siding
