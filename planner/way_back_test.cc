#include "planner/way_back.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Action = WayBack::Action;

const Time kNow{seconds(1000)};
const NodeId kA("a"), kB("b"), kC("c");

Returning Parked(int id, int nodes = 1) {
  Returning job;
  job.id = JobId(id);
  job.stopped = kNow - seconds(10);
  job.nodes = nodes;
  return job;
}

Returning Frozen(int id, const NodeId& on) {
  Returning job = Parked(id);
  job.frozen_on = {on};
  job.move = seconds(20);
  return job;
}

std::map<NodeId, Resources> Free(std::initializer_list<NodeId> nodes) {
  std::map<NodeId, Resources> room = {{kA, {0, Bytes{0}, 0}}, {kB, {0, Bytes{0}, 0}}, {kC, {0, Bytes{0}, 0}}};
  for (const NodeId& node : nodes) room[node].slots = 1;
  return room;
}

// Another job uses the slot that a frozen job on this node has a claim to.
std::map<NodeId, Resources> Busy(const NodeId& node, std::initializer_list<NodeId> free) {
  auto room = Free(free);
  room[node].slots = -1;
  return room;
}

std::vector<int64_t> Ids(const std::vector<WayBack>& way) {
  std::vector<int64_t> ids;
  for (const WayBack& step : way) ids.push_back(step.job.value());
  return ids;
}

TEST(WayBack, FrozenJobsGoOnWhereTheyAre) {
  const auto way = PlanWayBack({Frozen(1, kA)}, Free({kB}), {}, kNow);
  ASSERT_EQ(way.size(), 1u);
  EXPECT_EQ(way[0].action, Action::kResume);
  EXPECT_THAT(way[0].nodes, ElementsAre(kA));
}

TEST(WayBack, OnSomeNodesOnlyWhatIsFrozenThereGoesOn) {
  const std::map<NodeId, Resources> there = {{kA, {0, Bytes{0}, 0}}};
  EXPECT_THAT(PlanWayBack({Frozen(1, kA)}, {}, {}, kNow), IsEmpty());
  EXPECT_EQ(PlanWayBack({Frozen(1, kA)}, {}, {}, kNow, there)[0].action, Action::kResume);
  EXPECT_THAT(PlanWayBack({Parked(1)}, {}, {}, kNow, {{kA, {1, Bytes{0}, 0}}}), IsEmpty());
}

TEST(WayBack, AFrozenJobMovesIfItsNodeIsHeldForLongerThanThatTakes) {
  const auto way = PlanWayBack({Frozen(1, kA)}, Busy(kA, {kB}), {{kA, kNow + seconds(21)}}, kNow);
  ASSERT_EQ(way.size(), 1u);
  EXPECT_EQ(way[0].action, Action::kMove);
  EXPECT_THAT(way[0].nodes, ElementsAre(kB));
}

TEST(WayBack, AFrozenJobWaitsIfThatIsSooner) {
  EXPECT_THAT(PlanWayBack({Frozen(1, kA)}, Busy(kA, {kB}), {{kA, kNow + seconds(20)}}, kNow), IsEmpty());
}

TEST(WayBack, AFrozenJobThatCannotBeDumpedWaits) {
  Returning job = Frozen(1, kA);
  job.move = seconds(0);
  EXPECT_THAT(PlanWayBack({job}, Busy(kA, {kB}), {{kA, kNow + seconds(1000)}}, kNow), IsEmpty());
}

TEST(WayBack, OfTwoFrozenJobsOnANodeWithRoomForOneTheOneThatWaitsLongerGoesOn) {
  Returning recent = Frozen(1, kA), long_ago = Frozen(2, kA);
  recent.stopped = kNow;
  EXPECT_THAT(Ids(PlanWayBack({recent, long_ago}, Busy(kA, {}), {}, kNow)), ElementsAre(2));
}

TEST(WayBack, PriorityGoesFirstThenWhoHasStoodStillLongest) {
  Returning high = Parked(1), long_ago = Parked(2), recent = Parked(3);
  high.priority = 1;
  recent.stopped = kNow;
  EXPECT_THAT(Ids(PlanWayBack({recent, long_ago, high}, Free({kA, kB}), {}, kNow)), ElementsAre(1, 2));
}

TEST(WayBack, EqualsGoById) {
  EXPECT_THAT(Ids(PlanWayBack({Parked(2), Parked(1)}, Free({kA}), {}, kNow)), ElementsAre(1));
}

TEST(WayBack, AJobGoesBackToWhereItRan) {
  Returning job = Parked(1);
  job.was_on = {kB};
  EXPECT_THAT(PlanWayBack({job}, Free({kA, kB}), {}, kNow)[0].nodes, ElementsAre(kB));
}

TEST(WayBack, ATiedJobGoesOnlyWhereItsImageIs) {
  Returning job = Parked(1);
  job.tied_to = {kB};
  EXPECT_THAT(PlanWayBack({job}, Free({kA}), {}, kNow), IsEmpty());
  EXPECT_THAT(PlanWayBack({job}, Free({kA, kB}), {}, kNow)[0].nodes, ElementsAre(kB));
}

TEST(WayBack, ANodeThatATiedJobNeedsIsLeftToIt) {
  Returning tied = Parked(2), free = Parked(1);
  tied.tied_to = {kA};
  tied.stopped = kNow;  // behind the other
  const auto way = PlanWayBack({tied, free}, Free({kA, kB}), {}, kNow);
  ASSERT_EQ(way.size(), 2u);
  EXPECT_THAT(way[0].nodes, ElementsAre(kB));
  EXPECT_THAT(way[1].nodes, ElementsAre(kA));
}

TEST(WayBack, AGangComesBackWholeOrNotAtAll) {
  EXPECT_THAT(PlanWayBack({Parked(1, 3)}, Free({kA, kB}), {}, kNow), IsEmpty());
  EXPECT_THAT(PlanWayBack({Parked(1, 2)}, Free({kA, kB}), {}, kNow)[0].nodes, ElementsAre(kA, kB));
}

TEST(WayBack, AGangThatFindsNoPlaceHoldsNobodyBack) {
  Returning gang = Parked(1, 3);
  EXPECT_THAT(Ids(PlanWayBack({gang, Parked(2)}, Free({kA, kB}), {}, kNow)), ElementsAre(2));
}

TEST(WayBack, NoNodeIsGivenTwice) {
  const auto way = PlanWayBack({Parked(1), Parked(2), Parked(3)}, Free({kA, kB}), {}, kNow);
  EXPECT_EQ(way.size(), 2u);
}

}  // namespace
}  // namespace siding
