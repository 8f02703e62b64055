// Images go only where there is room for them, and a method that has failed is planned with from when it is
// back.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "planner/random_cluster.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr Bytes kImage{100 * kMiB};  // of MakeJob()

// Jobs with a node each, and their local tiers have no room.
Snapshot WithoutLocal(int nodes, MethodSet methods = {Method::kCheckpoint}) {
  Snapshot snapshot = MakeSnapshot(nodes, {});
  for (int i = 0; i < nodes; ++i) {
    snapshot.jobs.push_back(MakeJob(i + 1, {i}, methods));
    snapshot.nodes[i].local_disk_free = Bytes{0};
  }
  return snapshot;
}

void SetSharedFree(Snapshot& snapshot, Bytes free) {
  snapshot.shared.free = free;
  for (NodeView& node : snapshot.nodes) node.shared_disk_free = free;
}

Plan PlanFor(const Snapshot& snapshot, int nodes, Duration within = seconds(60)) {
  return MakePlan(snapshot, MakeRequest(nodes, within), NoMargin());
}

TEST(RoomTest, NoImageGoesToASharedTierThatIsFull) {
  Snapshot snapshot = WithoutLocal(1);
  SetSharedFree(snapshot, kImage - Bytes{1});
  const Plan plan = PlanFor(snapshot, 1);
  EXPECT_FALSE(plan.feasible);
  EXPECT_THAT(plan.refusal, AllOf(HasSubstr("nor later as long as images have no room"),
                                  HasSubstr("tier local on node n0 is full: 0 B free, 100.0 MiB needed"),
                                  HasSubstr("tier shared on node n0 is full: ")));
}

TEST(RoomTest, WhereThereIsJustRoomItDoes) {
  Snapshot snapshot = WithoutLocal(1);
  SetSharedFree(snapshot, kImage);
  EXPECT_TRUE(PlanFor(snapshot, 1).feasible);
}

TEST(RoomTest, OneThatWouldGoToAFullSharedTierGoesToTheLocalOne) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.nodes[0].local = snapshot.nodes[0].shared;
  snapshot.nodes[0].local.dump.bytes_per_second /= 2;  // else it would be the better one anyway
  ASSERT_EQ(PlanFor(snapshot, 1).steps.at(0).tier, Tier::kShared);
  SetSharedFree(snapshot, Bytes{0});
  const Plan plan = PlanFor(snapshot, 1);
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_EQ(plan.steps[0].tier, Tier::kLocal);
  EXPECT_THAT(plan.steps[0].reason, HasSubstr("tier shared on node n0 is full: 0 B free"));
}

TEST(RoomTest, AnotherMethodIsUsedThatIsAllowed) {
  Snapshot snapshot = WithoutLocal(1, {Method::kCheckpoint, Method::kKill});
  SetSharedFree(snapshot, Bytes{0});
  const Plan plan = PlanFor(snapshot, 1);
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_EQ(plan.steps[0].method, Method::kKill);
}

TEST(RoomTest, ATierWithAProblemIsAsGoodAsFull) {
  Snapshot snapshot = WithoutLocal(2);
  snapshot.nodes[0].shared_problem = "no image could be written there: Input/output error";
  EXPECT_EQ(PlanFor(snapshot, 1).steps.at(0).job, JobId(2));
  EXPECT_THAT(PlanFor(snapshot, 2).refusal,
              HasSubstr("tier shared on node n0: no image could be written there"));
}

TEST(RoomTest, AGangNeedsRoomForAllOfItsImages) {
  Snapshot snapshot = WithoutLocal(2);
  snapshot.jobs = {MakeJob(1, {0, 1}, {Method::kCheckpoint})};
  SetSharedFree(snapshot, kImage + kImage - Bytes{1});
  EXPECT_FALSE(PlanFor(snapshot, 2).feasible);
  SetSharedFree(snapshot, kImage + kImage);
  EXPECT_TRUE(PlanFor(snapshot, 2).feasible);
}

TEST(RoomTest, ImagesOfOnePlanShareTheRoom) {
  Snapshot snapshot = WithoutLocal(3, {Method::kCheckpoint, Method::kKill});
  SetSharedFree(snapshot, kImage + kImage);
  const Plan plan = PlanFor(snapshot, 3);
  ASSERT_THAT(plan.steps, SizeIs(3));
  const auto killed = std::count_if(plan.steps.begin(), plan.steps.end(),
                                    [](const PlanStep& step) { return step.method == Method::kKill; });
  EXPECT_EQ(killed, 1);
  EXPECT_FALSE(plan.exact);
}

TEST(RoomTest, TheSmallestHaveItFirst) {
  Snapshot snapshot = WithoutLocal(3, {Method::kCheckpoint, Method::kKill});
  snapshot.jobs[0].memory = {kImage + kImage};
  SetSharedFree(snapshot, kImage + kImage);
  for (const PlanStep& step : PlanFor(snapshot, 3).steps)
    EXPECT_EQ(step.method == Method::kKill, step.job == JobId(1));
}

TEST(RoomTest, AnotherVictimIsFoundForOneThatHasNoneBesideTheOthers) {
  Snapshot snapshot = WithoutLocal(3);
  SetSharedFree(snapshot, kImage);
  snapshot.jobs[2].methods = {Method::kKill};  // the dearest by far
  std::vector<Method> methods;
  for (const PlanStep& step : PlanFor(snapshot, 2).steps) methods.push_back(step.method);
  EXPECT_THAT(methods, UnorderedElementsAre(Method::kCheckpoint, Method::kKill));
}

TEST(RoomTest, WithoutRoomForAllTheRequestIsRefused) {
  Snapshot snapshot = WithoutLocal(2);
  SetSharedFree(snapshot, kImage);
  const Plan plan = PlanFor(snapshot, 2);
  EXPECT_FALSE(plan.feasible);
  EXPECT_THAT(plan.refusal, HasSubstr("tier shared is full: 0 B free beside the images of other jobs"));
}

TEST(RoomTest, RequestsThatArePlannedTogetherShareItToo) {
  Snapshot snapshot = WithoutLocal(2, {Method::kCheckpoint, Method::kKill});
  SetSharedFree(snapshot, kImage);
  Request first = MakeRequest(1), second = MakeRequest(1, seconds(61));
  second.id = JobId(100);
  int saved = 0;
  for (const Plan& plan : MakePlans(snapshot, {first, second}, NoMargin())) {
    ASSERT_TRUE(plan.feasible);
    for (const PlanStep& step : plan.steps) saved += step.method == Method::kCheckpoint;
  }
  EXPECT_EQ(saved, 1);
}

TEST(RoomTest, AnImageThroughRamTakesRoomThoughNoDeadlineWaitsForIt) {
  JobView job = MakeJob(1, {0}, {Method::kCheckpoint});
  job.per_node.gpus = 1;
  job.gpu_memory = {Bytes{kMiB}};
  Snapshot snapshot = MakeSnapshot(1, {job});
  snapshot.nodes[0].capacity.gpus = 1;
  snapshot.nodes[0].gpu = snapshot.nodes[0].local;
  snapshot.nodes[0].local_disk_free = Bytes{0};
  ASSERT_TRUE(PlanFor(snapshot, 1).steps.at(0).through_ram);
  SetSharedFree(snapshot, Bytes{0});
  EXPECT_FALSE(PlanFor(snapshot, 1).feasible);
}

TEST(RoomTest, OtherSchedulersKnowTheRoomToo) {
  Policy policy = NoMargin();
  policy.strategy = Strategy::kPbsOrder;
  Snapshot snapshot = WithoutLocal(2, {Method::kCheckpoint, Method::kKill});
  SetSharedFree(snapshot, kImage);
  int saved = 0;
  for (const PlanStep& step : MakePlan(snapshot, MakeRequest(2), policy).steps)
    saved += step.method == Method::kCheckpoint;
  EXPECT_EQ(saved, 1);
}

TEST(RoomTest, NoPlanTakesMoreThanThereIs) {
  std::mt19937 random(1);
  int binding = 0;
  for (int i = 0; i < 3000; ++i) {
    Instance x = RandomInstance(random, 2);
    const auto written = [&] {
      Bytes sum;
      for (const PlanStep& step : MakePlan(x.snapshot, x.request, x.policy).steps) {
        if (step.method == Method::kCheckpoint && step.tier == Tier::kShared) sum += step.bytes;
      }
      return sum;
    };
    const Bytes without_limit = written();
    SetSharedFree(x.snapshot, Bytes{int64_t(random() % 500) * kMiB});
    binding += without_limit > x.snapshot.shared.free;
    ASSERT_LE(written(), x.snapshot.shared.free) << "instance " << i;
  }
  EXPECT_GT(binding, 50);
}

// ---- Methods that have failed. ----

JobView FailedUntil(Duration later, MethodSet methods = {Method::kCheckpoint}) {
  JobView job = MakeJob(1, {0}, methods);
  job.methods_back_at[Method::kCheckpoint] = kNow + later;
  job.methods_note = "checkpoint: io_uring is open";
  return job;
}

TEST(MethodBackTest, ADeadlineBehindTheEndOfThePauseIsMetWithIt) {
  const Plan plan = PlanFor(MakeSnapshot(1, {FailedUntil(seconds(600))}), 1, seconds(900));
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_EQ(plan.steps[0].begin, kNow + seconds(600));
  EXPECT_THAT(plan.steps[0].reason, HasSubstr("checkpoint is tried again at"));
}

TEST(MethodBackTest, ADeadlineBeforeItIsRefusedWithTheTimeThatWouldDo) {
  const Plan plan = PlanFor(MakeSnapshot(1, {FailedUntil(seconds(600))}), 1);
  EXPECT_FALSE(plan.feasible);
  ASSERT_TRUE(plan.earliest);
  EXPECT_GT(*plan.earliest, kNow + seconds(600));
  EXPECT_LT(*plan.earliest, kNow + seconds(610));
  EXPECT_THAT(plan.refusal, HasSubstr(FormatTime(kNow + seconds(600))));
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("io_uring is open"));
}

TEST(MethodBackTest, OtherMethodsDoNotWaitForIt) {
  const Plan plan =
      PlanFor(MakeSnapshot(1, {FailedUntil(seconds(600), {Method::kCheckpoint, Method::kSuspend})}), 1);
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_EQ(plan.steps[0].method, Method::kSuspend);
  EXPECT_EQ(plan.steps[0].begin, Time{});
}

TEST(MethodBackTest, OtherSchedulersDoNotWait) {
  Policy policy = NoMargin();
  policy.strategy = Strategy::kPbsOrder;
  const Snapshot snapshot = MakeSnapshot(1, {FailedUntil(seconds(600))});
  EXPECT_THAT(MakePlan(snapshot, MakeRequest(1, seconds(900)), policy).steps, IsEmpty());
}

}  // namespace
}  // namespace siding::test
