// Jobs whose time is over: their walltime, or their user's quota.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class WalltimeTest : public EngineTest {
 protected:
  void SetPolicy(AfterWalltime after, std::vector<OnDemandRule> rules = {}) {
    policy_.after_walltime = after;
    policy_.on_demand = std::move(rules);
    engine_->SetPolicy(policy_);
  }
  static JobSpec With(JobSpec spec, Duration walltime) {
    spec.walltime = walltime;
    if (spec.kind == JobKind::kOnDemand) spec.hold = walltime;
    return spec;
  }
};

TEST_F(WalltimeTest, AnOnDemandJobIsEndedAtItsEnd) {
  AddNodes({"a"});
  const JobId job = Submit(With(OnDemand(1), 5s));
  Settle(4);
  EXPECT_EQ(State(job), JobState::kRunning);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).reason, "walltime of 5.00s is over");
}

TEST_F(WalltimeTest, ItIsToldAndHasItsGrace) {
  AddNodes({"a"});
  JobSpec spec = With(OnDemand(1), 2s);
  spec.kill_grace = 7s;
  Submit(spec);
  Settle();
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kKill).kill().grace_us(), 7'000'000);
}

TEST_F(WalltimeTest, SoIsABatchJob) {
  AddNodes({"a"});
  const JobId job = Submit(With(Batch(), 2s)), other = Submit(Batch());
  Settle(5);
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(State(other), JobState::kRunning);
}

TEST_F(WalltimeTest, WithoutOneAJobRunsOn) {
  AddNodes({"a"});
  const JobId job = Submit(OnDemand(1));
  Settle();
  clock_.Advance(24h);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(WalltimeTest, AControllerThatStartsAgainKnowsOfIt) {
  AddNodes({"a"});
  const JobId job = Submit(With(OnDemand(1), 60s));
  Settle();
  clock_.Advance(60s);
  StartController();
  cluster_.Connect("a");
  Settle(12);  // other agents may still dial before
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).reason, "walltime of 1m00s is over");
}

TEST_F(WalltimeTest, AJobWhoseNodeIsAwayIsNotEnded) {
  AddNodes({"a"});
  const JobId job = Submit(With(Batch(), 60s));
  Settle();
  cluster_.Disconnect("a");
  clock_.Advance(1h);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

// The power was out for hours: no job ran.
TEST_F(WalltimeTest, AfterAnOutageAJobIsRestoredAndHasTheTimeThatItHadLeft) {
  AddNodes({"a"});
  const JobId job = Submit(With(Batch(), 100s));
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  cluster_.Disconnect("a");
  clock_.Advance(3h);
  StartController();
  cluster_.Vanish(job);
  cluster_.Connect("a");
  Settle(20);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kRestore), 1);
}

TEST_F(WalltimeTest, WhatWasSaidBeforeWalltimesWereLimitsIsNone) {
  SetPolicy(AfterWalltime::kEnd, {{.node_hours_per_day = 1}});
  AddNodes({"a"});
  JobSpec spec = OnDemand(1);
  spec.hold = 30min;  // and no walltime
  const JobId job = Submit(spec);
  Settle();
  clock_.Advance(3h);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(WalltimeTest, AnOrderToEndItIsCarriedOutByTheNextController) {
  AddNodes({"a"});
  const JobId job = Submit(With(OnDemand(1), 2s));
  Settle(1);
  clock_.Advance(3s);
  engine_->Tick();
  cluster_.LoseQueue();
  EXPECT_EQ(State(job), JobState::kKilling);
  StartController();
  cluster_.Connect("a");
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
}

TEST_F(WalltimeTest, FrozenTimeDoesNotCount) {
  AddNodes({"a"});
  const JobId job = Submit(With(Batch(), 60s));
  Settle();
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  clock_.Advance(1h);
  ASSERT_TRUE(engine_->Resume(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  clock_.Advance(60s);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
}

TEST_F(WalltimeTest, WhatWasLostDoesNotCount) {
  AddNodes({"a"});
  const JobId job = Submit(With(Batch(), 100s));
  Settle();
  clock_.Advance(30s);
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  clock_.Advance(60s);
  cluster_.Vanish(job);
  Settle();
  ASSERT_EQ(State(job), JobState::kRunning);
  EXPECT_LT(RanFor(Job(job), clock_.Now()), 50s);
}

TEST_F(WalltimeTest, ByThePolicyItMayRunOnAndMakeWay) {
  AddNodes({"a"});
  SetPolicy(AfterWalltime::kPreemptible);
  const JobId first = Submit(With(OnDemand(1), 5s));
  Settle(8);
  EXPECT_EQ(State(first), JobState::kRunning);
  EXPECT_EQ(Job(first).reason, "walltime of 5.00s is over: it makes way for others now");
  const JobId second = Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(State(second), JobState::kRunning);
  EXPECT_EQ(State(first), JobState::kSuspended);
}

TEST_F(WalltimeTest, ItMakesWayAsItsUserSaid) {
  AddNodes({"a"});
  SetPolicy(AfterWalltime::kPreemptible);
  JobSpec spec = With(OnDemand(1), 5s);
  spec.methods = {Method::kKill};
  const JobId first = Submit(spec);
  Settle(8);
  const JobId second = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(second), JobState::kRunning);
  EXPECT_EQ(State(first), JobState::kPending);
  // It waits like any batch job: no job makes way for it again.
  Settle(70);
  EXPECT_EQ(State(first), JobState::kPending);
  cluster_.Exit(second, 0, 0);
  Settle();
  EXPECT_EQ(State(first), JobState::kRunning);
}

TEST_F(WalltimeTest, BeforeThatNobodyMayPreemptIt) {
  AddNodes({"a"});
  SetPolicy(AfterWalltime::kPreemptible);
  JobSpec spec = With(OnDemand(1), 1h);
  spec.methods = {Method::kKill};
  const JobId first = Submit(spec);
  Settle();
  EXPECT_FALSE(engine_->Submit(kBob, OnDemand(1)).ok());
  EXPECT_EQ(State(first), JobState::kRunning);
}

TEST_F(WalltimeTest, NobodyIsPromisedNodesOfAJobThatRunsOn) {
  AddNodes({"a"});
  const JobId first = Submit(With(OnDemand(1), 20s));
  Settle();
  EXPECT_TRUE(engine_->Submit(kBob, OnDemand(1)).ok());
  SetPolicy(AfterWalltime::kPreemptible);
  EXPECT_FALSE(engine_->Submit(kBob, OnDemand(1)).ok());
  EXPECT_EQ(State(first), JobState::kRunning);
}

TEST_F(WalltimeTest, HowAnOnDemandJobMakesWayIsNotForItToSayIfItNeverDoes) {
  AddNodes({"a"});
  JobSpec spec = OnDemand(1);
  spec.methods = {Method::kKill};
  const absl::Status status = engine_->Submit(kAda, spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(),
              HasSubstr("preemptible: expected nothing: an on-demand job makes way for nobody"));
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->DryRun(kAda, spec).status()));
}

// ---- Quotas. ----

TEST_F(WalltimeTest, AQuotaIsCountedAsItRunsAndEndsTheJob) {
  AddNodes({"a", "b"});
  SetPolicy(AfterWalltime::kEnd, {{.node_hours_per_day = 1}});
  const JobId job = Submit(OnDemand(2));
  Settle();
  clock_.Advance(29min);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  clock_.Advance(1min);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_EQ(Job(job).reason, "the 1 node-hours a day of ada are used up (node_hours_per_day)");
}

TEST_F(WalltimeTest, AQuotaEndsWhoHasHadMoreThanHeSaidAndNobodyElse) {
  AddNodes({"a", "b"});
  SetPolicy(AfterWalltime::kEnd, {{.node_hours_per_day = 2}});
  const JobId silent = Submit(OnDemand(1));
  Settle();
  clock_.Advance(30min);
  const JobId honest = Submit(With(OnDemand(1), 1h));
  clock_.Advance(29min);
  Settle();
  EXPECT_EQ(State(silent), JobState::kRunning);
  clock_.Advance(2min);
  Settle();
  EXPECT_EQ(State(silent), JobState::kFailed);
  EXPECT_EQ(State(honest), JobState::kRunning);
}

TEST_F(WalltimeTest, SmallQuotasAreNotRoundedToNothing) {
  AddNodes({"a"});
  SetPolicy(AfterWalltime::kEnd, {{.node_hours_per_day = 0.01}});
  const absl::Status status = engine_->Submit(kAda, With(OnDemand(1), 60s)).status();
  EXPECT_THAT(status.message(), HasSubstr("would take 0.017 node-hours; of the 0.01 a day"));
}

// ---- What counts as a preemption. ----

TEST_F(WalltimeTest, ASaveThatFailedIsNoPreemption) {
  AddNodes({"a"});
  JobSpec spec = Batch(1, {Method::kApp, Method::kKill});
  spec.app = AppMethod{.grace = 1s};
  const JobId victim = Submit(spec);
  Settle();
  Submit(OnDemand(1), kBob);
  ASSERT_EQ(State(victim), JobState::kSaving);
  v1::FromAgent message;
  v1::TaskReport& report = *message.mutable_report();
  report.mutable_task()->set_job(victim.value());
  report.mutable_task()->set_incarnation(1);
  report.set_phase(v1::RUNNING);
  report.set_failed_op(1000100);
  engine_->OnMessage(NodeId("a"), message);
  EXPECT_TRUE(Job(victim).lost_methods.contains(Method::kApp));
  EXPECT_EQ(Job(victim).preemptions, 0);
}

}  // namespace
}  // namespace siding
