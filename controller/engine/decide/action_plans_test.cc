// What orders by hand would do, and orders that are given only if that still holds.
#include "controller/engine/decide/action_plans.h"

#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/state_text.h"

namespace siding {
namespace {

class ActionPlansTest : public EngineTest {
 protected:
  static Action Hand(JobId job, HandVerb verb, std::vector<NodeId> target = {}) {
    Action action;
    action.job = job;
    action.order.verb = verb;
    action.order.target = std::move(target);
    return action;
  }
  static Action Kill(JobId job) { return {Action::What::kKill, job, {}, {}}; }
  static Action Cordon(const char* node) { return {Action::What::kCordon, JobId(), {}, NodeId(node)}; }

  JobId Running(MethodSet methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill}) {
    const JobId job = Submit(Batch(1, methods));
    Settle();
    return job;
  }
  // Of a job that no request can move, until a walltime ends it.
  JobId InTheWay(Duration walltime) {
    JobSpec spec = Batch(1, {});
    spec.walltime = walltime;
    const JobId job = Submit(spec);
    Settle();
    return job;
  }
  ActionPlan PlanOf(const Action& action, const Caller& caller = kRoot) {
    auto plan = engine_->PlanAction(caller, action);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : ActionPlan{};
  }
  std::string Refusal(const Action& action, const Caller& caller = kAda) {
    return std::string(engine_->PlanAction(caller, action).status().message());
  }
  std::string Text() {
    std::string text;
    engine_->Read([&](const ClusterState& s) { text = StateText(s); });
    return text;
  }
};

TEST_F(ActionPlansTest, NothingIsChanged) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const std::string before = Text();
  for (const Action& action :
       {Hand(job, HandVerb::kSuspend), Hand(job, HandVerb::kCheckpoint), Hand(job, HandVerb::kVacate),
        Hand(job, HandVerb::kMigrate), Kill(job), Cordon("a")})
    PlanOf(action);
  EXPECT_EQ(Text(), before);
}

TEST_F(ActionPlansTest, AVacateCostsTheTimeOfItsImageAndOfTheWayBack) {
  AddNodes({"a"});
  cluster_.memory = 1'000'000'000;  // to be written and read at 1 GB/s
  const JobId job = Running();
  const ActionPlan plan = PlanOf(Hand(job, HandVerb::kVacate));
  EXPECT_EQ(plan.nodes, std::vector{NodeId("a")});
  EXPECT_EQ(plan.method, Method::kCheckpoint);
  EXPECT_EQ(plan.bytes, Bytes{1'000'000'000});
  EXPECT_EQ(plan.done - plan.made, 1s);
  EXPECT_DOUBLE_EQ(plan.loss_node_seconds, 2);
}

TEST_F(ActionPlansTest, WhatNobodyHasMeasuredIsNotKnown) {
  AddNodes({"a"});
  cluster_.memory = 0;
  const ActionPlan plan = PlanOf(Hand(Running(), HandVerb::kVacate));
  EXPECT_EQ(plan.bytes, Bytes{0});
  EXPECT_EQ(plan.done, Time{});
  EXPECT_EQ(plan.loss_node_seconds, 0);
}

TEST_F(ActionPlansTest, ACheckpointCostsTheTimeForWhichTheJobStandsStill) {
  AddNodes({"a"});
  cluster_.memory = 1'000'000'000;
  const JobId job = Running();
  EXPECT_DOUBLE_EQ(PlanOf(Hand(job, HandVerb::kCheckpoint)).loss_node_seconds, 1);
}

TEST_F(ActionPlansTest, WhichItsLastImageShows) {
  AddNodes({"a"});
  cluster_.memory = 1'000'000'000;
  cluster_.stopped = 250ms;
  const JobId job = Running();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  const ActionPlan plan = PlanOf(Hand(job, HandVerb::kCheckpoint));
  EXPECT_DOUBLE_EQ(plan.loss_node_seconds, 0.25);
  EXPECT_EQ(plan.done - plan.made, 1s);
  EXPECT_DOUBLE_EQ(PlanOf(Hand(job, HandVerb::kVacate)).loss_node_seconds, 2);
}

TEST_F(ActionPlansTest, AKillCostsAllThatTheJobHasDone) {
  AddNodes({"a"});
  const JobId job = Running();
  clock_.Advance(60s);
  const ActionPlan plan = PlanOf(Kill(job));
  EXPECT_GE(plan.loss_node_seconds, 60);
  EXPECT_EQ(plan.done - plan.made, 10s);  // its kill_grace
}

TEST_F(ActionPlansTest, AMigrationSaysWhereTo) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  EXPECT_EQ(PlanOf(Hand(job, HandVerb::kMigrate)).target, std::vector{NodeId("b")});
}

TEST_F(ActionPlansTest, ACordonSaysWhoStays) {
  AddNodes({"a"});
  const JobId job = Running();
  EXPECT_EQ(PlanOf(Cordon("a")).stay, std::vector{job});
}

TEST_F(ActionPlansTest, WhatWouldBeRefusedIsRefusedInTheSameWords) {
  AddNodes({"a"});
  const JobId job = Running();
  EXPECT_THAT(Refusal(Hand(job, HandVerb::kMigrate)), HasSubstr("needs 1 other nodes with room"));
  EXPECT_EQ(Refusal(Hand(job, HandVerb::kMigrate)), engine_->Migrate(kAda, job, {}).message());
  EXPECT_EQ(Refusal(Hand(JobId(77), HandVerb::kVacate)),
            engine_->Vacate(kAda, JobId(77), Tier::kShared).message());
  EXPECT_EQ(Refusal(Hand(job, HandVerb::kVacate), kBob), engine_->Vacate(kBob, job, Tier::kShared).message());
  EXPECT_EQ(Refusal(Cordon("a")), engine_->Cordon(kAda, NodeId("a"), true).message());
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_THAT(Refusal(Kill(job)), HasSubstr("it has ended"));
  EXPECT_EQ(Refusal(Kill(job)), engine_->Kill(kAda, job).message());
}

// ---- Deadlines. ----

TEST_F(ActionPlansTest, ADeadlineIsKeptSoonerOnceTheJobInItsWayIsKilled) {
  AddNodes({"a"});
  const JobId job = InTheWay(60s);
  const JobId request = Submit(OnDemand(1, 600s));
  const ActionPlan plan = PlanOf(Kill(job));
  ASSERT_EQ(plan.deadlines.size(), 1);
  EXPECT_EQ(plan.deadlines[0].request, request);
  ASSERT_TRUE(plan.deadlines[0].before && plan.deadlines[0].after);
  EXPECT_GT(*plan.deadlines[0].before, clock_.Now() + 30s);
  EXPECT_LT(*plan.deadlines[0].after, clock_.Now() + 30s);
}

TEST_F(ActionPlansTest, ADeadlineThatACordonBreaksIsSaidToBe) {
  AddNodes({"a"});
  InTheWay(60s);
  Submit(OnDemand(1, 600s));
  const ActionPlan plan = PlanOf(Cordon("a"));
  ASSERT_EQ(plan.deadlines.size(), 1);
  EXPECT_TRUE(plan.deadlines[0].before);
  EXPECT_FALSE(plan.deadlines[0].after);
}

TEST_F(ActionPlansTest, WithoutARequestBeforeItTheNextOneStartsSooner) {
  AddNodes({"a", "b"});
  InTheWay(60s);
  InTheWay(200s);
  const JobId gone = Submit(OnDemand(1, 300s));
  const JobId stays = Submit(OnDemand(1, 900s));
  const ActionPlan plan = PlanOf(Kill(gone));
  ASSERT_EQ(plan.deadlines.size(), 1);
  EXPECT_EQ(plan.deadlines[0].request, stays);
  ASSERT_TRUE(plan.deadlines[0].after);
  EXPECT_LT(*plan.deadlines[0].after, plan.deadlines[0].before.value_or(Time::max()));
}

TEST_F(ActionPlansTest, WhatLeavesForARequestThatIsKilledLeavesForTheNext) {
  AddNodes({"a", "b"});
  const JobId victim = Running({Method::kCheckpoint});
  InTheWay(200s);
  const JobId gone = Submit(OnDemand(1, 20s));
  for (int i = 0; i < 20 && State(victim) == JobState::kRunning; ++i) {
    clock_.Advance(1s);
    engine_->Tick();
  }
  ASSERT_EQ(State(victim), JobState::kDumping);
  const JobId stays = Submit(OnDemand(1, 900s));
  const ActionPlan plan = PlanOf(Kill(gone));
  ASSERT_EQ(plan.deadlines.size(), 1);
  EXPECT_EQ(plan.deadlines[0].request, stays);
  ASSERT_TRUE(plan.deadlines[0].after);
  EXPECT_LT(*plan.deadlines[0].after, clock_.Now() + 60s);
}

TEST_F(ActionPlansTest, WhatIsNotKnownIsNotPlannedAsNothing) {
  AddNodes({"a"});
  cluster_.memory = 0;
  const JobId job = InTheWay(60s);
  const JobId request = Submit(OnDemand(1, 600s));
  const ActionPlan plan = PlanOf(Hand(job, HandVerb::kVacate));
  EXPECT_EQ(plan.done, Time{});
  EXPECT_TRUE(plan.deadlines.empty());
  EXPECT_EQ(plan.left_out, std::vector{request});
}

TEST_F(ActionPlansTest, DeadlinesOfOthersTakeNoPlace) {
  AddNodes({"a", "b", "c", "d", "e"});
  static_assert(kMostDeadlines == 4);
  JobSpec spec = Batch(1, {});
  spec.walltime = 60s;
  const JobId job = Submit(spec, kBob);
  for (size_t i = 0; i < kMostDeadlines; ++i) Submit(spec);
  Settle();
  for (size_t i = 0; i < kMostDeadlines; ++i) Submit(OnDemand(1, 600s));
  const JobId request = Submit(OnDemand(1, 900s), kBob);
  const ActionPlan plan = PlanOf(Kill(job), kBob);
  ASSERT_EQ(plan.deadlines.size(), 1);
  EXPECT_EQ(plan.deadlines[0].request, request);
  EXPECT_TRUE(plan.left_out.empty());
  const ActionPlan all = PlanOf(Kill(job));
  EXPECT_EQ(all.deadlines.size(), kMostDeadlines);
  EXPECT_EQ(all.left_out, std::vector{request});
}

// ---- What nobody knows. ----

TEST_F(ActionPlansTest, ASuspendOfWhatIsOnGpusIsKnownByTheirRates) {
  cluster_.AddNode("a", 4, 1);
  cluster_.gpu_memory = 1'000'000'000;  // to be moved at 1 GB/s
  JobSpec spec = Batch();
  spec.per_node.gpus = 1;
  const JobId job = Submit(spec);
  Settle();
  const ActionPlan plan = PlanOf(Hand(job, HandVerb::kSuspend));
  EXPECT_EQ(plan.done - plan.made, 1s);
  EXPECT_DOUBLE_EQ(plan.loss_node_seconds, 2);
  cluster_.gpu_bytes_per_second = 0;
  cluster_.Heartbeat("a");
  EXPECT_EQ(PlanOf(Hand(job, HandVerb::kSuspend)).done, Time{});
}

TEST_F(ActionPlansTest, NobodyKnowsWhenAJobEndsWhoseNodeIsAway) {
  AddNodes({"a"});
  const JobId job = Running();
  cluster_.Disconnect("a");
  const ActionPlan plan = PlanOf(Kill(job));
  EXPECT_EQ(plan.done, Time{});
  EXPECT_GT(plan.loss_node_seconds, 0);
}

TEST_F(ActionPlansTest, NobodyKnowsWhenAnOrderBeginsThatWaitsForASaveThatIsLate) {
  AddNodes({"a"});
  cluster_.memory = 1'000'000'000;  // to be written at 1 GB/s
  const JobId job = Running();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  ActionPlan plan = PlanOf(Hand(job, HandVerb::kSuspend));
  EXPECT_EQ(plan.begins - plan.made, 1s);
  EXPECT_EQ(plan.done - plan.made, 1s);
  clock_.Advance(5s);
  plan = PlanOf(Hand(job, HandVerb::kSuspend));
  EXPECT_EQ(plan.begins, Time{});
  EXPECT_EQ(plan.done, Time{});
}

TEST_F(ActionPlansTest, NobodyKnowsWhenAJobEndsThatIsBeingEndedAlready) {
  AddNodes({"a"});
  const JobId job = Running();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  EXPECT_EQ(PlanOf(Kill(job)).done, Time{});
}

// ---- Orders that rest on a plan. ----

TEST_F(ActionPlansTest, AnOrderIsGivenIfNothingHasChanged) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kVacate)).seq;
  EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared, seq).ok());
}

TEST_F(ActionPlansTest, ACheckpointOnScheduleOfItsJobDoesNotMatter) {
  AddNodes({"a", "b"});
  JobSpec spec = Batch();
  spec.checkpoint_interval = 10s;
  const JobId job = Submit(spec);
  Settle();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kVacate)).seq;
  Settle(15);
  ASSERT_EQ(Job(job).checkpoint_count, 1);
  EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kShared, seq).ok());
}

TEST_F(ActionPlansTest, NotIfItsJobHasMovedOn) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kVacate)).seq;
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  const absl::Status refused = engine_->Vacate(kAda, job, Tier::kShared, seq);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("what was planned does not hold any more, and nothing was done: job 1: checkpoint 1.1"));
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(ActionPlansTest, NotIfARequestWasPlannedMeanwhile) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Kill(job)).seq;
  Submit(OnDemand(1));
  EXPECT_THAT(std::string(engine_->Kill(kAda, job, seq).message()),
              HasSubstr("the plans of requests with deadlines have changed"));
}

TEST_F(ActionPlansTest, NotIfANodeWasCordonedMeanwhile) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  EXPECT_THAT(std::string(engine_->Suspend(kAda, job, seq).message()), HasSubstr("node b takes nothing new"));
}

TEST_F(ActionPlansTest, NotIfItsTargetWasTaken) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kMigrate)).seq;
  Running();
  for (const std::vector<NodeId>& target : {std::vector<NodeId>{}, {NodeId("b")}})
    EXPECT_THAT(std::string(engine_->Migrate(kAda, job, target, seq).message()),
                HasSubstr("what runs on these nodes has changed"));
}

TEST_F(ActionPlansTest, NotIfNodesWereFreedMeanwhileWhereItMayGoAnywhere) {
  AddNodes({"a", "b", "c"});
  const JobId job = Running(), other = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kMigrate)).seq;
  ASSERT_TRUE(engine_->Kill(kAda, other).ok());
  Settle();
  EXPECT_THAT(std::string(engine_->Migrate(kAda, job, {}, seq).message()),
              HasSubstr("what runs on these nodes has changed"));
  EXPECT_TRUE(engine_->Migrate(kAda, job, {NodeId("c")}, seq).ok());
}

TEST_F(ActionPlansTest, NotIfARequestHasGoneMeanwhile) {
  AddNodes({"a", "b"});
  const JobId job = InTheWay(60s);
  InTheWay(60s);
  const JobId request = Submit(OnDemand(1, 600s));
  const int64_t seq = PlanOf(Kill(job)).seq;
  ASSERT_TRUE(engine_->Kill(kAda, request).ok());
  EXPECT_THAT(std::string(engine_->Kill(kAda, job, seq).message()),
              HasSubstr("the plans of requests with deadlines have changed"));
}

TEST_F(ActionPlansTest, NotIfARequestWasUpdatedMeanwhile) {
  AddNodes({"a", "b"});
  const JobId job = InTheWay(60s);
  InTheWay(60s);
  JobSpec spec = OnDemand(1, 600s);
  spec.walltime = 60s;
  const JobId request = Submit(spec);
  const int64_t seq = PlanOf(Kill(job)).seq;
  JobChange change;
  change.walltime = 30s;
  ASSERT_TRUE(engine_->Update(kAda, request, change).ok());
  EXPECT_THAT(std::string(engine_->Kill(kAda, job, seq).message()),
              HasSubstr("the plans of requests with deadlines have changed"));
}

TEST_F(ActionPlansTest, NotIfAnotherJobCameToItsNodes) {
  AddNodes({"a"});
  JobSpec half = Batch();
  half.per_node.slots = 2;
  const JobId job = Submit(half);
  Settle();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  Submit(half);
  Settle();
  EXPECT_THAT(std::string(engine_->Suspend(kAda, job, seq).message()),
              HasSubstr("what runs on these nodes has changed"));
}

TEST_F(ActionPlansTest, NotIfThePolicyWasLoadedAgain) {
  AddNodes({"a"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  engine_->SetPolicy(policy_);
  EXPECT_THAT(std::string(engine_->Suspend(kAda, job, seq).message()),
              HasSubstr("the policy has been loaded again"));
}

TEST_F(ActionPlansTest, ButIfItWasLoadedBefore) {
  AddNodes({"a"});
  const JobId job = Running();
  engine_->SetPolicy(policy_);
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  EXPECT_TRUE(engine_->Suspend(kAda, job, seq).ok());
}

TEST_F(ActionPlansTest, ACheckpointOfAnotherJobThereDoesNotMatter) {
  AddNodes({"a"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Cordon("a")).seq;
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true, seq).ok());
}

TEST_F(ActionPlansTest, APlanOfLongAgoIsNotLookedThrough) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  for (int i = 0; i <= 10000; ++i) ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), i % 2 == 0).ok());
  EXPECT_THAT(std::string(engine_->Suspend(kAda, job, seq).message()), HasSubstr("10001 events old"));
}

TEST_F(ActionPlansTest, LookingThroughThemIsCounted) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  policy_.max_requests_per_hour = 4;  // one of which was the job's submission
  engine_->SetPolicy(policy_);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(absl::IsFailedPrecondition(i == 0 ? engine_->Suspend(kAda, job, seq)
                                                  : engine_->Kill(kAda, job, seq)));
  EXPECT_TRUE(absl::IsResourceExhausted(engine_->Suspend(kAda, job, seq)));
  EXPECT_TRUE(absl::IsResourceExhausted(engine_->Kill(kAda, job, seq)));
  EXPECT_TRUE(engine_->Kill(kAda, job).ok());
}

TEST_F(ActionPlansTest, WhatOthersDoElsewhereDoesNotMatter) {
  AddNodes({"a", "b"});
  const JobId job = Running();
  const int64_t seq = PlanOf(Hand(job, HandVerb::kSuspend)).seq;
  Running();
  EXPECT_TRUE(engine_->Suspend(kAda, job, seq).ok());
}

TEST_F(ActionPlansTest, NotIfANewJobRunsOnTheNode) {
  AddNodes({"a"});
  const int64_t seq = PlanOf(Cordon("a")).seq;
  Running();
  EXPECT_THAT(std::string(engine_->Cordon(kRoot, NodeId("a"), true, seq).message()),
              HasSubstr("what runs on these nodes has changed"));
}

TEST_F(ActionPlansTest, ASequenceThatThereHasNotBeenIsNone) {
  AddNodes({"a"});
  const JobId job = Running();
  for (const int64_t seq : {int64_t{-1}, int64_t{1000}})
    EXPECT_TRUE(absl::IsInvalidArgument(engine_->Kill(kAda, job, seq)));
}

}  // namespace
}  // namespace siding
