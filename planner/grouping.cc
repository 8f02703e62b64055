#include "planner/grouping.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace siding {

// Members come in the order of their nodes, so that few nodes are open at once (component.cc).
Component Whole(const Nodes& nodes, std::vector<Member> members) {
  Component component;
  std::vector<int>& its = component.nodes;
  for (const Member& member : members) {
    std::copy_if(member.nodes.begin(), member.nodes.end(), std::back_inserter(its),
                 [](int n) { return n >= 0; });
  }
  const auto by_id = [&](int a, int b) { return nodes.id(a) < nodes.id(b); };
  std::sort(its.begin(), its.end(), by_id);
  its.erase(std::unique(its.begin(), its.end()), its.end());
  for (int node : its) {
    for (int k = 0; k < nodes.deadlines(); ++k) component.limits.push_back(nodes.LimitsOf(node, k));
  }
  const int none = static_cast<int>(its.size());
  std::vector<std::pair<int, int>> order;  // by the first node, then the candidate
  for (size_t m = 0; m < members.size(); ++m) {
    int first = none;
    for (int& node : members[m].nodes) {
      if (node < 0) continue;
      node = static_cast<int>(std::lower_bound(its.begin(), its.end(), node, by_id) - its.begin());
      first = std::min(first, node);
    }
    order.emplace_back(first, static_cast<int>(m));
  }
  std::sort(order.begin(), order.end());
  component.members.reserve(order.size());
  for (const auto& [first, m] : order) component.members.push_back(std::move(members[m]));
  return component;
}

// Union-find over the nodes that members share.
std::vector<Component> Group(const Nodes& nodes, std::vector<Member> members) {
  std::vector<int> parent(members.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::unordered_map<int, int> first_on;
  for (size_t m = 0; m < members.size(); ++m) {
    for (int node : members[m].nodes) {
      if (node < 0) continue;
      auto [it, fresh] = first_on.emplace(node, static_cast<int>(m));
      if (!fresh) parent[root(static_cast<int>(m))] = root(it->second);
    }
  }
  std::vector<std::vector<Member>> groups;
  std::unordered_map<int, size_t> group_of;  // by root
  for (size_t m = 0; m < members.size(); ++m) {
    auto [it, fresh] = group_of.emplace(root(static_cast<int>(m)), groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(std::move(members[m]));
  }
  std::vector<Component> components;
  components.reserve(groups.size());
  for (std::vector<Member>& group : groups) components.push_back(Whole(nodes, std::move(group)));
  return components;
}

}  // namespace siding
