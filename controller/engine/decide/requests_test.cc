// Deadline jobs that are announced, that come together, and the way back of those who made way.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::ElementsAre;

class RequestsTest : public EngineTest {
 protected:
  // Wants a node not before 60 s from now; may be started until 10 s after that.
  JobSpec Announced(int nodes = 1) {
    JobSpec spec = OnDemand(nodes, 70s);
    spec.not_before = clock_.Now() + 60s;
    return spec;
  }
  // By the order for a request that is over before anybody hears of the end.
  void ExpectToStartAgainWhenEndedUnheard(JobId victim) {
    const JobId express = Submit(OnDemand(1), kBob);
    ASSERT_EQ(State(victim), JobState::kKilling);
    cluster_.Disconnect("a");
    cluster_.Run();
    ASSERT_TRUE(engine_->Kill(kBob, express).ok());
    Settle();
    cluster_.Connect("a");
    Settle();
    EXPECT_EQ(State(victim), JobState::kRunning);
    EXPECT_EQ(Job(victim).incarnation, 2);
  }
};

TEST_F(RequestsTest, AnAnnouncedRequestStopsNobodyBeforeItArrives) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(Announced(), kBob);
  Settle(50);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kPending);
  Settle(15);
  EXPECT_EQ(State(victim), JobState::kParked);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_LE(Job(express).first_started, Job(express).spec.start_by);
}

TEST_F(RequestsTest, AnAnnouncedRequestDoesNotWaitForTheNextLookAtEverything) {
  AddNodes({"a"});
  Settle();
  JobSpec spec = OnDemand(1, 10s);
  spec.not_before = clock_.Now() + 100ms;
  const JobId express = Submit(spec, kBob);
  clock_.Advance(100ms);
  engine_->Tick();
  EXPECT_EQ(State(express), JobState::kStarting);
}

TEST_F(RequestsTest, AnAnnouncedRequestIsNotStartedEarlyEvenOnFreeNodes) {
  AddNodes({"a"});
  const JobId express = Submit(Announced(), kBob);
  Settle(55);
  EXPECT_EQ(State(express), JobState::kPending);
  Settle(10);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_GE(Job(express).first_started, Job(express).spec.not_before);
}

// Two jobs of one node each. The first is dumped for a request, which would take 5 s; the second loses more.
TEST_F(RequestsTest, AVictimIsNotBusyWithAnImageOnScheduleWhenItIsToLeave) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kCheckpoint});
  spec.checkpoint_interval = 1s;
  const JobId victim = Submit(spec);
  Settle();
  const JobId express = Submit(Announced(), kBob);
  Settle(65);
  EXPECT_EQ(State(victim), JobState::kParked);
  EXPECT_EQ(Job(express).plans.size(), 1u);
  EXPECT_LE(Job(express).first_started, Job(express).spec.start_by);
}

class SlowDump : public RequestsTest {
 protected:
  SlowDump() { cluster_.slow_dump = {"a", "b"}; }
  void Begin(MethodSet methods_of_other = {Method::kKill}) {
    AddNodes({"a", "b"});
    cluster_.memory = 5'000'000'000;
    victim_ = Submit(Batch(1, {Method::kCheckpoint}));
    JobSpec other = Batch(1, methods_of_other);
    other.kill_grace = 1s;
    other_ = Submit(other);
    Settle();
    cluster_.Heartbeat("a");
    cluster_.Heartbeat("b");
    clock_.Advance(600s);
    express_ = Submit(OnDemand(1, 60s), kBob);
    Settle(1);
    ASSERT_EQ(State(victim_), JobState::kDumping);
  }
  JobId victim_, other_, express_;
};

TEST_F(SlowDump, ThatWouldBeTooLateIsWithdrawnAndAnotherMakesWay) {
  Begin();
  cluster_.Progress(victim_, 2'000'000'000, 5'000'000'000, 1e7);  // 300 s more
  Settle();
  EXPECT_EQ(State(express_), JobState::kRunning);
  EXPECT_EQ(Job(express_).nodes, Job(express_).plans.back().nodes);
  EXPECT_EQ(State(victim_), JobState::kRunning);
  EXPECT_NE(State(other_), JobState::kRunning);
}

TEST_F(SlowDump, ThatIsStillInTimeGoesOn) {
  Begin();
  cluster_.Progress(victim_, 2'000'000'000, 5'000'000'000, 1e8);  // 30 s more
  Settle();
  EXPECT_EQ(State(victim_), JobState::kDumping);
  EXPECT_EQ(State(other_), JobState::kRunning);
}

TEST_F(SlowDump, ThatHasHardlyBegunIsNotJudgedByItsSpeed) {
  Begin();
  cluster_.Progress(victim_, 1'000'000, 5'000'000'000, 1e6);
  Settle();
  EXPECT_EQ(State(victim_), JobState::kDumping);
}

TEST_F(SlowDump, IsWaitedForWhereNobodyElseCanMakeWay) {
  Begin({});
  cluster_.Progress(victim_, 2'000'000'000, 5'000'000'000, 1e7);
  Settle();
  EXPECT_EQ(State(victim_), JobState::kDumping);
  EXPECT_THAT(Job(express_).plans.back().refusal, HasSubstr("late"));
  EXPECT_EQ(Job(express_).plans.size(), 2u);
}

TEST_F(RequestsTest, AVictimOfAnAnnouncedRequestMayEndBeforeItArrives) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(Announced(), kBob);
  ASSERT_TRUE(engine_->Kill(kAda, victim).ok());
  Settle(65);
  EXPECT_EQ(State(victim), JobState::kCancelled);
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(RequestsTest, AVictimOfAnAnnouncedRequestMayLeaveBeforeItArrives) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(Announced(), kBob);
  ASSERT_TRUE(engine_->Vacate(kAda, victim, Tier::kShared).ok());
  Settle(65);
  EXPECT_EQ(State(express), JobState::kRunning);
}

// The dump takes too long for the time after the arrival, so the image is taken before it.
class EarlyImage : public RequestsTest {
 protected:
  EarlyImage() { cluster_.memory = 20'000'000'000; }  // 20 s
  JobId SubmitVictim() {
    JobSpec spec = Batch(1, {Method::kCheckpoint});
    spec.kill_grace = 2s;
    const JobId victim = Submit(spec);
    Settle();
    cluster_.Heartbeat("a");
    return victim;
  }
};

TEST_F(EarlyImage, IsTakenWhileTheVictimRunsOn) {
  AddNodes({"a"});
  const JobId victim = SubmitVictim();
  const JobId express = Submit(Announced(), kBob);
  Settle(55);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(victim).checkpoints.size(), 1u);
  EXPECT_EQ(Job(victim).preemptions, 0);
  Settle(8);
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kParked);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
}

TEST_F(EarlyImage, ThatCannotBeTakenEndsNobody) {
  AddNodes({"a"});
  const JobId victim = SubmitVictim();
  const JobId express = Submit(Announced(), kBob);
  cluster_.fail_dump = {"a"};
  Settle(90);
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kPending);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(EarlyImage, IsNotTakenTwiceAfterARestart) {
  AddNodes({"a"});
  const JobId victim = SubmitVictim();
  Submit(Announced(), kBob);
  Settle(40);
  ASSERT_EQ(Job(victim).checkpoint_count, 1);
  StartController();
  cluster_.Connect("a");
  Settle(10);
  EXPECT_EQ(Job(victim).checkpoint_count, 1);
}

TEST_F(RequestsTest, ANodeThatIsBeingFreedForALaterRequestServesAnEarlierOne) {
  AddNodes({"a", "b"});
  const JobId quick = Submit(Batch(1, {Method::kCheckpoint}));
  JobSpec saver = Batch(1, {Method::kApp});
  saver.app = AppMethod{.grace = 30s};
  Submit(saver);
  Settle();
  const JobId late = Submit(OnDemand(1, 100s), kBob);
  ASSERT_EQ(State(quick), JobState::kDumping);
  // Only the node of `quick` can be free in time for this one; the other request has time for something else.
  const JobId early = Submit(OnDemand(1, 5s), kBob);
  Settle(1);
  EXPECT_THAT(Job(early).nodes, ElementsAre(NodeId("a")));
  EXPECT_THAT(Job(late).nodes, ElementsAre(NodeId("b")));
}

TEST_F(RequestsTest, AFrozenJobMovesAwayFromARequestThatStaysLong) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kSuspend, Method::kCheckpoint}));
  Settle();
  JobSpec spec = OnDemand(1);
  spec.hold = 1h;
  const JobId express = Submit(spec, kBob);
  Settle();
  ASSERT_EQ(State(victim), JobState::kSuspended);
  AddNodes({"b"});
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_THAT(Job(victim).nodes, ElementsAre(NodeId("b")));
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(RequestsTest, AFrozenJobDoesNotMoveAwayFromARequestThatIsEnding) {
  AddNodes({"a", "b"});
  const JobId victim = Submit(Batch(1, {Method::kSuspend, Method::kCheckpoint}));
  Settle();
  JobSpec spec = OnDemand(2);
  spec.hold = 1h;
  const JobId express = Submit(spec, kBob);
  Settle();
  ASSERT_EQ(State(victim), JobState::kSuspended);
  cluster_.Exit(express, 1, 0);  // the other node is free now
  Settle();
  EXPECT_EQ(State(victim), JobState::kSuspended);
  cluster_.Exit(express, 0, 0);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(victim).checkpoint_count, 0);
}

TEST_F(RequestsTest, AGangThatMadeWayFindsItsNodesThoughTheRequestsRanksEndOneByOne) {
  AddNodes({"a", "b"});
  const JobId gang = Submit(Batch(2, {Method::kCheckpoint}));
  Settle();
  const JobId express = Submit(OnDemand(2), kBob);
  Submit(Batch());  // would fit on the node that is free first
  Settle();
  ASSERT_EQ(State(gang), JobState::kParked);
  cluster_.Exit(express, 0, 0);
  Settle(1);
  cluster_.Exit(express, 1, 0);
  Settle();
  EXPECT_EQ(State(gang), JobState::kRunning);
}

TEST_F(RequestsTest, AVictimWhoseNodeIsNoLongerNeededGoesOn) {
  AddNodes({"a", "b"});
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  const JobId other = Submit(Batch(1, {}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(victim), JobState::kDumping);
  cluster_.Exit(other, 0, 0);  // its node is free before the dump is over
  EXPECT_EQ(State(express), JobState::kStarting);
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(Job(victim).checkpoints.size(), 0u);
}

// Its node went before it heard that the job is to be ended.
TEST_F(RequestsTest, AVictimIsNotEndedForARequestThatIsOver) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kKill}));
  Settle();
  const JobId express = Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(victim), JobState::kKilling);
  cluster_.LoseQueue();
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Kill(kBob, express).ok());
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}
// It was ended, and nobody heard of it before the request was over.
TEST_F(RequestsTest, AVictimThatWasEndedUnheardStartsAgain) {
  AddNodes({"a"});
  const JobId victim = Submit(Batch(1, {Method::kKill}));
  Settle();
  ExpectToStartAgainWhenEndedUnheard(victim);
}

// It was told to leave before it had begun, and its node went.
TEST_F(RequestsTest, AVictimThatHasNotBegunDoesNotCountAsRunningWhenItsRequestIsOver) {
  AddNodes({"a"});
  Settle();
  const JobId victim = Submit(Batch(1, {Method::kKill}));
  const JobId express = Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(victim), JobState::kKilling);
  cluster_.LoseQueue();
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Kill(kBob, express).ok());
  Settle();
  EXPECT_NE(State(victim), JobState::kRunning);
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_TRUE(Job(victim).first_started);
}

// Whoever may be killed may be started over, whatever is to be done when its node fails.
TEST_F(RequestsTest, AVictimThatWasEndedUnheardStartsAgainThoughLossesParkIt) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kKill});
  spec.on_node_failure = OnNodeFailure::kPark;
  const JobId victim = Submit(spec);
  Settle();
  ExpectToStartAgainWhenEndedUnheard(victim);
}

// A gang on two nodes with an image on its nodes' own disks.
class VerificationTest : public RequestsTest {
 protected:
  VerificationTest() {
    AddNodes({"a", "b"});
    const JobId job = Submit(Batch(2, {Method::kCheckpoint}));
    Settle();
    EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
    Settle();
    image_ = Job(job).checkpoints.back();
  }
  absl::Status Verify() {
    return engine_->VerifyCheckpoint(kAda, image_, [&](const auto& by_rank) {
      ++answers_;
      EXPECT_EQ(by_rank.size(), 2u);
    });
  }
  CheckpointId image_;
  int answers_ = 0;
};

TEST_F(VerificationTest, WhoAsksMeanwhileGetsTheSameAnswer) {
  ASSERT_TRUE(Verify().ok());
  ASSERT_TRUE(Verify().ok());
  cluster_.Run();
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kVerify), 2);  // one for each rank
}

TEST_F(VerificationTest, WhoAsksLaterGetsItsOwn) {
  ASSERT_TRUE(Verify().ok());
  cluster_.Run();
  ASSERT_TRUE(Verify().ok());
  cluster_.Run();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kVerify), 4);
}

TEST_F(VerificationTest, SoManyMayWaitForOne) {
  int taken = 0;
  while (taken < 1000 && Verify().ok()) ++taken;
  EXPECT_EQ(taken, 100);
  EXPECT_TRUE(absl::IsResourceExhausted(Verify()));
}

TEST_F(VerificationTest, OneThatCannotBeginIsNotWaitedFor) {
  cluster_.Disconnect("b");
  EXPECT_TRUE(absl::IsUnavailable(Verify()));
  cluster_.Connect("b");
  ASSERT_TRUE(Verify().ok());
  cluster_.Run();
  EXPECT_EQ(answers_, 1);
}

TEST_F(RequestsTest, AVerificationEndsWhenItsNodeGoesAway) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  std::map<int, v1::OpResult> results;
  ASSERT_TRUE(
      engine_->VerifyCheckpoint(kAda, Job(job).checkpoints.back(), [&](auto by_rank) { results = by_rank; })
          .ok());
  cluster_.Disconnect("a");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(results[0].message(), testing::HasSubstr("node a went away"));
}

// Two jobs that would be killed, of which one has run for longer.
class PlansWithoutTest : public RequestsTest {
 protected:
  PlansWithoutTest() {
    AddNodes({"a", "b"});
    older_ = Submit(Batch(1, {Method::kKill}));
    Settle(30);
    newer_ = Submit(Batch(1, {Method::kKill}));
    Settle(30);
  }
  JobId older_, newer_;
};

TEST_F(PlansWithoutTest, AreMadeOfWhatTheAdoptedPlanWasMadeOf) {
  const JobId express = Submit(OnDemand(1), kBob);
  Settle(30);
  ASSERT_EQ(Job(express).plans.front().steps.at(0).job, newer_);
  const std::vector<PlanWithout> without = engine_->PlansWithout(express, 0);
  ASSERT_EQ(without.size(), 1u);
  EXPECT_EQ(without[0].spared, newer_);
  EXPECT_THAT(without[0].jobs, ElementsAre(older_));
  EXPECT_TRUE(without[0].next_best);
}

TEST_F(PlansWithoutTest, AreNotKnownAfterARestart) {
  const JobId express = Submit(OnDemand(1), kBob);
  Settle(30);
  StartController();
  EXPECT_TRUE(engine_->PlansWithout(express, 0).empty());
}

TEST_F(PlansWithoutTest, ADryRunHasThemWhereTheyAreAskedFor) {
  EXPECT_TRUE(engine_->DryRun(kBob, OnDemand(1))->without.empty());
  const Plan plan = *engine_->DryRun(kBob, OnDemand(1), true);
  ASSERT_EQ(plan.without.size(), 1u);
  EXPECT_THAT(plan.without[0].jobs, ElementsAre(older_));
}

}  // namespace
}  // namespace siding
