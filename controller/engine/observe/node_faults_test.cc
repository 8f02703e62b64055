// Nodes on which nothing can be started, for reasons of their own.
#include "controller/engine/observe/node_faults.h"

#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

constexpr char kFull[] = "its state folder /s cannot be written: No space left on device";

class NodeFaultsTest : public EngineTest {
 protected:
  NodeFaultsTest() { AddNodes({"a", "b"}); }

  bool IsFaulty(const std::string& node) { return !Fault(node).empty(); }
  std::string Fault(const std::string& node) {
    std::string why;
    engine_->Read([&](const ClusterState& state) { why = WhyFaulty(state.observed_nodes.at(NodeId(node))); });
    return why;
  }
  void Say(const std::string& node, const std::string& problem) {
    cluster_.problems[node] = problem;
    cluster_.Heartbeat(node);
  }
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const Event& event : engine_->EventsAfter(0, 10000, Duration(0))) {
      if (event.job == JobId() && KindOf(event) == "note") told.push_back(Describe(event));
    }
    return told;
  }
  int StartsOn(const std::string& node, int from = 0) {
    int starts = 0;
    const std::vector<Event> events = engine_->EventsAfter(0, 100000, Duration(0));
    for (size_t i = from; i < events.size(); ++i) {
      const auto* move = std::get_if<JobMoved>(&events[i].body);
      starts += move != nullptr && move->event == JobEvent::kPlace && move->nodes[0] == NodeId(node);
    }
    return starts;
  }
  static JobSpec Small() {
    JobSpec spec = Batch();
    spec.per_node.slots = 1;
    return spec;
  }
};

// ---- What the agent says. ----

TEST_F(NodeFaultsTest, ANodeThatSaysThatItCannotStartJobsGetsNone) {
  Say("a", kFull);
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Submit(Small()));
  Settle();
  for (const JobId job : jobs) EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
  EXPECT_EQ(StartsOn("a"), 0);
}

TEST_F(NodeFaultsTest, ItGetsJobsAgainWithTheHeartbeatThatSaysNothingAgainstIt) {
  Say("a", kFull);
  Submit(Batch());
  const JobId second = Submit(Batch());
  Settle();
  ASSERT_EQ(State(second), JobState::kPending);
  Say("a", "");
  Settle(1);
  EXPECT_EQ(Job(second).nodes, std::vector{NodeId("a")});
}

TEST_F(NodeFaultsTest, WhoWaitsIsToldWhy) {
  Say("a", kFull);
  const JobId job = Submit(Batch(2));
  Settle();
  EXPECT_THAT(engine_->WhyWaits(Job(job)), HasSubstr(absl::StrCat("a gets no jobs: ", kFull)));
}

TEST_F(NodeFaultsTest, ANewAgentSaysSoAtOnce) {
  cluster_.problems["a"] = kFull;
  cluster_.Disconnect("a");
  cluster_.Connect("a");
  EXPECT_TRUE(IsFaulty("a"));
}

TEST_F(NodeFaultsTest, WhatRunsThereRunsOn) {
  const JobId job = Submit(Batch());
  Settle();
  Say("a", kFull);
  Settle(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).incarnation, 1);
}

TEST_F(NodeFaultsTest, RequestsArePlannedWithoutIt) {
  Say("a", kFull);
  EXPECT_FALSE(engine_->DryRun(kBob, OnDemand(2))->feasible);
  Say("a", "");
  EXPECT_TRUE(engine_->DryRun(kBob, OnDemand(2))->feasible);
}

TEST_F(NodeFaultsTest, APlanThatCountsOnItIsMadeAgain) {
  JobSpec spec = OnDemand(1, 600s);
  spec.not_before = clock_.Now() + 300s;
  const JobId request = Submit(spec, kBob);
  Settle();
  ASSERT_EQ(Job(request).plans.back().nodes, std::vector{NodeId("a")});
  Say("a", kFull);
  Settle();
  EXPECT_EQ(Job(request).plans.back().nodes, std::vector{NodeId("b")});
}

TEST_F(NodeFaultsTest, AJobThatIsFrozenThereContinuesThere) {
  const JobId job = Submit(Batch(2, {Method::kSuspend}));
  Settle();
  const JobId express = Submit(OnDemand(2), kBob);
  Settle();
  ASSERT_EQ(State(job), JobState::kSuspended);
  Say("a", kFull);
  cluster_.Exit(express, 0, 0);
  cluster_.Exit(express, 1, 0);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(NodeFaultsTest, NothingIsMigratedThere) {
  Say("b", kFull);
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_THAT(std::string(engine_->Migrate(kAda, job, {NodeId("b")}).message()), HasSubstr("faulty"));
}

TEST_F(NodeFaultsTest, AnEventSaysSoAndAnotherThatItIsOver) {
  Say("a", kFull);
  Say("a", "");
  EXPECT_THAT(Told(),
              testing::ElementsAre(absl::StrCat("node a gets no jobs: ", kFull), "node a gets jobs again"));
}

TEST_F(NodeFaultsTest, WhatTheAgentSaysIsToldThoughStartsHaveSaidSomethingBefore) {
  cluster_.fail_start = {"a"};
  Submit(Batch());
  cluster_.Run();
  Say("a", kFull);
  Say("a", kFull);
  ASSERT_EQ(Told().size(), 2u);
  EXPECT_THAT(Told()[1], HasSubstr(kFull));
}

TEST_F(NodeFaultsTest, OneThatComesAndGoesDoesNotFillTheJournal) {
  for (int i = 0; i < 120; ++i) {
    Say("a", i % 2 == 0 ? kFull : "");
    Settle(1);
  }
  EXPECT_LE(Told().size(), 8u);
}

// ---- What its starts say. ----

TEST_F(NodeFaultsTest, AStartThatFailsThereIsMadeElsewhereAtOnce) {
  cluster_.fail_start = {"a"};
  const JobId job = Submit(Batch());
  Settle(1);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(Job(job).nodes, std::vector{NodeId("b")});
}

TEST_F(NodeFaultsTest, AndThoseBehindItDoNotFail) {
  cluster_.fail_start = {"a"};
  for (int i = 0; i < 12; ++i) {
    cluster_.Exit(Submit(Batch()), 0, 0);
    Settle(1);
    cluster_.Exit(JobId(i + 1), 0, 0);
  }
  EXPECT_LE(StartsOn("a"), 2);
  for (int i = 1; i <= 12; ++i) EXPECT_EQ(State(JobId(i)), JobState::kDone);
}

TEST_F(NodeFaultsTest, ItSaysWhichJobWasTheLastAndWhenOneIsTriedAgain) {
  cluster_.fail_start = {"a"};
  Submit(Batch());
  cluster_.Run();
  EXPECT_EQ(Fault("a"), absl::StrCat("starts fail there, the last that of job 1; one is tried at ",
                                     FormatTime(clock_.Now() + NodeFaults::kFirstPause)));
}

TEST_F(NodeFaultsTest, AfterThePauseOneStartIsTriedAndNotAll) {
  cluster_.Disconnect("b");
  cluster_.fail_start = {"a"};
  for (int i = 0; i < 4; ++i) Submit(Small());
  cluster_.Run();
  const int first = StartsOn("a");
  Settle(7);
  EXPECT_EQ(StartsOn("a"), first + 1);
}

TEST_F(NodeFaultsTest, WhenThatSucceedsTheOthersFollow) {
  cluster_.Disconnect("b");
  cluster_.fail_start = {"a"};
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Submit(Small()));
  cluster_.Run();
  cluster_.fail_start.clear();
  Settle(13);
  for (const JobId job : jobs) EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_FALSE(IsFaulty("a"));
}

TEST_F(NodeFaultsTest, ThePauseGrowsWhenAnotherJobFails) {
  cluster_.Disconnect("b");
  cluster_.fail_start = {"a"};
  Submit(Batch());
  cluster_.Run();
  for (int i = 0; i < 20; ++i) Submit(Batch());
  Settle(3600);
  EXPECT_LE(StartsOn("a"), 20);
  EXPECT_GE(StartsOn("a"), 6);
  cluster_.fail_start.clear();
  Settle(600);
  EXPECT_EQ(State(JobId(1)), JobState::kRunning);
}

TEST_F(NodeFaultsTest, OneJobAloneDoesNotKeepANodeFromOthers) {
  cluster_.Disconnect("b");
  cluster_.bad_jobs = {JobId(1)};
  Submit(Small());
  Settle(3600);
  const JobId other = Submit(Small());
  Settle(12);
  EXPECT_EQ(State(other), JobState::kRunning);
}

TEST_F(NodeFaultsTest, WhatAUserAskedForIsNotTheNodesFault) {
  cluster_.missing_files = {"a", "b"};
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_FALSE(IsFaulty("a"));
}

TEST_F(NodeFaultsTest, ANewAgentHasNotFailedYet) {
  cluster_.fail_start = {"a"};
  Submit(Batch());
  cluster_.Run();
  ASSERT_TRUE(IsFaulty("a"));
  cluster_.Disconnect("a");
  cluster_.Connect("a");
  EXPECT_TRUE(IsFaulty("a")) << "its connection was broken, and that is all";
  cluster_.Disconnect("a");
  cluster_.agents["a"] = "another";
  cluster_.Connect("a");
  EXPECT_FALSE(IsFaulty("a"));
}

TEST_F(NodeFaultsTest, AJobNeverFailsBecauseOfItsNodes) {
  cluster_.fail_start = {"a", "b"};
  const JobId job = Submit(Batch());
  Settle(7200);
  EXPECT_EQ(State(job), JobState::kPending);
  EXPECT_THAT(engine_->WhyWaits(Job(job)),
              testing::AnyOf(HasSubstr("is tried again at"), HasSubstr("gets no jobs")));
  EXPECT_THAT(Job(job).reason, HasSubstr("its disk is full"));
  cluster_.fail_start.clear();
  Settle(1200);
  EXPECT_EQ(State(job), JobState::kRunning);
}

TEST_F(NodeFaultsTest, VictimsDoNotLeaveTwiceForARequestWhoseStartFailsOnce) {
  std::vector<JobId> victims;
  for (int i = 0; i < 2; ++i) victims.push_back(Submit(Batch(1, {Method::kSuspend})));
  Settle();
  cluster_.fail_start = {"a"};
  const JobId request = Submit(OnDemand(2), kBob);
  while (Job(request).start_failures == 0) Settle(1);
  cluster_.fail_start.clear();
  Settle(15);
  EXPECT_EQ(State(request), JobState::kRunning);
  for (const JobId victim : victims) EXPECT_EQ(Job(victim).preemptions, 1) << victim.value();
}

TEST_F(NodeFaultsTest, NobodyMakesWayAgainAndAgainForARequestThatDoesNotStart) {
  AddNodes({"c", "d", "e", "f", "g", "h"});
  std::vector<JobId> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(Submit(Batch(1, {Method::kKill})));
  Settle();
  cluster_.bad_jobs = {JobId(9)};
  const JobId request = Submit(OnDemand(1, 3600s), kBob);
  Settle(3000);
  EXPECT_EQ(State(request), JobState::kPending);
  int victims = 0;
  for (const JobId job : jobs) victims += Job(job).preemptions;
  EXPECT_LE(victims, 5);
  EXPECT_THAT(engine_->WhyWaits(Job(request)), HasSubstr("no more jobs make way for it"));
}

TEST_F(NodeFaultsTest, ARequestThatFailsToStartGetsAnotherNodeInTime) {
  cluster_.fail_start = {"a"};
  const JobId request = Submit(OnDemand(1, 10s), kBob);
  Settle();
  EXPECT_EQ(State(request), JobState::kRunning);
  EXPECT_EQ(Job(request).nodes, std::vector{NodeId("b")});
}

}  // namespace
}  // namespace siding
