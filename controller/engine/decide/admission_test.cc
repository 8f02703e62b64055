// Who may ask for on-demand jobs, how much, and what is done when a deadline cannot be met.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::HasSubstr;

class AdmissionTest : public EngineTest {
 protected:
  void SetRules(std::vector<OnDemandRule> rules) {
    Policy policy;
    policy.on_demand = std::move(rules);
    engine_->SetPolicy(policy);
  }
  void SetWhenLate(WhenLate when) {
    Policy policy;
    policy.when_late = when;
    engine_->SetPolicy(policy);
  }
  std::string ErrorOf(const JobSpec& spec, const Caller& caller = kBob) {
    return std::string(engine_->Submit(caller, spec).status().message());
  }
};

TEST_F(AdmissionTest, WithoutRulesEverybodyMayAsk) {
  AddNodes({"a"});
  EXPECT_EQ(ErrorOf(OnDemand(1)), "");
}

TEST_F(AdmissionTest, WhoIsNotNamedMayNotAsk) {
  AddNodes({"a"});
  SetRules({{.match = {{{"user", {"ada"}}}}}});
  EXPECT_THAT(ErrorOf(OnDemand(1)), HasSubstr("does not let bob ask"));
  EXPECT_EQ(ErrorOf(OnDemand(1), kAda), "");
}

TEST_F(AdmissionTest, GpuJobsThatDoNotSayHaveTheCollectivesOfThePolicy) {
  Policy policy;
  policy.gpu_collectives = GpuCollectives::kDrainable;
  engine_->SetPolicy(policy);
  JobSpec spec = Batch();
  EXPECT_EQ(Job(Submit(spec)).spec.gpu_collectives, GpuCollectives::kUnsaid);
  spec.per_node.gpus = 1;
  EXPECT_EQ(Job(Submit(spec)).spec.gpu_collectives, GpuCollectives::kDrainable);
  spec.gpu_collectives = GpuCollectives::kAsIs;
  EXPECT_EQ(Job(Submit(spec)).spec.gpu_collectives, GpuCollectives::kAsIs);
}

TEST_F(AdmissionTest, APolicyThatAllowsIoUringAllowsItToAll) {
  Policy policy;
  policy.allow_io_uring = true;
  engine_->SetPolicy(policy);
  EXPECT_TRUE(Job(Submit(Batch())).spec.allow_io_uring);
}

TEST_F(AdmissionTest, HowFastTheSharedTierIsCountsAsSoonAsItIsMeasured) {
  cluster_.local_disk_free = 0;
  cluster_.shared_bytes_per_second = 0;
  AddNodes({"a"});
  Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  EXPECT_THAT(ErrorOf(OnDemand(1), kAda), HasSubstr("only 0 of 1 node can be free by then"));
  cluster_.shared_bytes_per_second = 1e9;
  cluster_.Heartbeat("a");
  EXPECT_EQ(ErrorOf(OnDemand(1), kAda), "");
}

TEST_F(AdmissionTest, AJobLeavesInTheTimeThatThePolicyAllows) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.kill_grace = 5min;
  EXPECT_EQ(ErrorOf(spec), "");
  spec.kill_grace = 48h;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("kill_grace: expected at most 5m"));
  EXPECT_THAT(ErrorOf(spec), HasSubstr("max_kill_grace"));
  spec = Batch();
  spec.notice = 25h;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("max_notice"));
  spec = Batch();
  spec.app = AppMethod{.signal = SIGUSR1, .grace = 25h};
  EXPECT_THAT(ErrorOf(spec), HasSubstr("app.grace: expected at most"));
}
TEST_F(AdmissionTest, ADryRunIsRefusedLikewise) {
  AddNodes({"a"});
  JobSpec spec = OnDemand(1);
  spec.kill_grace = 48h;
  EXPECT_THAT(engine_->DryRun(kBob, spec).status().message(), HasSubstr("max_kill_grace"));
}
TEST_F(AdmissionTest, AJobThatWasTakenKeepsItsGrace) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.kill_grace = 5min;
  const JobId job = Submit(spec);
  Policy policy;
  policy.max_kill_grace = 1s;
  engine_->SetPolicy(policy);
  Settle();
  EXPECT_EQ(Job(job).spec.kill_grace, Duration(5min));
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(AdmissionTest, BatchJobsNeedNoRule) {
  SetRules({{.allowed = false}});
  EXPECT_EQ(ErrorOf(Batch()), "");
}

TEST_F(AdmissionTest, ARequestMayBeTooLarge) {
  AddNodes({"a", "b"});
  SetRules({{.max_nodes = 1}});
  EXPECT_THAT(ErrorOf(OnDemand(2)), HasSubstr("lets bob ask for 1 at most, got 2"));
  EXPECT_EQ(ErrorOf(OnDemand(1)), "");
}

TEST_F(AdmissionTest, ADaysNodeHoursAreCountedByWhatIsHeldAndWhatWas) {
  AddNodes({"a", "b"});
  SetRules({{.node_hours_per_day = 3}});
  JobSpec two_hours = OnDemand(1);
  two_hours.hold = 2h;
  const JobId first = Submit(two_hours, kBob);
  Settle();
  EXPECT_THAT(ErrorOf(two_hours), HasSubstr("would take 2.0 node-hours; of the 3.0 a day"));
  EXPECT_EQ(ErrorOf(two_hours, kAda), "");
  // It ended after half an hour: that much is used.
  clock_.Advance(30min);
  cluster_.Exit(first, 0, 0);
  two_hours.start_by = clock_.Now() + 60s;
  EXPECT_EQ(ErrorOf(two_hours), "");
}

TEST_F(AdmissionTest, YesterdaysNodeHoursAreForgotten) {
  AddNodes({"a"});
  SetRules({{.node_hours_per_day = 1}});
  JobSpec hour = OnDemand(1);
  hour.hold = 1h;
  const JobId first = Submit(hour, kBob);
  Settle();
  clock_.Advance(1h);
  cluster_.Exit(first, 0, 0);
  hour.start_by = clock_.Now() + 60s;
  EXPECT_NE(ErrorOf(hour), "");
  clock_.Advance(25h);
  hour.start_by = clock_.Now() + 60s;
  EXPECT_EQ(ErrorOf(hour), "");
}

class LateTest : public AdmissionTest {
 protected:
  // Its node cannot be free within 5 s.
  JobId AddBusyNode() {
    AddNodes({"a"});
    JobSpec spec = Batch(1, {Method::kApp});
    spec.app = AppMethod{.grace = 30s};
    const JobId job = Submit(spec);
    Settle();
    return job;
  }
};

TEST_F(LateTest, IsRefusedByDefault) {
  AddBusyNode();
  EXPECT_THAT(ErrorOf(OnDemand(1, 5s)), HasSubstr("the earliest start would be"));
}

TEST_F(LateTest, ADeadlineWithinTheMarginIsRefusedHoweverFreeTheNodesAre) {
  AddNodes({"a"});
  EXPECT_THAT(ErrorOf(OnDemand(1, policy_.margin - 10ms)), HasSubstr("less than 1.00s before"));
  EXPECT_EQ(ErrorOf(OnDemand(1, policy_.margin)), "");
}

TEST_F(LateTest, WithinTheMarginItIsServedAsSoonAsCanBeIfThePolicySaysSo) {
  SetWhenLate(WhenLate::kBestEffort);
  AddNodes({"a"});
  const JobId express = Submit(OnDemand(1, 10ms), kBob);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
}

TEST_F(LateTest, IsServedAsSoonAsCanBeIfThePolicySaysSo) {
  SetWhenLate(WhenLate::kBestEffort);
  const JobId victim = AddBusyNode();
  const JobId express = Submit(OnDemand(1, 5s), kBob);
  EXPECT_THAT(Job(express).plans.back().refusal, HasSubstr("late"));
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(victim), JobState::kParked);
}

TEST_F(LateTest, WaitsItsTurnAndNobodyMakesWayIfThePolicySaysSo) {
  SetWhenLate(WhenLate::kQueue);
  const JobId running = AddBusyNode();
  const JobId express = Submit(OnDemand(1, 5s), kBob);
  const JobId later = Submit(Batch());
  Settle(20);
  EXPECT_EQ(State(running), JobState::kRunning);
  EXPECT_EQ(State(express), JobState::kPending);
  cluster_.Exit(running, 0, 0);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(State(later), JobState::kPending);
}

TEST_F(LateTest, IsRefusedAllTheSameIfItCouldNeverRun) {
  for (WhenLate when : {WhenLate::kBestEffort, WhenLate::kQueue}) {
    SetWhenLate(when);
    EXPECT_THAT(ErrorOf(OnDemand(7)), HasSubstr("refused"));
  }
}

TEST_F(AdmissionTest, HeadroomIsKeptFreeOfBatchJobs) {
  AddNodes({"a", "b"});
  Policy policy;
  policy.headroom_nodes = 1;
  engine_->SetPolicy(policy);
  const JobId first = Submit(Batch()), second = Submit(Batch());
  Settle();
  EXPECT_EQ(State(first), JobState::kRunning);
  EXPECT_EQ(State(second), JobState::kPending);
  const JobId express = Submit(OnDemand(1, 5s), kBob);
  Settle();
  EXPECT_EQ(State(express), JobState::kRunning);
  EXPECT_EQ(Job(first).preemptions, 0);
}

}  // namespace
}  // namespace siding
