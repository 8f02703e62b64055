#include "planner/way_back.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace siding {
namespace {

class Returner {
 public:
  Returner(const std::vector<Returning>& jobs, std::map<NodeId, Resources> room,
           const std::map<NodeId, Resources>& to_continue)
      : room_(std::move(room)) {
    frozen_room_ = room_;
    frozen_room_.insert(to_continue.begin(), to_continue.end());
    for (const Returning& job : jobs) {
      needed_.insert(job.frozen_on.begin(), job.frozen_on.end());
      needed_.insert(job.tied_to.begin(), job.tied_to.end());
      for (const NodeId& node : job.frozen_on) {
        if (auto it = frozen_room_.find(node); it != frozen_room_.end())
          it->second += FreedByFreezing(job.per_node);
      }
    }
  }

  // A frozen job needs what it gave up; it has kept its memory.
  bool Resume(const Returning& job) {
    const Resources needed = FreedByFreezing(job.per_node);
    const auto has_room = [&](const NodeId& node) {
      auto it = frozen_room_.find(node);
      return it != frozen_room_.end() && it->second.slots >= needed.slots && it->second.gpus >= needed.gpus;
    };
    if (!std::all_of(job.frozen_on.begin(), job.frozen_on.end(), has_room)) return false;
    for (const NodeId& node : job.frozen_on) frozen_room_[node] -= needed;
    return true;
  }

  bool Take(const std::vector<NodeId>& nodes, const Resources& per_node) {
    const auto has_room = [&](const NodeId& node) {
      auto it = room_.find(node);
      return it != room_.end() && it->second.Covers(per_node);
    };
    if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), has_room)) return false;
    for (const NodeId& node : nodes) room_[node] -= per_node;
    return true;
  }

  // By rank; empty if there are not enough.
  std::vector<NodeId> Choose(const Returning& job) const {
    std::vector<const std::pair<const NodeId, Resources>*> fitting;
    for (const auto& entry : room_) {
      const bool own =
          std::find(job.frozen_on.begin(), job.frozen_on.end(), entry.first) != job.frozen_on.end();
      if (!own && entry.second.Covers(job.per_node)) fitting.push_back(&entry);
    }
    if (fitting.size() < static_cast<size_t>(job.nodes)) return {};
    const std::set<NodeId> before(job.was_on.begin(), job.was_on.end());
    std::sort(fitting.begin(), fitting.end(), [&](const auto* a, const auto* b) {
      const auto key = [&](const auto* entry) {
        const auto& [id, free] = *entry;
        return std::tuple(needed_.contains(id), !before.contains(id), free.slots, free.gpus, free.memory, id);
      };
      return key(a) < key(b);
    });
    std::vector<NodeId> nodes;
    nodes.reserve(job.nodes);
    for (int i = 0; i < job.nodes; ++i) nodes.push_back(fitting[i]->first);
    return nodes;
  }

 private:
  std::map<NodeId, Resources> room_;
  std::map<NodeId, Resources> frozen_room_;  // that frozen jobs may have back, what they gave up included
  std::set<NodeId> needed_;                  // by frozen and tied jobs
};

}  // namespace

std::vector<WayBack> PlanWayBack(std::vector<Returning> jobs, std::map<NodeId, Resources> room,
                                 const std::map<NodeId, Time>& held_until, Time now,
                                 const std::map<NodeId, Resources>& to_continue) {
  std::sort(jobs.begin(), jobs.end(), [](const Returning& a, const Returning& b) {
    return std::tuple(-a.priority, a.stopped, a.id) < std::tuple(-b.priority, b.stopped, b.id);
  });
  Returner returner(jobs, std::move(room), to_continue);
  std::vector<WayBack> way;
  for (const Returning& job : jobs) {
    const bool frozen = !job.frozen_on.empty();
    if (frozen && returner.Resume(job)) {
      way.push_back({job.id, WayBack::Action::kResume, job.frozen_on});
      continue;
    }
    if (frozen) {
      Time until = now;
      for (const NodeId& node : job.frozen_on) {
        if (auto it = held_until.find(node); it != held_until.end()) until = std::max(until, it->second);
      }
      if (job.move == Duration(0) || now + job.move >= until) continue;
    }
    const std::vector<NodeId> nodes = frozen || job.tied_to.empty() ? returner.Choose(job) : job.tied_to;
    if (!returner.Take(nodes, job.per_node)) continue;
    way.push_back({job.id, frozen ? WayBack::Action::kMove : WayBack::Action::kRestore, nodes});
  }
  return way;
}

}  // namespace siding
