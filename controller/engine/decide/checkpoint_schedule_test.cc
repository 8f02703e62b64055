// How often jobs are checkpointed that leave it to siding, or that the policy protects.
#include "controller/engine/decide/checkpoint_schedule.h"

#include "absl/strings/str_cat.h"
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// One job on one node, with 1 GB of memory that takes 1 s to be written.
class CheckpointScheduleTest : public EngineTest {
 protected:
  JobId Run(JobSpec spec) {
    StartController();
    cluster_.memory = 1'000'000'000;
    AddNodes({"a"});
    const JobId job = Submit(std::move(spec));
    Settle();
    cluster_.Heartbeat("a");
    return job;
  }
  // Images that share nearly all with the one before.
  void MakeImagesSmall() {
    cluster_.stopped = 50ms;
    cluster_.new_bytes = Bytes{10'000'000};
  }
  std::string ReasonOfTheNewest(JobId job) {
    std::string reason;
    for (const Event& event : engine_->EventsAfter(0, 10000, Duration(0))) {
      const auto* const move = std::get_if<JobMoved>(&event.body);
      if (event.job == job && move != nullptr && move->event == JobEvent::kOrderDump) reason = move->reason;
    }
    return reason;
  }
  // How many are made in so many seconds.
  int MadeWithin(JobId job, int seconds) {
    const int before = Job(job).checkpoint_count;
    Settle(seconds);
    return Job(job).checkpoint_count - before;
  }
};

TEST_F(CheckpointScheduleTest, ThePolicyProtectsJobsThatAskForNothing) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.5;
  MakeImagesSmall();
  const JobId job = Run(Batch());
  EXPECT_EQ(MadeWithin(job, 200), 10);
  EXPECT_EQ(ReasonOfTheNewest(job), "on schedule, every 19.9s");
}

TEST_F(CheckpointScheduleTest, OneThatMayNotBeCheckpointedIsNotProtected) {
  policy_.most_lost_work = 20s;
  EXPECT_EQ(MadeWithin(Run(Batch(1, {Method::kSuspend, Method::kKill})), 200), 0);
}

TEST_F(CheckpointScheduleTest, AClassMayHaveNoProtection) {
  policy_.most_lost_work = 20s;
  policy_.classes = {{.name = "scratch", .most_lost_work = Duration(0)}};
  EXPECT_EQ(MadeWithin(Run(Batch()), 200), 0);
}

TEST_F(CheckpointScheduleTest, AnIntervalOfItsOwnThatIsShorterStays) {
  policy_.most_lost_work = 100s;
  JobSpec spec = Batch();
  spec.checkpoint_interval = 10s;
  const JobId job = Run(spec);
  EXPECT_GE(MadeWithin(job, 100), 8);
  EXPECT_EQ(ReasonOfTheNewest(job), "on schedule, every 10.0s");
}

TEST_F(CheckpointScheduleTest, AnIntervalOfItsOwnThatIsLongerDoesNot) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.5;
  JobSpec spec = Batch();
  spec.checkpoint_interval = 500s;
  EXPECT_GE(MadeWithin(Run(spec), 200), 8);
}

TEST_F(CheckpointScheduleTest, BandwidthMakesThemRarerAndThatIsSaid) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.01;  // 10 MB/s: a whole image every 100 s
  policy_.checkpoint_stops = 0.5;
  const JobId job = Run(Batch());
  Settle(20);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  EXPECT_EQ(MadeWithin(job, 200), 2);
  EXPECT_EQ(ReasonOfTheNewest(job),
            "on schedule, every 1m40s; more often would take too much of the shared tier's bandwidth");
}

// The first is whole, and 1 MB/s may be written: it is made up for in 1000 s.
class FirstIsWholeTest : public CheckpointScheduleTest {
 protected:
  FirstIsWholeTest() {
    policy_.most_lost_work = 20s;
    policy_.checkpoint_bandwidth = 0.001;
    cluster_.stopped = 50ms;
  }
  JobId RunUntilTheFirst() {
    const JobId job = Run(Batch());
    Settle(20);
    EXPECT_EQ(Job(job).checkpoint_count, 1);
    return job;
  }
};

TEST_F(FirstIsWholeTest, OfThoseThatFollowEachMakesUpForATenth) {
  const JobId job = RunUntilTheFirst();
  MakeImagesSmall();
  EXPECT_EQ(MadeWithin(job, 75), 0);
  EXPECT_EQ(MadeWithin(job, 35), 1);
  EXPECT_EQ(ReasonOfTheNewest(job),
            "on schedule, every 1m40s; more often would take too much of the shared tier's bandwidth");
  EXPECT_EQ(MadeWithin(job, 950), 8);
  Settle(20);
  EXPECT_GE(MadeWithin(job, 100), 4) << "behind ten others";
}

TEST_F(FirstIsWholeTest, WhereOthersAreTooEachIsMadeUpForFromTheThirdOn) {
  const JobId job = RunUntilTheFirst();
  EXPECT_EQ(MadeWithin(job, 110), 1);
  EXPECT_EQ(MadeWithin(job, 200), 1);
  EXPECT_EQ(MadeWithin(job, 900), 0);
  EXPECT_EQ(MadeWithin(job, 100), 1);
}

TEST_F(FirstIsWholeTest, AJobThatStandsStillWaitsForAllOfIt) {
  cluster_.stopped = 0s;
  const JobId job = RunUntilTheFirst();
  EXPECT_EQ(MadeWithin(job, 900), 0);
  EXPECT_EQ(MadeWithin(job, 110), 1);
}

TEST_F(FirstIsWholeTest, APromiseCountsWithOthersLikeIt) {
  policy_.classes = {{.name = "all", .methods = std::vector{Method::kKill}}};
  RunUntilTheFirst();
  JobSpec spec = OnDemand(1, 3630s);
  spec.not_before = clock_.Now() + 3600s;
  const double loss = Job(Submit(spec)).plans.back().loss_node_seconds;
  EXPECT_GE(loss, 1000);
  EXPECT_LE(loss, 1010);
}

// ---- First to the nodes' own disks. ----

TEST_F(CheckpointScheduleTest, ByThePolicyTheyGoToTheNodesOwnDisks) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.01;
  policy_.checkpoint_stops = 0.5;
  policy_.checkpoint_tier = Tier::kLocal;
  cluster_.shared_bytes_per_second = 1e6;  // that does not matter to them
  const JobId job = Run(Batch());
  Settle(20);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  EXPECT_EQ(MadeWithin(job, 200), 2);
  EXPECT_EQ(ReasonOfTheNewest(job),
            "on schedule, every 1m40s; more often would take too much of the local tier's bandwidth");
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kDump).dump().tier(), v1::LOCAL);
}

TEST_F(CheckpointScheduleTest, WithoutRoomThereTheyWaitAndThatIsNoted) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_tier = Tier::kLocal;
  cluster_.local_disk_free = 1000;
  const JobId job = Run(Batch());
  EXPECT_EQ(MadeWithin(job, 60), 0);
  std::string noted;
  for (const Event& event : engine_->EventsAfter(0, 10000, Duration(0))) {
    if (const auto* const note = std::get_if<Noted>(&event.body)) noted = note->text;
  }
  EXPECT_THAT(noted, HasSubstr("is not checkpointed on schedule: tier local on node a is full"));
}

TEST_F(CheckpointScheduleTest, WhatIsCopiedOfThemIsBoundByTheBandwidthOfSharedStorage) {
  policy_.most_lost_work = 5s;
  // 10 MB/s there: what is new of one image each second, and it is counted twice.
  policy_.checkpoint_bandwidth = 0.01;
  policy_.checkpoint_tier = Tier::kLocal;
  cluster_.copies = {{"a", absl::StatusCode::kOk}};
  MakeImagesSmall();
  Run(Batch());
  Settle(60);
  const int copied = cluster_.Count(v1::ToAgent::kCopy);
  Settle(200);
  EXPECT_GE(cluster_.Count(v1::ToAgent::kCopy) - copied, 30);
  // A tenth: more is new than can be copied, so it comes to whole images.
  cluster_.shared_bytes_per_second = 1e8;
  cluster_.Heartbeat("a");
  Settle(10);
  const int before = cluster_.Count(v1::ToAgent::kCopy);
  Settle(2100);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kCopy) - before, 2);
}

TEST_F(CheckpointScheduleTest, WhatOutlivesTheNodeIsKeptBeyondTheNewest) {
  policy_.most_lost_work = 5s;
  policy_.checkpoint_bandwidth = 0.5;
  policy_.checkpoint_tier = Tier::kLocal;
  policy_.copy_images = false;
  MakeImagesSmall();
  const JobId job = Run(Batch());
  const auto shared = engine_->Checkpoint(kAda, job, Tier::kShared);
  ASSERT_TRUE(shared.ok());
  Settle(60);
  const std::vector<CheckpointId> kept = Job(job).checkpoints;
  EXPECT_EQ(kept.size(), 3u) << "two on the node's disk, and one in shared storage";
  EXPECT_EQ(kept.front(), *shared);
}

TEST_F(CheckpointScheduleTest, JobsOfANodeShareItsBandwidth) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.01;
  policy_.checkpoint_stops = 0.5;
  JobSpec spec = Batch();
  spec.per_node.slots = 1;  // of four: a whole image every 400 s
  const JobId job = Run(spec);
  Settle(20);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  EXPECT_EQ(MadeWithin(job, 350), 0);
}

TEST_F(CheckpointScheduleTest, OneThatWouldStandStillForTooLongIsSavedLessOften) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.5;
  policy_.checkpoint_stops = 0.05;
  cluster_.stopped = 4s;
  const JobId job = Run(Batch());
  Settle(60);
  ASSERT_EQ(Job(job).checkpoint_count, 3) << "the first two may be like no others";
  EXPECT_EQ(MadeWithin(job, 45), 0);
  EXPECT_EQ(MadeWithin(job, 30), 1);
  EXPECT_EQ(ReasonOfTheNewest(job), "on schedule, every 1m16s; more often would stop it for too long");
}

TEST_F(CheckpointScheduleTest, SmallImagesAreMadeMoreOften) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.01;
  MakeImagesSmall();
  const JobId job = Run(Batch());
  Settle(20);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  EXPECT_GE(MadeWithin(job, 200), 9);
}

TEST_F(CheckpointScheduleTest, AnIntervalLeftToSidingFollowsFromTheStopsThatWereSeen) {
  policy_.node_failures_per_year = 100;  // 1 s of stop is worth it every 13 minutes, 50 ms every 3
  policy_.checkpoint_bandwidth = 0.5;
  MakeImagesSmall();
  JobSpec spec = Batch();
  spec.auto_checkpoint_interval = true;
  const JobId job = Run(spec);
  clock_.Advance(14min);
  Settle(5);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  clock_.Advance(3min);
  Settle(5);
  EXPECT_EQ(Job(job).checkpoint_count, 2);
}

TEST_F(CheckpointScheduleTest, WhatWasLearnedEndsWithTheProcesses) {
  policy_.most_lost_work = 20s;
  policy_.checkpoint_bandwidth = 0.5;
  MakeImagesSmall();
  const JobId job = Run(Batch());
  Settle(40);
  ASSERT_FALSE(Job(job).checkpoint_costs.empty());
  cluster_.Vanish(job);
  StepUntil(job, JobState::kRunning);
  EXPECT_TRUE(Job(job).checkpoint_costs.empty());
}

TEST_F(CheckpointScheduleTest, AnAgentIsToldThatOthersFollow) {
  policy_.most_lost_work = 20s;
  const JobId job = Run(Batch());
  Settle(100);
  ASSERT_GE(Job(job).checkpoint_count, 1);
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kDump).dump().others_follow());
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kDump).dump().others_follow());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kDump).dump().others_follow());
}

TEST_F(CheckpointScheduleTest, AnIntervalIsLeftToSidingWhereThePolicySaysWhatMayBeLost) {
  policy_.most_lost_work = 60s;
  JobSpec spec = Batch();
  spec.auto_checkpoint_interval = true;
  StartController();
  EXPECT_TRUE(engine_->Submit(kAda, spec).ok());
}

TEST_F(CheckpointScheduleTest, OnlySoManyAreMadeAtOnce) {
  policy_.most_lost_work = 20s;
  StartController();
  cluster_.memory = 1'000'000'000;
  std::vector<JobId> jobs;
  for (int i = 0; i < 20; ++i) {
    const std::string node = absl::StrCat("n", i);
    cluster_.slow_dump.insert(node);
    cluster_.AddNode(node);
    jobs.push_back(Submit(Batch()));
  }
  Settle(40);
  const auto dumping =
      std::count_if(jobs.begin(), jobs.end(), [&](JobId job) { return State(job) == JobState::kDumping; });
  EXPECT_EQ(dumping, 16);
}

TEST_F(CheckpointScheduleTest, WhatFailsIsTriedLessAndLessOften) {
  policy_.most_lost_work = 20s;
  cluster_.fail_shared.insert("a");  // as for a quota of which the tier does not tell
  Run(Batch());
  const auto tried_within = [&](int seconds) {
    const int before = cluster_.Count(v1::ToAgent::kDump);
    for (int i = 0; i < seconds; ++i) {
      Settle(1);
      cluster_.Heartbeat("a");
    }
    return cluster_.Count(v1::ToAgent::kDump) - before;
  };
  EXPECT_GE(tried_within(300), 3);
  EXPECT_LE(tried_within(600), 2);
}

TEST_F(CheckpointScheduleTest, APolicyThatIsLoadedCountsForWhatRuns) {
  const JobId job = Run(Batch());
  Settle(100);
  ASSERT_EQ(Job(job).checkpoint_count, 0);
  policy_.most_lost_work = 20s;
  engine_->SetPolicy(policy_);
  Settle(15);
  EXPECT_GE(Job(job).checkpoint_count, 1);
}

TEST_F(CheckpointScheduleTest, OneThatCannotBeCheckpointedSavesItself) {
  JobSpec spec = Batch(1, {Method::kCheckpoint, Method::kApp});
  spec.app = AppMethod{.marker = "/saved"};
  spec.checkpoint_interval = 10s;
  cluster_.cannot_checkpoint = "holds an io_uring";
  Run(spec);
  Settle(15);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
  EXPECT_GE(cluster_.Count(v1::ToAgent::kSave), 1);
}

TEST_F(CheckpointScheduleTest, OneThatCannotBeCheckpointedIsNotTried) {
  policy_.most_lost_work = 20s;
  cluster_.cannot_checkpoint = "holds an io_uring";
  Run(Batch());
  Settle(200);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
}

// How long the image takes of a victim of 1 GB, by the plan of a request that needs its node.
class PlannedTest : public CheckpointScheduleTest {
 protected:
  double SecondsPlanned() {
    cluster_.local_disk_free = 0;
    Run(Batch(1, {Method::kCheckpoint}));
    return ToSeconds(Job(Submit(OnDemand(1, 600s))).plans.back().predicted_start - clock_.Now());
  }
};

TEST_F(PlannedTest, AsFastAsWasMeasured) { EXPECT_NEAR(SecondsPlanned(), 1, 0.1); }

TEST_F(PlannedTest, NoFasterThanThePolicySaysTheTierIs) {
  policy_.shared_bandwidth = Bytes{100'000'000};
  EXPECT_NEAR(SecondsPlanned(), 10, 0.5);
}

TEST_F(PlannedTest, CheckpointsOnScheduleGetTheirPart) {
  policy_.shared_bandwidth = Bytes{100'000'000};
  policy_.most_lost_work = 100000s;
  policy_.checkpoint_bandwidth = 0.5;
  EXPECT_NEAR(SecondsPlanned(), 20, 1);
}

TEST_F(CheckpointScheduleTest, NothingIsPromisedBeforeTheFirst) {
  policy_.most_lost_work = 100s;
  policy_.classes = {{.name = "all", .methods = std::vector{Method::kKill}}};
  Run(Batch());
  Settle(10);
  JobSpec spec = OnDemand(1, 3630s);
  spec.not_before = clock_.Now() + 3600s;
  EXPECT_GE(Job(Submit(spec)).plans.back().loss_node_seconds, 3600);
}

// The job can only be ended for others.
class OnlyKilledTest : public CheckpointScheduleTest {
 protected:
  OnlyKilledTest() {
    policy_.most_lost_work = 20s;
    policy_.checkpoint_bandwidth = 0.5;
    policy_.classes = {{.name = "all", .methods = std::vector{Method::kKill}}};
    MakeImagesSmall();
  }
};

TEST_F(OnlyKilledTest, APlanCountsWithTheImage) {
  const JobId job = Run(Batch());
  Settle(100);
  const JobId express = Submit(OnDemand(1, 60s));
  const PlanStep step = Job(express).plans.back().steps.at(0);
  EXPECT_EQ(step.job, job);
  EXPECT_LE(step.loss_node_seconds, 21);
  EXPECT_THAT(step.reason, HasSubstr("its image is restored in"));
  Settle(60);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(OnlyKilledTest, UntilItIsEndedItsImagesAreMade) {
  const JobId job = Run(Batch());
  Settle(50);
  JobSpec spec = OnDemand(1, 330s);
  spec.not_before = clock_.Now() + 300s;
  const JobId express = Submit(spec);
  EXPECT_LE(Job(express).plans.back().loss_node_seconds,
            27);  // 20 + 5 that the look may be late, and the way back
  const int before = Job(job).checkpoint_count;
  Settle(299);
  EXPECT_GE(Job(job).checkpoint_count - before, 13);
  Settle(60);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_LE(Job(job).lost_node_seconds, 80);  // of which it stood still for 60
}

TEST_F(OnlyKilledTest, AScheduleThatIsNotKeptPromisesNothing) {
  const JobId job = Run(Batch());
  Settle(50);
  const Time last = Job(job).durable_at;
  cluster_.fail_shared.insert("a");
  Settle(300);
  const JobId express = Submit(OnDemand(1, 60s));
  EXPECT_GE(Job(express).plans.back().loss_node_seconds, ToSeconds(clock_.Now() - last));
}

}  // namespace
}  // namespace siding
