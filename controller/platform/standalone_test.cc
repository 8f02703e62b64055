#include <algorithm>
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
// ---- Past one that has to wait. ----

constexpr Duration kMinute = std::chrono::minutes(1);

// A gang of two, and behind it a job that is done after so long; node a is free, b is as soon as `within`.
std::map<int, std::vector<NodeId>> PlaceBehindGang(Duration takes, Duration within) {
  Waiting small = Job(2);
  small.at_most = takes;
  std::vector<NodeRoom> room = Room({1, 0});
  if (within > Duration(0)) room[1].releases = {{within, Resources{}}};
  return Place({Job(1, 2), small}, std::move(room));
}

TEST(Standalone, WhoIsGoneByThenIsLetPastWhoHasToWait) {
  EXPECT_TRUE(PlaceBehindGang(kMinute, kMinute).contains(2));
}
TEST(Standalone, WhoIsNotIsNot) { EXPECT_TRUE(PlaceBehindGang(2 * kMinute, kMinute).empty()); }
TEST(Standalone, NorIsWhoDoesNotSay) { EXPECT_TRUE(PlaceBehindGang(Duration(0), kMinute).empty()); }
TEST(Standalone, NorIsAnybodyWhereTheOthersDoNotSay) {
  EXPECT_TRUE(PlaceBehindGang(kMinute, Duration(0)).empty());
}
TEST(Standalone, WhoWaitsStartsWithTheLastOfItsNodes) {
  Waiting small = Job(2), gang = Job(1, 3);
  small.at_most = 2 * kMinute;
  std::vector<NodeRoom> room = Room({1, 0, 0, 0});
  room[1].releases = {{3 * kMinute, Resources{}}};
  room[2].releases = {{kMinute, Resources{}}};
  room[3].releases = {{9 * kMinute, Resources{}}};
  EXPECT_TRUE(Place({gang, small}, room).contains(2));
  small.at_most = 4 * kMinute;
  EXPECT_TRUE(Place({gang, small}, room).empty());
}
TEST(Standalone, WhatIsPlacedNowIsGoneAfterItsTime) {
  Waiting first = Job(1), gang = Job(2, 2), small = Job(3);
  first.at_most = kMinute;
  small.at_most = 2 * kMinute;
  EXPECT_EQ(Place({first, gang, small}, Room({1, 1})).size(), 1u);
  small.at_most = kMinute;
  EXPECT_EQ(Place({first, gang, small}, Room({1, 1})).size(), 2u);
}

TEST(Standalone, AvoidsANodeUnlessNothingElseIsFree) {
  Waiting job = Job(1);
  job.avoid = {NodeId("a")};
  EXPECT_EQ(Place({job}, Room({1, 4}))[1], std::vector<NodeId>{NodeId("b")});
  EXPECT_EQ(Place({job}, Room({1, 0}))[1], std::vector<NodeId>{NodeId("a")});
  job.nodes = 2;
  EXPECT_EQ(Place({job}, Room({1, 1}))[1], (std::vector<NodeId>{NodeId("b"), NodeId("a")}));
}
TEST(Standalone, WaitsForTheNodesOfALocalImage) {
  Waiting job = Job(1);
  job.only_on = {NodeId("gone")};
  EXPECT_TRUE(Place({job}, Room({1})).empty());
}

TEST(Standalone, WhoWaitsForTheNodesOfALocalImageHoldsBackNobodyElsewhere) {
  Waiting job = Job(1);
  job.only_on = {NodeId("a")};
  EXPECT_EQ(Place({job, Job(2)}, Room({0, 1}))[2], std::vector<NodeId>{NodeId("b")});
}
TEST(Standalone, WhoWaitsForTheNodesOfALocalImageHasThemKeptFree) {
  Waiting job = Job(1, 2, 2);
  job.only_on = {NodeId("a"), NodeId("b")};
  EXPECT_TRUE(Place({job, Job(2)}, Room({2, 1})).empty());
}

// Some clusters and queues, the same in every run: every kind of resource runs short in some of them.
class StandaloneProperty : public testing::TestWithParam<unsigned> {
 protected:
  StandaloneProperty() : random_(GetParam()) {
    for (const char* name : {"a", "b", "c", "d"}) room_.push_back({NodeId(name), Some(6)});
    for (int i = 1; i <= 8; ++i) waiting_.push_back(SomeJob(i));
    placed_ = Place(waiting_, room_);
  }

  int Below(int limit) { return static_cast<int>(random_() % limit); }
  Resources Some(int most) { return {Below(most), Bytes{Below(most)}, Below(most)}; }
  Waiting SomeJob(int id) {
    Waiting job = Job(id, 1 + Below(3), 1, Below(3));
    job.per_node = Some(4);
    if (Below(4) == 0) {  // it has an image on some of the nodes
      for (const NodeRoom& node : room_) job.only_on.push_back(node.id);
      std::shuffle(job.only_on.begin(), job.only_on.end(), random_);
      job.only_on.resize(job.nodes);
    }
    return job;
  }
  const Waiting& JobOf(int id) const { return waiting_[id - 1]; }

  std::mt19937 random_;
  std::vector<NodeRoom> room_;
  std::vector<Waiting> waiting_;
  std::map<int, std::vector<NodeId>> placed_;
};

TEST_P(StandaloneProperty, NeverPlacesMoreThanThereIs) {
  std::map<NodeId, Resources> left;
  for (const NodeRoom& node : room_) left[node.id] = node.free;
  for (const auto& [id, nodes] : placed_) {
    for (const NodeId& node : nodes) left.at(node) -= JobOf(id).per_node;
  }
  for (const auto& [node, rest] : left) {
    EXPECT_TRUE(rest.Covers(Resources{0, Bytes{0}, 0})) << "on " << node.value();
  }
}

TEST_P(StandaloneProperty, EveryRankHasANodeOfItsOwn) {
  for (const auto& [id, nodes] : placed_) {
    EXPECT_EQ(nodes.size(), static_cast<size_t>(JobOf(id).nodes)) << "job " << id;
    EXPECT_EQ(std::set<NodeId>(nodes.begin(), nodes.end()).size(), nodes.size()) << "job " << id;
  }
}

TEST_P(StandaloneProperty, AnImageIsRestoredWhereItLies) {
  for (const auto& [id, nodes] : placed_) {
    if (JobOf(id).only_on.empty()) continue;
    EXPECT_EQ(nodes, JobOf(id).only_on) << "job " << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StandaloneProperty, testing::Range(1U, 301U));

}  // namespace
}  // namespace siding
