// Orders by hand that come while an image of the job is made: they wait, and are carried out afterwards.
#include "controller/engine/decide/hand_orders.h"

#include "absl/strings/str_cat.h"
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/predicates.h"
#include "controller/engine/state/state_text.h"

namespace siding {
namespace {

class HandOrdersTest : public EngineTest {
 protected:
  // A job on node a whose image is being written on schedule, beside an empty node b.
  JobId BeingSaved(MethodSet methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill}) {
    AddNodes({"a"});
    JobSpec spec = Batch(1, methods);
    spec.checkpoint_interval = 30s;
    const JobId job = Submit(spec);
    Settle();
    AddNodes({"b"});
    clock_.Advance(30s);
    engine_->Tick();
    StepUntil(job, JobState::kDumping);
    return job;
  }
  // For as long as an image of it is made somebody asks for another.
  void CheckpointAgainAndAgain(JobId job) {
    for (int i = 0; i < 300; ++i) {
      if (State(job) == JobState::kDumping) engine_->Checkpoint(kAda, job, Tier::kShared).IgnoreError();
      cluster_.Step();
      if (i % 10 > 0) continue;
      clock_.Advance(1s);
      engine_->Tick();
    }
  }
  JobId WaitingVacate() {
    const JobId job = BeingSaved();
    EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
    return job;
  }
  std::string Why(JobId id) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = engine_->WhyWaits(state.jobs.at(id)); });
    return why;
  }
  std::vector<std::string> KindsOf(JobId job) {
    std::vector<std::string> kinds;
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0)))
      if (event.job == job) kinds.push_back(KindOf(event));
    return kinds;
  }
  // Of the last event of that kind.
  std::string LastBy(const std::string& kind) {
    std::string by = "there was none";
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0)))
      if (KindOf(event) == kind) by = ByWhom(event);
    return by;
  }
  bool Has(JobId job, const std::string& kind) {
    const auto kinds = KindsOf(job);
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
  void StepUntilHas(JobId job, const std::string& kind) {
    while (!Has(job, kind)) ASSERT_TRUE(cluster_.Step());
  }
};

TEST_F(HandOrdersTest, AVacateWaitsUntilTheImageIsMade) {
  const JobId job = WaitingVacate();
  EXPECT_EQ(State(job), JobState::kDumping);
  EXPECT_TRUE(Has(job, "order-waits"));
  EXPECT_THAT(Why(job), HasSubstr("vacate waits until checkpoint 1.1 is made, or until "));
}

// It has run on since the first image.
TEST_F(HandOrdersTest, ItIsCarriedOutThenWithAnImageOfItsOwn) {
  const JobId job = WaitingVacate();
  StepUntilHas(job, "released");
  EXPECT_EQ(Job(job).checkpoints, (std::vector{CheckpointId("1.1"), CheckpointId("1.2")}));
  EXPECT_FALSE(Job(job).waiting_order);
  EXPECT_EQ(Why(job).find("vacate"), std::string::npos);
}

TEST_F(HandOrdersTest, NobodySeesTheJobRunningInBetween) {
  const JobId job = WaitingVacate();
  bool has_run = false;
  while (!Has(job, "released")) {
    has_run |= State(job) == JobState::kRunning;
    ASSERT_TRUE(cluster_.Step());
  }
  EXPECT_FALSE(has_run);
}

TEST_F(HandOrdersTest, ItIsCarriedOutAfterADumpThatFailed) {
  const JobId job = BeingSaved();
  cluster_.fail_dump.insert("a");
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  StepUntilHas(job, "dump-failed");
  cluster_.fail_dump.clear();
  StepUntilHas(job, "released");
  EXPECT_EQ(Job(job).checkpoints, std::vector{CheckpointId("1.2")});
}

TEST_F(HandOrdersTest, AMigrationThatWaitsGoesWhereItWasToldTo) {
  const JobId job = BeingSaved();
  ASSERT_TRUE(engine_->Migrate(kAda, job, {NodeId("b")}).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
}

TEST_F(HandOrdersTest, WhatIsWrongWithAMigrationIsSaidAtOnce) {
  const JobId job = BeingSaved();
  EXPECT_THAT(std::string(engine_->Migrate(kAda, job, {NodeId("a")}).message()),
              HasSubstr("nodes: expected others than those where job 1 is already"));
  EXPECT_FALSE(Job(job).waiting_order);
}

TEST_F(HandOrdersTest, ACheckpointThatWaitsHasTheNumberThatWasAnswered) {
  const JobId job = BeingSaved();
  const auto id = engine_->Checkpoint(kAda, job, Tier::kShared);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, CheckpointId("1.2"));
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).checkpoints.back(), *id);
}

TEST_F(HandOrdersTest, ASuspendWaitsToo) {
  const JobId job = BeingSaved();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
}

TEST_F(HandOrdersTest, TheLastOrderTakesThePlaceOfTheOneBefore) {
  const JobId job = WaitingVacate();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kSuspended);
}

TEST_F(HandOrdersTest, ResumeTakesItBack) {
  const JobId job = WaitingVacate();
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  EXPECT_TRUE(Has(job, "order-withdrawn"));
  EXPECT_EQ(Why(job), "");
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 1);
}

TEST_F(HandOrdersTest, AKillTakesItsPlace) {
  const JobId job = WaitingVacate();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  EXPECT_FALSE(Job(job).waiting_order);
  Settle();
  EXPECT_EQ(State(job), JobState::kCancelled);
}

TEST_F(HandOrdersTest, AJobThatEndsByItselfWaitsWithNone) {
  const JobId job = WaitingVacate();
  ReportExit("a", job, 0);
  EXPECT_EQ(State(job), JobState::kDone);
  EXPECT_FALSE(Job(job).waiting_order);
}

TEST_F(HandOrdersTest, AGangLeavesWhenAllOfItIsSaved) {
  AddNodes({"a", "b"});
  JobSpec spec = Batch(2);
  spec.checkpoint_interval = 30s;
  const JobId job = Submit(spec);
  Settle();
  clock_.Advance(30s);
  engine_->Tick();
  StepUntil(job, JobState::kDumping);
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  StepUntilHas(job, "released");
  EXPECT_EQ(Job(job).checkpoints, (std::vector{CheckpointId("1.1"), CheckpointId("1.2")}));
  EXPECT_FALSE(Job(job).waiting_order);
}

// Nobody who asked for it an hour ago expects it any more.
TEST_F(HandOrdersTest, OneThatHasWaitedForTooLongIsWithdrawn) {
  const JobId job = WaitingVacate();
  clock_.Advance(2 * kOrderPatience);
  engine_->Tick();
  EXPECT_TRUE(Has(job, "order-withdrawn"));
  EXPECT_THAT(Job(job).reason,
              HasSubstr("vacate that waited is not carried out: what it waits for has taken"));
  cluster_.Run();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 1);
}

TEST_F(HandOrdersTest, AControllerThatIsStartedAgainCarriesItOut) {
  const JobId job = WaitingVacate();
  std::string before, after;
  engine_->Read([&](const ClusterState& s) { before = StateText(s); });
  StartController();
  engine_->Read([&](const ClusterState& s) { after = StateText(s); });
  EXPECT_EQ(before, after);
  for (const char* node : {"a", "b"}) cluster_.Connect(node);
  Settle();
  EXPECT_EQ(Job(job).incarnation, 2);
  EXPECT_EQ(Job(job).checkpoint_count, 2);
}

// By then its user has used up what they may keep.
TEST_F(HandOrdersTest, OneThatIsRefusedThenIsWithdrawnWithTheReason) {
  const JobId job = WaitingVacate();
  policy_.max_image_bytes_per_user = Bytes{1};
  engine_->SetPolicy(policy_);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(Has(job, "order-withdrawn"));
  EXPECT_THAT(Job(job).reason, HasSubstr("max_image_bytes_per_user"));
}

TEST_F(HandOrdersTest, ARequestIsServedThoughAVictimIsCheckpointedAgainAndAgain) {
  policy_.when_late = WhenLate::kBestEffort;
  engine_->SetPolicy(policy_);
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  ASSERT_EQ(State(job), JobState::kDumping);
  const JobId express = Submit(OnDemand(1), kBob);
  CheckpointAgainAndAgain(job);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(HandOrdersTest, AWalltimeEndsWhatIsCheckpointedAgainAndAgain) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.walltime = 10s;
  const JobId job = Submit(spec);
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  CheckpointAgainAndAgain(job);
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).reason, "walltime of 10.0s is over");
}

TEST_F(HandOrdersTest, ACheckpointDoesNotWaitForOneThatWasAskedFor) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  EXPECT_EQ(engine_->Checkpoint(kAda, job, Tier::kShared).status().message(),
            "job 1 is dumping: a checkpoint that was asked for is being made; ask again when it is made");
  EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok()) << "it leaves";
}

TEST_F(HandOrdersTest, AWalltimeGoesFirst) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.checkpoint_interval = 30s;
  spec.walltime = 40s;
  const JobId job = Submit(spec);
  Settle();
  clock_.Advance(30s);
  engine_->Tick();
  StepUntil(job, JobState::kDumping);
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  clock_.Advance(10s);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_FALSE(Has(job, "released"));
}

TEST_F(HandOrdersTest, AStepOfAPlanThatIsDueGoesFirst) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend, Method::kCheckpoint}));
  Settle();
  clock_.Advance(1h);  // it has run for long enough to be preempted
  Settle();
  JobSpec spec = OnDemand(1, 120s);
  spec.not_before = clock_.Now() + 100s;
  const JobId express = Submit(spec, kBob);
  ASSERT_NE(Job(express).plans.back().steps.front().begin, Time{});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  StepUntil(job, JobState::kDumping);
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  clock_.Advance(100s);
  Settle();
  EXPECT_EQ(Job(job).displaced_by, express);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(HandOrdersTest, WhatAnOperatorHasOrderedOnlyOperatorsReplace) {
  const JobId job = BeingSaved();
  ASSERT_TRUE(engine_->Vacate(kRoot, job, Tier::kShared).ok());
  const absl::Status denied = engine_->Suspend(kAda, job);
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_EQ(denied.message(),
            "job 1 waits with a vacate of an operator, root: only operators take it back or replace it");
  EXPECT_TRUE(absl::IsPermissionDenied(engine_->Resume(kAda, job)));
  EXPECT_EQ(Job(job).waiting_order->order.verb, HandVerb::kVacate);
  EXPECT_TRUE(engine_->Suspend(kRoot, job).ok());
  EXPECT_TRUE(engine_->Resume(kRoot, job).ok());
  EXPECT_FALSE(Job(job).waiting_order);
}

TEST_F(HandOrdersTest, WhatIsReplacedIsSaidToBe) {
  const JobId job = WaitingVacate();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  EXPECT_FALSE(Has(job, "order-withdrawn")) << "it is the same";
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  EXPECT_TRUE(Has(job, "order-withdrawn"));
  EXPECT_EQ(Job(job).reason,
            "the vacate that waited is not carried out: suspend, asked for by ada, takes its place");
  EXPECT_EQ(Job(job).waiting_order->order.verb, HandVerb::kSuspend);
}

TEST_F(HandOrdersTest, AnOrderWaitsForAsLongAsAProgramMaySaveItself) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kSuspend, Method::kApp});
  spec.app.emplace().marker = "saved";
  spec.app->grace = 1h;
  spec.checkpoint_interval = 30s;
  const JobId job = Submit(spec);
  Settle();
  clock_.Advance(30s);
  engine_->Tick();
  ASSERT_EQ(State(job), JobState::kSaving);
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  EXPECT_EQ(Job(job).waiting_order->until, clock_.Now() + 1h + kOrderPatience);
}

// Nothing waits for one that is on its way off its nodes.
TEST_F(HandOrdersTest, AJobThatLeavesIsNotToldToLeave) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  EXPECT_EQ(engine_->Vacate(kAda, job, Tier::kShared).message(),
            "job 1 is dumping: only a running or suspended job can leave its nodes");
}

TEST_F(HandOrdersTest, WhoseOrderItIsIsRecorded) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(LastBy("place"), "") << "it was decided";
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  EXPECT_EQ(LastBy("order-suspend"), kAda.user);
  EXPECT_EQ(LastBy("frozen"), "") << "it was observed";
  ASSERT_TRUE(engine_->Resume(kRoot, job).ok());
  Settle();
  EXPECT_EQ(LastBy("order-resume"), kRoot.user);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
    Settle();
    EXPECT_EQ(LastBy("order-dump"), kAda.user);
  }
  ASSERT_TRUE(engine_->DeleteCheckpoint(kRoot, Job(job).checkpoints.front()).ok());
  EXPECT_EQ(LastBy("checkpoint-deleted"), kRoot.user);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  EXPECT_EQ(LastBy("cordoned"), kRoot.user);
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(LastBy("order-dump"), kAda.user);
  ASSERT_TRUE(engine_->Restart(kAda, job, false).ok());
  EXPECT_EQ(LastBy("restart-needed"), kAda.user);
  ASSERT_TRUE(engine_->Kill(kRoot, job).ok());
  Settle();
  EXPECT_EQ(LastBy("cancelled"), kRoot.user);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  EXPECT_EQ(LastBy("uncordoned"), kRoot.user);
}
TEST_F(HandOrdersTest, WhoseOrderItWasIsRecordedWhenItHasWaited) {
  const JobId job = WaitingVacate();
  EXPECT_EQ(LastBy("order-waits"), kAda.user);
  EXPECT_EQ(LastBy("order-dump"), "") << "on schedule";
  StepUntilHas(job, "released");
  EXPECT_EQ(LastBy("order-dump"), kAda.user);
}
TEST_F(HandOrdersTest, WhoWithdrawsItIsRecorded) {
  const JobId job = WaitingVacate();
  ASSERT_TRUE(engine_->Suspend(kRoot, job).ok());
  EXPECT_EQ(LastBy("order-withdrawn"), kRoot.user);
  EXPECT_EQ(LastBy("order-waits"), kRoot.user);
  clock_.Advance(kOrderPatience + 1h);
  engine_->Tick();
  EXPECT_EQ(LastBy("order-withdrawn"), "") << "it has taken too long";
}

// As it was recorded once, without by whom.
TEST_F(HandOrdersTest, AnOrderOfAnOldJournalIsAnOrderByHand) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  JobRecord saved = Job(job);
  EXPECT_TRUE(IsSavedByHand(saved));
  saved.current.by = "";
  saved.current.reason = kAskedFor;
  EXPECT_TRUE(IsSavedByHand(saved));
  saved.current.reason = "on schedule, every 30s";
  EXPECT_FALSE(IsSavedByHand(saved));
}

TEST_F(HandOrdersTest, OthersMayNotAskForIt) {
  const JobId job = BeingSaved();
  EXPECT_TRUE(absl::IsNotFound(engine_->Vacate(kBob, job, Tier::kShared)));
  EXPECT_FALSE(Job(job).waiting_order);
}

}  // namespace
}  // namespace siding
