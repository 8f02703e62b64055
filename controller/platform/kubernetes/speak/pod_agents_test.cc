#include "controller/platform/kubernetes/speak/pod_agents.h"

#include "controller/platform/kubernetes/speak/heard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const TaskId kTask{JobId(7), 1, 0};

class PodAgentsTest : public testing::Test {
 protected:
  PodAgentsTest() {
    agents_.SetEngine(heard_);
    now_.nodes = {kNode};
    now_.machines = {{kNode, "uid-n1", Resources{4000, Bytes{1 << 30}, 0}}};
  }
  void AddPod(bool started = true) {
    JobSpec spec;
    spec.name = "a";
    spec.cluster_manager = "kubernetes";
    spec.methods = {Method::kKill};
    spec.per_node = {1000, Bytes{1 << 20}, 0};
    PodTask task{kTask, kNode, {"d", "a"}, "uid-a", {}, {}, spec, "", {}};
    if (started) task.started = Time(std::chrono::seconds(9));
    now_.tasks = {task};
  }
  std::vector<Eviction> Round() {
    agents_.Round(now_, time_);
    return agents_.Unwanted(now_, time_);
  }
  void Order(const std::function<void(v1::ToAgent&)>& fill) {
    v1::ToAgent command;
    command.set_op(300);
    command.mutable_task()->set_job(kTask.job.value());
    command.mutable_task()->set_incarnation(kTask.incarnation);
    fill(command);
    agents_.Send(kNode, command);
  }
  void Kill() {
    Order([](v1::ToAgent& command) { command.mutable_kill(); });
  }
  void Forget() {
    Order([](v1::ToAgent& command) { command.mutable_forget(); });
  }
  // It runs, and the engine has heard so.
  void RunPod() {
    AddPod();
    Round();
    heard_.reports.clear();
  }

  OrdersHeard others_;
  PodAgents agents_{others_, std::chrono::seconds(5)};
  Heard heard_;
  ClusterNow now_;
  Time time_{std::chrono::seconds(1000)};
};

// It would know nothing of the pods there, and would say of each that it is lost.
TEST_F(PodAgentsTest, AnAgentOfANodeOfTheClusterIsRefused) {
  EXPECT_TRUE(absl::IsUnavailable(agents_.OnConnected(kNode, {})))
      << "it is not known yet whose nodes there are";
  Round();
  EXPECT_TRUE(absl::IsFailedPrecondition(agents_.OnConnected(kNode, {})));
  now_.machines.clear();
  Round();
  EXPECT_TRUE(absl::IsFailedPrecondition(agents_.OnConnected(kNode, {}))) << "it is not ready for a moment";
  EXPECT_TRUE(agents_.OnConnected(NodeId("elsewhere"), {}).ok());
}
TEST_F(PodAgentsTest, AnAgentOfANodeThatHasNotBeenReadyYetIsRefused) {
  now_.machines.clear();
  Round();
  EXPECT_TRUE(absl::IsFailedPrecondition(agents_.OnConnected(kNode, {})));
}
TEST_F(PodAgentsTest, WhatIsTakenBackIsNotUnwantedAnyMore) {
  RunPod();
  Kill();
  const std::vector<Eviction> evictions = Round();
  ASSERT_THAT(evictions, SizeIs(1));
  EXPECT_TRUE(agents_.IsUnwanted(evictions.front()));
  Order([](v1::ToAgent& command) { command.mutable_abort(); });
  EXPECT_FALSE(agents_.IsUnwanted(evictions.front()));
}
TEST_F(PodAgentsTest, WhatIsOrderedAfterTheRoundIsKnownToIt) {
  RunPod();
  Round();
  Kill();
  EXPECT_THAT(agents_.Unwanted(now_, time_), SizeIs(1));
  Order([](v1::ToAgent& command) { command.mutable_abort(); });
  EXPECT_THAT(agents_.Unwanted(now_, time_), IsEmpty());
}
TEST_F(PodAgentsTest, NobodyIsEvictedWhereNobodySpeaks) {
  RunPod();
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
  now_.machines.clear();
  EXPECT_THAT(Round(), IsEmpty());
}
TEST_F(PodAgentsTest, ANodeIsMetWithWhatIsOnIt) {
  AddPod();
  Round();
  EXPECT_THAT(heard_.connected, ElementsAre(kNode));
  EXPECT_EQ(heard_.last_hello.capacity().slots(), 4000);
  ASSERT_EQ(heard_.last_hello.tasks_size(), 1);
  const v1::TaskReport& report = heard_.last_hello.tasks(0);
  EXPECT_EQ(report.phase(), v1::RUNNING);
  EXPECT_EQ(report.started_us(), 9'000'000);
  EXPECT_EQ(report.spec().cluster_manager(), "kubernetes");
  EXPECT_THAT(report.spec().methods(), ElementsAre(v1::KILL));
  EXPECT_THAT(heard_.reports, IsEmpty());
}
TEST_F(PodAgentsTest, ANodeThatIsNotReadyIsGone) {
  RunPod();
  now_.machines.clear();
  Round();
  EXPECT_THAT(heard_.gone, ElementsAre(kNode));
}
TEST_F(PodAgentsTest, ANodeThatWasReplacedIsAnother) {
  RunPod();
  now_.machines[0].uid = "uid-again";
  Round();
  EXPECT_THAT(heard_.gone, ElementsAre(kNode));
  EXPECT_THAT(heard_.connected, ElementsAre(kNode, kNode));
}
TEST_F(PodAgentsTest, ANodeWithAnAgentIsLeftToIt) {
  heard_.refuse = true;
  Round();
  Kill();
  EXPECT_THAT(others_.nodes(), ElementsAre(kNode));
  heard_.refuse = false;
  Round();
  EXPECT_THAT(heard_.connected, ElementsAre(kNode, kNode));
}
TEST_F(PodAgentsTest, ItBeatsAtItsPace) {
  RunPod();
  for (int i = 0; i < 4; ++i) {
    time_ += std::chrono::seconds(2);
    Round();
  }
  ASSERT_THAT(heard_.heartbeats, SizeIs(2));
  EXPECT_EQ(heard_.heartbeats[1].tasks_size(), 1);
}
TEST_F(PodAgentsTest, OnlyWhatChangesIsReported) {
  AddPod(false);
  Round();
  Round();
  EXPECT_THAT(heard_.reports, IsEmpty());
  EXPECT_EQ(heard_.last_hello.tasks(0).phase(), v1::LAUNCHING);
  AddPod();
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::RUNNING);
}

TEST_F(PodAgentsTest, AKillIsAnEvictionUntilThePodIsGone) {
  RunPod();
  EXPECT_THAT(Round(), IsEmpty());
  Kill();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Round(), SizeIs(1));
  EXPECT_EQ(heard_.TheReport().op(), 300) << "it can be taken back";
  now_.tasks.clear();
  EXPECT_THAT(Round(), IsEmpty());
  const v1::TaskReport end = heard_.TheReport();
  EXPECT_EQ(end.phase(), v1::EXITED);
  EXPECT_FALSE(end.own_end());
}
TEST_F(PodAgentsTest, AKillIsTakenBackUntilThePodIsBeingDeleted) {
  RunPod();
  const auto abort = [this] { Order([](v1::ToAgent& command) { command.mutable_abort(); }); };
  Kill();
  Round();
  heard_.reports.clear();
  abort();
  EXPECT_THAT(Round(), IsEmpty());
  EXPECT_EQ(heard_.TheReport().op(), 0);
  Kill();
  Round();
  now_.tasks[0].leaves = true;
  Round();
  heard_.reports.clear();
  abort();
  now_.tasks.clear();
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::EXITED) << "not lost: it has been ended as it was ordered";
}
TEST_F(PodAgentsTest, AlsoOfOneThatOnlyBegins) {
  AddPod(/*started=*/false);
  Round();
  heard_.reports.clear();
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
  EXPECT_EQ(heard_.TheReport().op(), 300);
  heard_.reports.clear();
  Order([](v1::ToAgent& command) { command.mutable_abort(); });
  EXPECT_THAT(Round(), IsEmpty());
  EXPECT_EQ(heard_.TheReport().op(), 0);
}
TEST_F(PodAgentsTest, WhatABudgetForbidsIsSaidAndTriedAgain) {
  RunPod();
  Kill();
  const std::vector<Eviction> evictions = Round();
  ASSERT_THAT(evictions, SizeIs(1));
  heard_.reports.clear();
  for (int i = 0; i < 2; ++i)
    agents_.OnAnswer(evictions[0], absl::FailedPreconditionError("the disruption budget b"));
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.failed_op(), 300);
  EXPECT_EQ(report.error(), "the disruption budget b");
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodAgentsTest, APodThatEndsWhileItIsEvictedHasNotEndedByItself) {
  RunPod();
  Kill();
  Round();
  heard_.reports.clear();
  now_.tasks[0].succeeded = false;
  EXPECT_THAT(Round(), IsEmpty());
  const v1::TaskReport end = heard_.TheReport();
  EXPECT_EQ(end.phase(), v1::EXITED);
  EXPECT_FALSE(end.own_end());
}
TEST_F(PodAgentsTest, OneThatEndsByItselfIsSaidWithItsResult) {
  RunPod();
  now_.tasks[0].succeeded = true;
  Round();
  const v1::TaskReport end = heard_.TheReport();
  EXPECT_EQ(end.phase(), v1::EXITED);
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_TRUE(end.own_end());
}
TEST_F(PodAgentsTest, OneThatSomebodyDeletedIsLost) {
  RunPod();
  now_.tasks.clear();
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::LOST);
}
TEST_F(PodAgentsTest, WhatIsForgottenIsNotSaidAgainWhileThePodIsThere) {
  RunPod();
  now_.tasks[0].succeeded = true;
  Round();
  Forget();
  heard_.reports.clear();
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(heard_.reports, IsEmpty());
  EXPECT_EQ(heard_.heartbeats.back().tasks_size(), 0);
}
TEST_F(PodAgentsTest, AKillOfATaskThatIsNotKnownSaysSo) {
  Round();
  Kill();
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::LOST);
}
TEST_F(PodAgentsTest, AfterARestartAKillIsCarriedOutAgain) {
  PodAgents restarted(others_, std::chrono::seconds(5));
  restarted.SetEngine(heard_);
  AddPod();
  restarted.Round(now_, time_);
  v1::ToAgent command;
  command.mutable_task()->set_job(7);
  command.mutable_task()->set_incarnation(1);
  command.mutable_kill();
  restarted.Send(kNode, command);
  restarted.Round(now_, time_);
  EXPECT_THAT(restarted.Unwanted(now_, time_), SizeIs(1));
}

TEST_F(PodAgentsTest, WhatPodsCannotDoFailsWithTheReason) {
  RunPod();
  Order([](v1::ToAgent& command) { command.mutable_dump(); });
  Round();
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.failed_op(), 300);
  EXPECT_EQ(report.error(), "pods are only evicted in this cluster");
  EXPECT_EQ(report.phase(), v1::RUNNING);
}
TEST_F(PodAgentsTest, OrdersForOtherNodesGoToTheirAgents) {
  Round();
  agents_.Send(NodeId("elsewhere"), v1::ToAgent());
  EXPECT_THAT(others_.nodes(), ElementsAre(NodeId("elsewhere")));
}
TEST_F(PodAgentsTest, AnOrderRingsTheBell) {
  int rung = 0;
  agents_.SetBell([&] { ++rung; });
  Round();
  Kill();
  EXPECT_EQ(rung, 1);
}
TEST_F(PodAgentsTest, WhoLeavesLeavesAllNodes) {
  Round();
  agents_.Leave();
  EXPECT_THAT(heard_.gone, ElementsAre(kNode));
}

}  // namespace
}  // namespace siding::kubernetes
