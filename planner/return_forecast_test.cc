#include "planner/return_forecast.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const Time kNow{seconds(1000)};
const NodeId kA("a"), kB("b"), kC("c");
const Resources kOneSlot{1, Bytes{0}, 0};

using Placements = std::vector<std::pair<JobId, std::vector<NodeId>>>;

Placements NoQueue(Time, const std::set<JobId>&, const std::map<NodeId, Resources>&,
                   const std::vector<const Holding*>&) {
  return {};
}

// Whoever has the lowest number gets the first free node.
Placements ByNumber(Time, const std::set<JobId>& waiting, const std::map<NodeId, Resources>& room,
                    const std::vector<const Holding*>&) {
  Placements placements;
  auto node = room.begin();
  for (const JobId& job : waiting) {
    while (node != room.end() && !node->second.Covers(kOneSlot)) ++node;
    if (node == room.end()) break;
    placements.push_back({job, {node++->first}});
  }
  return placements;
}

template <class T>
Known<T> Certain(T value, BackKind kind = BackKind::kWalltime) {
  return {value, value, kind};
}

// Nodes of one slot.
ReturnBasis Cluster(std::initializer_list<NodeId> nodes) {
  ReturnBasis basis;
  basis.now = kNow;
  for (const NodeId& node : nodes) basis.room[node] = basis.capacities[node] = kOneSlot;
  return basis;
}

void Hold(ReturnBasis& basis, int job, const std::vector<NodeId>& nodes, Known<Time> until = {}) {
  for (const NodeId& node : nodes) {
    if (const auto free = basis.room.find(node); free != basis.room.end()) free->second -= kOneSlot;
  }
  basis.held.push_back({JobId(job), nodes, kOneSlot, until, /*request=*/job >= 100});
}

Waiter Parked(int id, int nodes = 1) {
  Waiter waiter;
  waiter.job.id = JobId(id);
  waiter.job.stopped = kNow - seconds(10);
  waiter.job.per_node = kOneSlot;
  waiter.job.nodes = nodes;
  waiter.made_way = true;
  return waiter;
}

// What it gave up is held for it.
Waiter Frozen(ReturnBasis& basis, int id, const NodeId& on) {
  Waiter waiter = Parked(id);
  waiter.job.frozen_on = {on};
  basis.room[on] -= kOneSlot;
  return waiter;
}

Back BackOf(const ReturnBasis& basis, int job, QueueStart queue = NoQueue) {
  return ForecastReturns(basis, queue).at(JobId(job));
}

TEST(ReturnForecast, AFrozenJobGoesOnWhenTheRequestHasEnded) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Frozen(basis, 1, kA)};
  Hold(basis, 100, {kA}, Certain(kNow + seconds(60)));
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(60));
  EXPECT_EQ(back.latest, kNow + seconds(60));
  EXPECT_THAT(back.nodes, ElementsAre(kA));
  EXPECT_EQ(back.because.kind, BackKind::kWalltime);
  EXPECT_EQ(back.because.job, JobId(100));
  EXPECT_EQ(back.because.node, kA);
  EXPECT_TRUE(back.because.image);
}

TEST(ReturnForecast, WhatIsFreeIsTakenNow) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Parked(1)};
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow);
  EXPECT_EQ(back.because.kind, BackKind::kFree);
  EXPECT_FALSE(back.because.image);
}

TEST(ReturnForecast, WhatThePolicyExpectsIsNoLatestEnd) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Parked(1)};
  Hold(basis, 100, {kA}, {kNow + seconds(60), {}, BackKind::kExpected});
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(60));
  EXPECT_EQ(back.latest, std::nullopt);
  EXPECT_EQ(back.because.kind, BackKind::kExpected);
}

TEST(ReturnForecast, OneThatMayStayLongerThanExpectedHasALaterLatest) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Parked(1)};
  Hold(basis, 100, {kA}, {kNow + seconds(60), kNow + seconds(90), BackKind::kExpected});
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(60));
  EXPECT_EQ(back.latest, kNow + seconds(90));
}

TEST(ReturnForecast, BehindAJobWithoutAKnownEndThereIsNoTime) {
  ReturnBasis basis = Cluster({kA, kB});
  basis.waiters = {Parked(1)};
  Hold(basis, 7, {kA, kB});
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, std::nullopt);
  EXPECT_EQ(back.latest, std::nullopt);
  EXPECT_THAT(back.nodes, IsEmpty());
  EXPECT_EQ(back.because.kind, BackKind::kNoEnd);
  EXPECT_EQ(back.because.job, JobId(7));
  EXPECT_FALSE(back.because.image);
}

TEST(ReturnForecast, OneWhoseImageIsOnANodeWaitsForThatNodeAlone) {
  ReturnBasis basis = Cluster({kA, kB});
  Waiter waiter = Parked(1);
  waiter.job.tied_to = {kB};
  basis.waiters = {waiter};
  Hold(basis, 7, {kB});
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.because.kind, BackKind::kNoEnd);
  EXPECT_EQ(back.because.node, kB);
  EXPECT_TRUE(back.because.image);
}

TEST(ReturnForecast, ANodeThatIsAwayIsSaidToBe) {
  ReturnBasis basis = Cluster({kA});
  Waiter waiter = Parked(1);
  waiter.job.tied_to = {kB};
  basis.waiters = {waiter};
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, std::nullopt);
  EXPECT_EQ(back.because.kind, BackKind::kNodeAway);
  EXPECT_EQ(back.because.node, kB);
}

TEST(ReturnForecast, SoAreNodesThatAreNotThere) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Parked(1, 2)};
  EXPECT_EQ(BackOf(basis, 1).because.kind, BackKind::kTooFew);
}

TEST(ReturnForecast, OfTwoThatWaitForANodeTheSecondWaitsForTheFirst) {
  ReturnBasis basis = Cluster({kA});
  Waiter first = Parked(2);
  first.job.priority = 1;
  first.stays = Certain<Duration>(seconds(30));
  basis.waiters = {Parked(1), first};
  Hold(basis, 100, {kA}, Certain(kNow + seconds(60)));
  EXPECT_EQ(BackOf(basis, 2).predicted, kNow + seconds(60));
  const Back second = BackOf(basis, 1);
  EXPECT_EQ(second.predicted, kNow + seconds(90));
  EXPECT_EQ(second.because.job, JobId(2));
}

TEST(ReturnForecast, AndForGoodIfNothingIsKnownOfTheFirst) {
  ReturnBasis basis = Cluster({kA});
  Waiter first = Parked(2);
  first.job.priority = 1;
  basis.waiters = {Parked(1), first};
  Hold(basis, 100, {kA}, Certain(kNow + seconds(60)));
  const Back second = BackOf(basis, 1);
  EXPECT_EQ(second.predicted, std::nullopt);
  EXPECT_EQ(second.because.kind, BackKind::kNoEnd);
  EXPECT_EQ(second.because.job, JobId(2));
}

TEST(ReturnForecast, AGangWaitsForTheLastOfItsNodes) {
  ReturnBasis basis = Cluster({kA, kB, kC});
  basis.waiters = {Parked(1, 2)};
  Hold(basis, 100, {kA}, Certain(kNow + seconds(60)));
  Hold(basis, 101, {kB}, Certain(kNow + seconds(30)));
  Hold(basis, 102, {kC}, Certain(kNow + seconds(90)));
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(60));
  EXPECT_EQ(back.because.job, JobId(100));
}

TEST(ReturnForecast, AFrozenJobThatMovesIsThereWhenItHasMoved) {
  ReturnBasis basis = Cluster({kA, kB});
  Waiter frozen = Frozen(basis, 1, kA);
  frozen.job.move = seconds(20);
  basis.waiters = {frozen};
  Hold(basis, 100, {kA}, Certain(kNow + seconds(600)));
  Hold(basis, 7, {kB}, Certain(kNow + seconds(60)));
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(80));
  EXPECT_THAT(back.nodes, ElementsAre(kB));
  EXPECT_FALSE(back.because.image);
}

TEST(ReturnForecast, OneThatIsStillLeavingComesBackNoSooner) {
  ReturnBasis basis = Cluster({kA, kB});
  Waiter leaving = Parked(1);
  leaving.from = Certain(kNow + seconds(5), BackKind::kLeaving);
  basis.waiters = {leaving};
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(5));
  EXPECT_EQ(back.because.kind, BackKind::kLeaving);
}

TEST(ReturnForecast, ThatItLeavesItsOwnNodesNamesNoOther) {
  ReturnBasis basis = Cluster({kA});
  Waiter leaving = Parked(1);
  leaving.from = Certain(kNow + seconds(5), BackKind::kLeaving);
  basis.waiters = {leaving};
  Hold(basis, 1, {kA}, Certain(kNow + seconds(5), BackKind::kLeaving));
  const Back back = BackOf(basis, 1);
  EXPECT_EQ(back.predicted, kNow + seconds(5));
  EXPECT_EQ(back.because.kind, BackKind::kLeaving);
  EXPECT_EQ(back.because.job, JobId());
}

TEST(ReturnForecast, TheQueueGetsWhatTheWayBackLeaves) {
  ReturnBasis basis = Cluster({kA});
  Waiter queued = Parked(1);
  queued.made_way = false;
  Waiter back = Parked(2);
  back.stays = Certain<Duration>(seconds(30));
  basis.waiters = {queued, back};
  EXPECT_EQ(BackOf(basis, 2, ByNumber).predicted, kNow);
  EXPECT_EQ(BackOf(basis, 1, ByNumber).predicted, kNow + seconds(30));
  EXPECT_EQ(BackOf(basis, 1).because.kind, BackKind::kBehind) << "a queue that starts nobody";
}

TEST(ReturnForecast, WhatTakesTooMuchToWorkOutIsLeftOut) {
  ReturnBasis basis = Cluster({kA});
  basis.waiters = {Parked(1), Parked(2)};
  for (Waiter& waiter : basis.waiters) waiter.stays = Certain<Duration>(seconds(30));
  const auto backs = ForecastReturns(basis, NoQueue, /*effort=*/3);
  EXPECT_TRUE(backs.at(JobId(1)).predicted.has_value());
  EXPECT_EQ(backs.at(JobId(2)).because.kind, BackKind::kTooMuch);
}

// ---- Worlds by chance. ----

class World {
 public:
  explicit World(int seed) : random_(seed) {
    const int nodes = Draw(1, 6);
    for (int n = 0; n < nodes; ++n) basis_.room[NodeId("n" + std::to_string(n))] = kOneSlot;
    basis_.capacities = basis_.room;
    basis_.now = kNow;
    int job = 0;
    const std::map<NodeId, Resources> all = basis_.room;
    for (const auto& [node, room] : all) {
      ++job;
      if (Draw(0, 2) == 0) basis_.waiters.push_back(Frozen(basis_, job, node));
      const Time until = kNow + seconds(Draw(1, 100));
      if (Draw(0, 3) > 0) Hold(basis_, 100 + job, {node}, Certain(until));
    }
    for (int more = Draw(0, 8); more > 0; --more) basis_.waiters.push_back(Parked(20 + more));
    for (Waiter& waiter : basis_.waiters) {
      waiter.job.priority = Draw(0, 2);
      waiter.job.stopped = kNow - seconds(Draw(0, 50));
      waiter.stays = Certain<Duration>(seconds(Draw(1, 100)));
    }
  }

  int Draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  const ReturnBasis& basis() const { return basis_; }

  // What comes true: each job leaves when it is known to, or `early` before; whoever waits is asked each
  // second.
  std::map<JobId, Time> PlayOut(bool early) {
    struct Runs {
      std::vector<NodeId> nodes;
      Time until;
    };
    std::map<JobId, Runs> runs;
    std::map<NodeId, Resources> room = basis_.room;
    std::map<JobId, Returning> waiting;
    std::map<JobId, Duration> stays;
    std::map<JobId, Time> back;
    const auto shortened = [&](Duration d) {
      return early ? d - seconds(Draw(0, static_cast<int>(d / seconds(1)) - 1)) : d;
    };
    for (const Holding& h : basis_.held) runs[h.job] = {h.nodes, kNow + shortened(*h.until.latest - kNow)};
    for (const Waiter& w : basis_.waiters) {
      waiting[w.job.id] = w.job;
      stays[w.job.id] = shortened(*w.stays.latest);
    }
    for (Time now = kNow; !waiting.empty() && now < kNow + seconds(10'000); now += seconds(1)) {
      for (auto job = runs.begin(); job != runs.end();) {
        if (job->second.until > now) {
          ++job;
          continue;
        }
        for (const NodeId& node : job->second.nodes) room[node] += kOneSlot;
        job = runs.erase(job);
      }
      std::vector<Returning> jobs;
      for (const auto& [id, job] : waiting) jobs.push_back(job);
      for (const WayBack& way : PlanWayBack(jobs, room, {}, now)) {
        if (way.action != WayBack::Action::kResume) {
          for (const NodeId& node : way.nodes) room[node] -= kOneSlot;
        }
        back[way.job] = now;
        runs[way.job] = {way.nodes, now + stays.at(way.job)};
        waiting.erase(way.job);
      }
    }
    return back;
  }

 private:
  std::mt19937 random_;
  ReturnBasis basis_;
};

TEST(ReturnForecast, ComesTrueWhereEachJobLeavesWhenItIsKnownTo) {
  for (int seed = 0; seed < 300; ++seed) {
    World world(seed);
    const auto actual = world.PlayOut(/*early=*/false);
    for (const auto& [job, back] : ForecastReturns(world.basis(), NoQueue)) {
      ASSERT_TRUE(back.predicted && back.latest) << seed << ", job " << job;
      EXPECT_EQ(*back.predicted, actual.at(job)) << seed << ", job " << job;
    }
  }
}

// With jobs of one node each, who comes sooner takes nobody's turn.
TEST(ReturnForecast, NobodyIsBackLaterThanAtTheLatestWhereJobsLeaveSooner) {
  for (int seed = 0; seed < 300; ++seed) {
    World world(seed);
    const auto actual = world.PlayOut(/*early=*/true);
    for (const auto& [job, back] : ForecastReturns(world.basis(), NoQueue)) {
      ASSERT_TRUE(back.predicted && back.latest) << seed << ", job " << job;
      EXPECT_LE(actual.at(job), *back.latest) << seed << ", job " << job;
      EXPECT_LE(*back.predicted, *back.latest);
    }
  }
}

}  // namespace
}  // namespace siding
