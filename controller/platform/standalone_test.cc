#include <map>
#include <random>
#include <set>

#include "controller/platform/platform.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

Waiting Job(int id, int nodes = 1, int slots = 1, int priority = 0) {
  Waiting w;
  w.id = JobId(id);
  w.priority = priority;
  w.submitted = FromMicros(id);
  w.nodes = nodes;
  w.per_node.slots = slots;
  return w;
}

std::vector<NodeRoom> Room(std::initializer_list<int> slots) {
  std::vector<NodeRoom> room;
  char name = 'a';
  for (int s : slots) room.push_back({NodeId(std::string(1, name++)), Resources{s, Bytes{0}, 0}});
  return room;
}

std::map<int, std::vector<NodeId>> Place(const std::vector<Waiting>& waiting, std::vector<NodeRoom> room) {
  std::map<int, std::vector<NodeId>> placed;
  for (const Placement& p : NewStandalonePlatform()->Place(waiting, std::move(room))) {
    placed[static_cast<int>(p.job.value())] = p.nodes;
  }
  return placed;
}

TEST(Standalone, FirstComeFirstServed) { EXPECT_TRUE(Place({Job(2), Job(1)}, Room({1})).contains(1)); }
TEST(Standalone, PriorityGoesFirst) { EXPECT_TRUE(Place({Job(1), Job(2, 1, 1, 5)}, Room({1})).contains(2)); }
TEST(Standalone, AGangGetsAllItsNodesOrNone) { EXPECT_TRUE(Place({Job(1, 3)}, Room({1, 1})).empty()); }
TEST(Standalone, WhatDoesNotFitHoldsBackTheRest) {
  EXPECT_TRUE(Place({Job(1, 3), Job(2)}, Room({1, 1})).empty());
}
TEST(Standalone, TakesTheTightestNode) {
  EXPECT_EQ(Place({Job(1)}, Room({4, 1, 2}))[1], std::vector<NodeId>{NodeId("b")});
}
TEST(Standalone, KeepsToTheNodesOfALocalImage) {
  Waiting job = Job(1);
  job.only_on = {NodeId("c")};
  EXPECT_EQ(Place({job}, Room({1, 1, 4}))[1], job.only_on);
}
TEST(Standalone, WaitsForTheNodesOfALocalImage) {
  Waiting job = Job(1);
  job.only_on = {NodeId("gone")};
  EXPECT_TRUE(Place({job}, Room({1})).empty());
}

TEST(Standalone, NeverPlacesMoreThanThereIs) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Waiting> waiting;
    for (int i = 1; i <= 8; ++i) waiting.push_back(Job(i, 1 + random() % 3, 1 + random() % 4, random() % 3));
    std::vector<NodeRoom> room = Room({static_cast<int>(random() % 6), static_cast<int>(random() % 6), 3});
    std::map<NodeId, int> left;
    for (const NodeRoom& r : room) left[r.id] = r.free.slots;
    for (const auto& [id, nodes] : Place(waiting, room)) {
      EXPECT_EQ(std::set<NodeId>(nodes.begin(), nodes.end()).size(), nodes.size());
      for (const NodeId& node : nodes) left[node] -= waiting[id - 1].per_node.slots;
    }
    for (const auto& [node, slots] : left) EXPECT_GE(slots, 0);
  }
}

}  // namespace
}  // namespace siding
