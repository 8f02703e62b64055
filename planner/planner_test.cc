// What the planner does, one fact each.
#include "planner/planner.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/small_cluster.h"

namespace siding::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The plan for one node of a cluster that this job has to itself.
Plan PlanAround(const JobView& job, const Policy& policy = NoMargin()) {
  return MakePlan(MakeSnapshot(int(job.nodes.size()), {job}), MakeRequest(1), policy);
}

TEST(PlannerTest, FreeNodesNeedNoVictim) {
  Snapshot snapshot = MakeSnapshot(2, {MakeJob(1, {0}, {Method::kSuspend})});
  snapshot.nodes[1].free.slots = 1;
  const Plan plan = MakePlan(snapshot, MakeRequest(1), NoMargin());
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_THAT(plan.nodes, ElementsAre(NodeId("n1")));
}

TEST(PlannerTest, NodeThatIsNotUsableDoesNotCount) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kSuspend})});
  snapshot.nodes[0].usable = false;
  EXPECT_FALSE(MakePlan(snapshot, MakeRequest(1), NoMargin()).feasible);
}

TEST(PlannerTest, JobWithoutMethodsStays) { EXPECT_FALSE(PlanAround(MakeJob(1, {0}, {})).feasible); }

TEST(PlannerTest, NoteSaysWhyAJobCannotBeDumped) {
  JobView job = MakeJob(1, {0}, {});
  job.methods_note = "checkpoint: holds an io_uring";
  EXPECT_THAT(PlanAround(job).kept.at(0).reason, HasSubstr("holds an io_uring"));
}

TEST(PlannerTest, OfAJobThatIsNotNeededItIsSaidWhatItWouldHaveLost) {
  Snapshot snapshot = MakeSnapshot(2, {MakeJob(1, {0, 1}, {Method::kKill})});
  snapshot.nodes.push_back(MakeNode(2));
  snapshot.nodes[2].free.slots = 1;
  const Plan plan = MakePlan(snapshot, MakeRequest(1), NoMargin());
  const PlanKeep& keep = plan.kept.at(0);
  EXPECT_EQ(keep.rule, KeepRule::kNotNeeded);
  EXPECT_EQ(keep.way, "kill");
  EXPECT_EQ(keep.nodes, 2);
  EXPECT_EQ(keep.loss_node_seconds, 2000);
  EXPECT_EQ(keep.reason, "not needed: would free 2 nodes for 2000.0 node-seconds (kill)");
}

TEST(PlannerTest, DeadlineJobIsNoVictim) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.kind = JobKind::kOnDemand;
  EXPECT_FALSE(PlanAround(job).feasible);
}

TEST(PlannerTest, JobThatRanTooShortStays) {
  Policy policy = NoMargin();
  policy.min_runtime = seconds(1061);
  const Plan plan = PlanAround(MakeJob(1, {0}, {Method::kSuspend}), policy);
  EXPECT_FALSE(plan.feasible);
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("less than"));
}

TEST(PlannerTest, JobThatRanLongEnoughMayGo) {
  Policy policy = NoMargin();
  policy.min_runtime = seconds(1000);
  EXPECT_TRUE(PlanAround(MakeJob(1, {0}, {Method::kSuspend}), policy).feasible);
}

TEST(PlannerTest, PolicyLimitsPreemptions) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.preemptions = 100;
  EXPECT_FALSE(PlanAround(job).feasible);
}

TEST(PlannerTest, JobLimitsItsPreemptionsFurther) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.preemptions = job.max_preemptions.emplace(1);
  EXPECT_FALSE(PlanAround(job).feasible);
}

TEST(PlannerTest, JobCannotRaiseThePolicysLimit) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.preemptions = 100;
  job.max_preemptions = 200;
  EXPECT_FALSE(PlanAround(job).feasible);
}

TEST(PlannerTest, JobInItsCooldownStays) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.last_preempted = kNow - seconds(9);
  Policy policy = NoMargin();
  policy.cooldown = seconds(70);
  EXPECT_FALSE(PlanAround(job, policy).feasible);
}

TEST(PlannerTest, JobAfterItsCooldownMayGo) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.last_preempted = kNow - seconds(10);
  Policy policy = NoMargin();
  policy.cooldown = seconds(10);
  EXPECT_TRUE(PlanAround(job, policy).feasible);
}

TEST(PlannerTest, UnmeasuredRateIsNotUsed) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.nodes[0].local = snapshot.nodes[0].shared = {};
  EXPECT_FALSE(MakePlan(snapshot, MakeRequest(1), NoMargin()).feasible);
}

TEST(PlannerTest, MarginIsKeptFree) {
  Policy policy;
  policy.margin = seconds(3);
  const Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kKill})});  // gone after 2 s
  EXPECT_FALSE(MakePlan(snapshot, MakeRequest(1, milliseconds(4999)), policy).feasible);
  EXPECT_TRUE(MakePlan(snapshot, MakeRequest(1, milliseconds(5000)), policy).feasible);
}

TEST(PlannerTest, JobLeavingForAnotherRequestIsNoHelp) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.releasing_at = kNow;
  job.releasing_for = JobId(98);
  EXPECT_FALSE(PlanAround(job).feasible);
}

TEST(PlannerTest, ConcurrentDumpsShareTheTier) {
  Snapshot snapshot = MakeSnapshot(4, {});
  for (int j = 0; j < 4; ++j) snapshot.jobs.push_back(MakeJob(j + 1, {j}, {Method::kCheckpoint}));
  for (NodeView& node : snapshot.nodes) node.local = {};
  // Alone each takes 2.1 s; together 400 MiB at 100 MiB/s take 4 s.
  EXPECT_EQ(MakePlan(snapshot, MakeRequest(4), NoMargin()).predicted_start, kNow + seconds(4));
}

TEST(PlannerTest, LongestReleaseActsFirst) {
  const Snapshot snapshot =
      MakeSnapshot(2, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {Method::kKill})});
  const Plan plan = MakePlan(snapshot, MakeRequest(2), NoMargin());
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].job, JobId(2));
}

TEST(PlannerTest, NoVictimWithoutNeed) {
  // The gang must go for the third node, so the two single jobs that would cost nothing are left alone.
  Snapshot snapshot =
      MakeSnapshot(3, {MakeJob(1, {0, 1, 2}, {Method::kKill}), MakeJob(2, {0}, {Method::kSuspend}),
                       MakeJob(3, {1}, {Method::kSuspend})});
  for (NodeView& node : snapshot.nodes) node.capacity.slots = 2;
  const Plan plan = MakePlan(snapshot, MakeRequest(3), NoMargin());
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].job, JobId(1));
}

TEST(PlannerTest, MoreNodesThanThereAre) {
  const Plan plan = MakePlan(MakeSnapshot(4, {}), MakeRequest(8), NoMargin());
  EXPECT_EQ(plan.refusal, "needs 8 nodes, the cluster has 4");
  EXPECT_FALSE(plan.earliest.has_value());
}

TEST(PlannerTest, RefusalSaysHowManyCanBeFree) {
  const Snapshot snapshot =
      MakeSnapshot(2, {MakeJob(1, {0}, {Method::kSuspend}), MakeJob(2, {1}, {Method::kKill})});
  const Plan plan = MakePlan(snapshot, MakeRequest(2, seconds(1)), NoMargin());
  EXPECT_THAT(plan.refusal, HasSubstr("only 1 of 2 nodes can be free by then"));
  EXPECT_TRUE(plan.steps.empty());
}

// A node with a job on each of its slots and GPUs, all of which have to leave for one request.
Snapshot CrowdedNode(int jobs, MethodSet methods) {
  Snapshot snapshot = MakeSnapshot(1, {});
  snapshot.nodes[0].capacity = {jobs, Bytes{1024 * kMiB}, jobs};
  snapshot.nodes[0].local_disk_free = Bytes{100 * 1024 * kMiB};
  for (int j = 1; j <= jobs; ++j) {
    snapshot.jobs.push_back(MakeJob(j, {0}, methods));
    snapshot.jobs.back().per_node.gpus = 1;
    snapshot.jobs.back().memory = {Bytes{(100 + 7 * j) * kMiB}};
  }
  return snapshot;
}

Request WholeNode(int slots, Duration start_in) {
  Request request = MakeRequest(1, start_in);
  request.per_node = {slots, Bytes{0}, slots};
  return request;
}

TEST(PlannerTest, AllOfManyJobsOnOneNodeCanLeave) {
  const Snapshot snapshot =
      CrowdedNode(16, {Method::kSuspend, Method::kCheckpoint, Method::kApp, Method::kKill});
  const Plan plan = MakePlan(snapshot, WholeNode(16, seconds(600)), NoMargin());
  EXPECT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.exact);
}

TEST(PlannerTest, WhereTooMuchIsPossibleThePlanDoesNotClaimToBeTheBest) {
  Snapshot snapshot = CrowdedNode(80, {Method::kCheckpoint, Method::kKill});
  std::mt19937 random(1);
  for (JobView& job : snapshot.jobs) {
    job.memory = {Bytes{static_cast<int64_t>(100 * kMiB + random() % (100 * kMiB))}};
    job.durable_at = kNow - milliseconds(60'000 + job.memory[0].value / 2'000 + random() % 1'000);
  }
  snapshot.nodes[0].shared = {};  // all together they need twice the disk
  snapshot.nodes[0].local_disk_free = Bytes{80 * 75 * kMiB};
  const Plan plan = MakePlan(snapshot, WholeNode(80, seconds(600)), NoMargin());
  EXPECT_TRUE(plan.feasible);
  EXPECT_FALSE(plan.exact);
}

TEST(PlannerTest, DiskOfANodeThatTheRequestCannotUseIsALimitToo) {
  Snapshot snapshot =
      MakeSnapshot(3, {MakeJob(1, {0, 2}, {Method::kCheckpoint}), MakeJob(2, {1, 2}, {Method::kCheckpoint})});
  for (NodeView& node : snapshot.nodes) node.shared = {};
  snapshot.nodes[2].usable = false;
  snapshot.nodes[2].local_disk_free = Bytes{150 * kMiB};
  EXPECT_FALSE(MakePlan(snapshot, MakeRequest(2), NoMargin()).feasible);
  snapshot.nodes[2].local_disk_free = Bytes{200 * kMiB};
  EXPECT_TRUE(MakePlan(snapshot, MakeRequest(2), NoMargin()).feasible);
}

TEST(PlannerTest, EarlierDeadlineGetsTheNodeThatIsFreedForIt) {
  Snapshot snapshot =
      MakeSnapshot(2, {MakeJob(1, {1}, {Method::kCheckpoint}), MakeJob(2, {0}, {Method::kCheckpoint})});
  for (NodeView& node : snapshot.nodes) node.local = {};
  snapshot.jobs[1].memory = {Bytes{1000 * kMiB}};
  const Request soon{JobId(98), 1, {1, Bytes{0}, 0}, kNow + seconds(4)};
  const auto plans = MakePlans(snapshot, {soon, MakeRequest(1)}, NoMargin());
  EXPECT_THAT(plans[0].nodes, ElementsAre(NodeId("n1")));
  EXPECT_THAT(plans[1].nodes, ElementsAre(NodeId("n0")));
}

TEST(PlannerTest, LaterDeadlineWritesAfterTheEarlier) {
  Snapshot snapshot =
      MakeSnapshot(2, {MakeJob(1, {1}, {Method::kCheckpoint}), MakeJob(2, {0}, {Method::kCheckpoint})});
  for (NodeView& node : snapshot.nodes) node.local = {};
  snapshot.shared.bytes_per_second = 50.0 * kMiB;
  snapshot.jobs[1].memory = {Bytes{1000 * kMiB}};
  const Request soon{JobId(98), 1, {1, Bytes{0}, 0}, kNow + seconds(4)};
  const auto plans = MakePlans(snapshot, {soon, MakeRequest(1)}, NoMargin());
  EXPECT_EQ(plans[1].steps.at(0).begin, kNow + seconds(2));
}

TEST(PlannerTest, RateThatIsHopelesslySlowIsNotTakenForInstant) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.nodes[0].shared = {};
  snapshot.nodes[0].local.dump.bytes_per_second = 1e-6;
  EXPECT_FALSE(MakePlan(snapshot, MakeRequest(1), NoMargin()).feasible);
}

TEST(PlannerTest, FreezingJobDoesNotGiveItsMemoryBack) {
  JobView job = MakeJob(1, {0}, {Method::kSuspend});
  job.per_node.memory = Bytes{1024 * kMiB};
  job.releasing_at = kNow;
  job.releasing_to_ram = true;
  Snapshot snapshot = MakeSnapshot(1, {job});
  snapshot.nodes[0].free.memory = Bytes{0};
  Request request = MakeRequest(1);
  request.per_node.memory = Bytes{512 * kMiB};
  EXPECT_FALSE(MakePlan(snapshot, request, NoMargin()).feasible);
}

TEST(PlannerTest, TooManyRequestsAtOnceAreNotPlannedTogether) {
  const std::vector<Request> requests(kMostTogether + 1, MakeRequest(1));
  for (const Plan& plan : MakePlans(MakeSnapshot(9, {}), requests, NoMargin())) EXPECT_FALSE(plan.feasible);
}

// A gang of three that can be frozen, and a job of one node that has to be dumped.
Plan GangOrSingle(double frozen_node_weight) {
  Policy policy = NoMargin();
  policy.frozen_node_weight = frozen_node_weight;
  const Snapshot snapshot =
      MakeSnapshot(4, {MakeJob(1, {0, 1, 2}, {Method::kSuspend}), MakeJob(2, {3}, {Method::kCheckpoint})});
  return MakePlan(snapshot, MakeRequest(1), policy);
}

TEST(PlannerTest, GangIsFrozenForOneNodeIfIdleNodesDoNotCount) {
  EXPECT_EQ(GangOrSingle(0).steps.at(0).job, JobId(1));
}

TEST(PlannerTest, GangIsNotFrozenForOneNodeIfIdleNodesCount) {
  EXPECT_EQ(GangOrSingle(1).steps.at(0).job, JobId(2));
}

TEST(PlannerTest, ReasonNamesTheCostAndTheAlternative) {
  const Plan plan = PlanAround(MakeJob(1, {0, 1}, {Method::kCheckpoint, Method::kKill}));
  EXPECT_THAT(plan.steps.at(0).reason, HasSubstr("frees 2 nodes"));
  EXPECT_THAT(plan.steps.at(0).reason, HasSubstr("2000.0 node-seconds"));  // what killing it would lose
}

// A job with a GPU on one node, from which 100 MiB leave in a second and come back in half of one.
Snapshot OneOnAGpu(MethodSet methods) {
  JobView job = MakeJob(1, {0}, methods);
  job.per_node.gpus = 1;
  job.memory = {Bytes{200 * kMiB}};
  job.gpu_memory = {Bytes{100 * kMiB}};
  Snapshot snapshot = MakeSnapshot(1, {job});
  snapshot.nodes[0].capacity.gpus = 1;
  snapshot.nodes[0].gpu = {{100.0 * kMiB, seconds(0)}, {200.0 * kMiB, seconds(0)}};
  return snapshot;
}
Request ForAGpu(Duration start_in) {
  Request request = MakeRequest(1, start_in);
  request.per_node.gpus = 1;
  return request;
}

TEST(PlannerGpuTest, SuspendTakesAsLongAsTheDrainAndCostsTheWayBackToo) {
  const Plan plan = MakePlan(OneOnAGpu({Method::kSuspend}), ForAGpu(seconds(2)), NoMargin());
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_EQ(plan.steps[0].predicted_release, kNow + seconds(1));
  EXPECT_DOUBLE_EQ(plan.steps[0].loss_node_seconds, 1.5);
  EXPECT_FALSE(MakePlan(OneOnAGpu({Method::kSuspend}), ForAGpu(milliseconds(900)), NoMargin()).feasible);
}

TEST(PlannerGpuTest, CheckpointThroughRamFreesTheNodeAsSoonAsTheGpuIsDrained) {
  const Plan plan = MakePlan(OneOnAGpu({Method::kCheckpoint}), ForAGpu(seconds(2)), NoMargin());
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_TRUE(plan.steps[0].through_ram);
  EXPECT_EQ(plan.steps[0].predicted_release, kNow + seconds(1));
}

TEST(PlannerGpuTest, WhereRamDoesNotSufficeTheImageIsWaitedFor) {
  Snapshot snapshot = OneOnAGpu({Method::kCheckpoint});
  snapshot.nodes[0].ram_available = Bytes{250 * kMiB};
  const auto request = [](Duration start_in) {
    Request request = ForAGpu(start_in);
    request.per_node.memory = Bytes{100 * kMiB};
    return request;
  };
  EXPECT_FALSE(MakePlan(snapshot, request(seconds(2)), NoMargin()).feasible);
  const Plan plan = MakePlan(snapshot, request(seconds(10)), NoMargin());
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_FALSE(plan.steps[0].through_ram);
  EXPECT_EQ(plan.steps[0].predicted_release,
            kNow + milliseconds(1000 + 100 + 2000));  // drain, dump of 200 MiB
}

TEST(PlannerGpuTest, AGpuIsNotDrainedIntoRamThatIsNotThere) {
  Snapshot snapshot = OneOnAGpu({Method::kSuspend, Method::kCheckpoint});
  snapshot.nodes[0].ram_available = Bytes{150 * kMiB};
  EXPECT_FALSE(MakePlan(snapshot, ForAGpu(seconds(60)), NoMargin()).feasible);
}

TEST(PlannerGpuTest, AGpuWhoseSpeedIsNotKnownIsNotPlannedWith) {
  Snapshot snapshot = OneOnAGpu({Method::kSuspend, Method::kCheckpoint});
  snapshot.nodes[0].gpu = {};
  const Plan plan = MakePlan(snapshot, ForAGpu(seconds(10)), NoMargin());
  EXPECT_FALSE(plan.feasible);
  EXPECT_THAT(plan.kept.at(0).reason, HasSubstr("measured"));
}

// One that has an image, 12 s old, which is restored in 3 s.
JobView WithAnImage(MethodSet methods) {
  JobView job = MakeJob(1, {0}, methods);
  job.durable_at = kNow - seconds(12);
  job.way_back = seconds(3);
  return job;
}

TEST(PlannerImageTest, AKillCostsTheWayBackAsWell) {
  const Plan plan = PlanAround(WithAnImage({Method::kKill}));
  EXPECT_EQ(plan.loss_node_seconds, 15);
  EXPECT_THAT(
      plan.steps.at(0).reason,
      HasSubstr("for 15.0 node-seconds: its image is restored in 3.00s, and 12.0s of work is done again"));
}

TEST(PlannerImageTest, OfAJobWithoutOneAllThatItDidIsLost) {
  const Plan plan = PlanAround(MakeJob(1, {0}, {Method::kKill}));
  EXPECT_EQ(plan.loss_node_seconds, 1000);
  EXPECT_THAT(plan.steps.at(0).reason, ::testing::Not(HasSubstr("image")));
}

TEST(PlannerImageTest, OneThatIsFreshEnoughIsNotWrittenAgain) {
  JobView job = WithAnImage({Method::kCheckpoint, Method::kKill});  // a dump and the way back take 1.7 s
  job.way_back = milliseconds(500);
  EXPECT_EQ(PlanAround(job).steps.at(0).method, Method::kCheckpoint);
  job.durable_at = kNow - seconds(1);
  EXPECT_EQ(PlanAround(job).steps.at(0).method, Method::kKill);
}

TEST(PlannerImageTest, OnScheduleTheyAreNoOlderWhenTheRequestArrives) {
  Snapshot snapshot = MakeSnapshot(1, {WithAnImage({Method::kKill})});
  snapshot.jobs[0].most_lost = seconds(20);
  Request request = MakeRequest(1, seconds(660));
  request.not_before = kNow + seconds(600);
  EXPECT_EQ(MakePlan(snapshot, request, NoMargin()).loss_node_seconds, 23);
}

TEST(PlannerImageTest, RanksThatWaitForEachOtherAreSlower) {
  Snapshot snapshot = MakeSnapshot(2, {MakeJob(1, {0, 1}, {Method::kCheckpoint})});
  const Request request = MakeRequest(2, seconds(600));
  const Plan alone = MakePlan(snapshot, request, NoMargin());
  snapshot.jobs[0].ranks_wait = seconds(4);
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  EXPECT_EQ(plan.predicted_start - alone.predicted_start, seconds(4));
  EXPECT_DOUBLE_EQ(plan.loss_node_seconds - alone.loss_node_seconds, 2 * 4);
}

// It stands still for as long as it was seen to, their waiting included. But it is begun two dumps in
// advance, and what is done since is done again.
TEST(PlannerImageTest, InAdvanceTheirWaitingIsNotCountedTwice) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.jobs[0].can_return_to_its_nodes = false;
  snapshot.jobs[0].checkpoint_stop = milliseconds(50);
  Request request = MakeRequest(1, milliseconds(602050));  // no time for a dump after its arrival
  request.not_before = kNow + seconds(600);
  const double alone = MakePlan(snapshot, request, NoMargin()).loss_node_seconds;
  snapshot.jobs[0].ranks_wait = seconds(1);
  EXPECT_DOUBLE_EQ(MakePlan(snapshot, request, NoMargin()).loss_node_seconds - alone, 2 * 1);
}

TEST(PlannerImageTest, OneInAdvanceCostsOnlyTheStop) {
  Snapshot snapshot = MakeSnapshot(1, {MakeJob(1, {0}, {Method::kCheckpoint})});
  snapshot.jobs[0].can_return_to_its_nodes = false;
  Request request = MakeRequest(1, milliseconds(602050));  // no time for a dump after its arrival
  request.not_before = kNow + seconds(600);
  const double whole = MakePlan(snapshot, request, NoMargin()).loss_node_seconds;
  snapshot.jobs[0].checkpoint_stop = milliseconds(50);
  const Plan plan = MakePlan(snapshot, request, NoMargin());
  ASSERT_EQ(plan.steps.size(), 2);
  EXPECT_TRUE(plan.steps[0].early);
  EXPECT_DOUBLE_EQ(whole - plan.loss_node_seconds, 2.1 - 0.05);
}

}  // namespace
}  // namespace siding::test
