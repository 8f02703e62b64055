#include "controller/platform/kubernetes/speak/pod_nodes.h"

#include "controller/platform/kubernetes/speak/heard.h"
#include "controller/wire/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using How = DesiredState::Next::How;

class PodNodesTest : public testing::Test {
 protected:
  PodNodesTest() {
    nodes_.SetEngine(heard_);
    nodes_.SetBell([this] { ++rings_; });
    now_.machines = {{kNode, "uid-n1", Resources{4000, Bytes{1 << 30}, 0}}};
  }
  PodTask& AddPod(int starts = 1, How how = How::kBeginning) {
    PodTask task;
    task.id = {JobId(7), starts, 0};
    task.node = kNode;
    task.pod = {"d", "a"};
    task.uid = absl::StrCat("uid-", starts);
    task.spec.cluster_manager = "kubernetes";
    task.spec.methods = {Method::kCheckpoint};
    task.next.how = how;
    now_.tasks = {task};
    return now_.tasks.front();
  }
  std::vector<Eviction> Round() {
    nodes_.Round(now_, time_);
    return nodes_.Unwanted(now_, time_);
  }
  // Of a round that has one.
  Eviction TheOnlyEviction() {
    const std::vector<Eviction> evictions = Round();
    EXPECT_THAT(evictions, SizeIs(1));
    return evictions.empty() ? Eviction() : evictions.front();
  }
  // The agent says hello, with this task in this phase, if it has one.
  absl::Status Connect(std::optional<v1::TaskPhase> phase = {}) {
    v1::Hello hello;
    hello.mutable_capacity()->set_slots(2);
    if (phase) *hello.add_tasks() = Report(*phase);
    return nodes_.OnConnected(kNode, hello);
  }
  v1::TaskReport Report(v1::TaskPhase phase, int starts = 1) {
    v1::TaskReport report;
    *report.mutable_task() = RefOf({JobId(7), starts, 0});
    report.set_phase(phase);
    report.set_pod_uid(absl::StrCat("uid-", starts));
    return report;
  }
  void Say(const v1::TaskReport& report) {
    v1::FromAgent message;
    *message.mutable_report() = report;
    nodes_.OnMessage(kNode, message);
  }
  void Say(v1::TaskPhase phase, int starts = 1) { Say(Report(phase, starts)); }
  void SayThatItLeaves() {
    v1::TaskReport report = Report(v1::PREPARED);
    report.set_leaves(true);
    Say(report);
  }
  // A connected node with a task that runs.
  void Run() {
    AddPod();
    Round();
    ASSERT_TRUE(Connect().ok());
    Round();
    Say(v1::RUNNING);
    agents_.orders.clear();
    heard_.reports.clear();
  }
  void Kill() {
    v1::ToAgent command;
    *command.mutable_task() = RefOf({JobId(7), 1, 0});
    command.set_op(300);
    command.mutable_kill();
    nodes_.Send(kNode, command);
  }
  void TakeBack() {
    v1::ToAgent command;
    *command.mutable_task() = RefOf({JobId(7), 1, 0});
    command.mutable_abort();
    nodes_.Send(kNode, command);
  }

  void Dump(bool keep_running = false) {
    v1::ToAgent command;
    command.set_op(1'000'100);
    *command.mutable_task() = RefOf({JobId(7), 1, 0});
    command.mutable_dump()->set_keep_running(keep_running);
    nodes_.Send(kNode, command);
  }

  OrdersHeard agents_;
  Heard heard_;
  PodNodes nodes_{agents_};
  ClusterNow now_;
  Time time_{std::chrono::seconds(1000)};
  int rings_ = 0;
};

// ---- Ends that can be taken back. ----

TEST_F(PodNodesTest, AKillGoesToTheAgentWhenThePodIsBeingDeleted) {
  Run();
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
  EXPECT_THAT(agents_.orders, IsEmpty());
  EXPECT_NE(heard_.TheReport().op(), 0);
  now_.tasks[0].leaves = true;
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_kill());
}
TEST_F(PodNodesTest, UntilThenItIsTakenBack) {
  Run();
  Kill();
  Round();
  heard_.reports.clear();
  v1::ToAgent command;
  *command.mutable_task() = RefOf({JobId(7), 1, 0});
  command.mutable_abort();
  nodes_.Send(kNode, command);
  EXPECT_THAT(Round(), IsEmpty());
  EXPECT_THAT(agents_.orders, IsEmpty());
  EXPECT_EQ(heard_.TheReport().op(), 0);
}
// Its agent would have it end, and could not take that back.
TEST_F(PodNodesTest, ItIsTakenBackAlsoFromOneThatOnlyBegins) {
  for (const v1::TaskPhase phase : {v1::LAUNCHING, v1::RESTORING}) {
    Run();
    v1::TaskReport begins = Report(phase);
    begins.set_op(100);
    Say(begins);
    Kill();
    heard_.reports.clear();
    EXPECT_THAT(Round(), SizeIs(1));
    EXPECT_EQ(heard_.TheReport().op(), 300);
    TakeBack();
    heard_.reports.clear();
    EXPECT_THAT(Round(), IsEmpty());
    EXPECT_EQ(heard_.TheReport().op(), 100);
    EXPECT_THAT(agents_.orders, IsEmpty());
  }
}
TEST_F(PodNodesTest, WhatIsTakenBackIsNotUnwantedAnyMore) {
  Run();
  Kill();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(nodes_.IsUnwanted(eviction));
  TakeBack();
  EXPECT_FALSE(nodes_.IsUnwanted(eviction));
}
// Nobody could take it back.
TEST_F(PodNodesTest, NobodyIsUnwantedWhoseAgentHasGoneAway) {
  Run();
  Kill();
  const Eviction eviction = TheOnlyEviction();
  nodes_.OnDisconnected(kNode);
  EXPECT_FALSE(nodes_.IsUnwanted(eviction));
}
// It is frozen for good.
TEST_F(PodNodesTest, WhatIsSavedStaysUnwanted) {
  Run();
  SayThatItLeaves();
  const Eviction eviction = TheOnlyEviction();
  TakeBack();
  EXPECT_TRUE(nodes_.IsUnwanted(eviction));
}
// It may have been taken back meanwhile, and nobody could say so.
TEST_F(PodNodesTest, AKillThatIsHeldEndsWithItsConnection) {
  Run();
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
  nodes_.OnDisconnected(kNode);
  EXPECT_THAT(Round(), IsEmpty());
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  EXPECT_EQ(heard_.last_hello.tasks(0).op(), 0);
  EXPECT_THAT(Round(), IsEmpty());
}
TEST_F(PodNodesTest, AKillThatIsHeldIsOrderedAnew) {
  Run();
  Kill();
  Round();
  nodes_.OnDisconnected(kNode);
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodNodesTest, AKillThatABudgetForbidsHasFailed) {
  Run();
  Kill();
  const std::vector<Eviction> evictions = Round();
  heard_.reports.clear();
  nodes_.OnAnswer(evictions.at(0), absl::FailedPreconditionError("the disruption budget b"));
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.failed_op(), 300);
  EXPECT_THAT(report.error(), testing::HasSubstr("the disruption budget b"));
}

// ---- Agents. ----

TEST_F(PodNodesTest, BeforeThePodsAreKnownAgentsWait) {
  EXPECT_TRUE(absl::IsUnavailable(Connect()));
  EXPECT_THAT(heard_.connected, IsEmpty());
}
TEST_F(PodNodesTest, ANodeThatTheClusterDoesNotHaveIsRefused) {
  now_.machines.clear();
  Round();
  EXPECT_TRUE(absl::IsFailedPrecondition(Connect()));
}
TEST_F(PodNodesTest, ANodeHasWhatItsKubeletGivesToPods) {
  Round();
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(heard_.last_hello.capacity().slots(), 4000);
}
TEST_F(PodNodesTest, WhatTheEngineRefusesIsRefused) {
  Round();
  heard_.refuse = true;
  EXPECT_FALSE(Connect().ok());
  AddPod();
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, ThatItHasGoneIsTold) {
  Round();
  ASSERT_TRUE(Connect().ok());
  nodes_.OnDisconnected(kNode);
  EXPECT_THAT(heard_.gone, ElementsAre(kNode));
}

// ---- Starts. ----

TEST_F(PodNodesTest, AnAgentIsToldOfAPod) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect().ok());
  EXPECT_GT(rings_, 0);
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  const v1::ToAgent& order = agents_.orders.front().second;
  EXPECT_TRUE(order.has_launch());
  EXPECT_EQ(order.pod().uid(), "uid-1");
  EXPECT_EQ(order.op(), 1'000'000);
}
TEST_F(PodNodesTest, FromItsImage) {
  PodTask& pod = AddPod(2, How::kImage);
  pod.next.checkpoint = CheckpointId("kubernetes-7.1");
  pod.next.digest = "abc";
  pod.next.incarnation = 1;
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  const v1::Restore& restore = agents_.orders.front().second.restore();
  EXPECT_EQ(restore.checkpoint(), "kubernetes-7.1");
  EXPECT_EQ(restore.image_digest(), "abc");
  EXPECT_EQ(restore.image_incarnation(), 1);
}
TEST_F(PodNodesTest, AlsoWhereTheNextPodCannotBeSaved) {
  PodTask& pod = AddPod(2, How::kImage);
  pod.next.checkpoint = CheckpointId("7.1");
  pod.not_saved = "its volume is a folder of its node";
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_restore());
  EXPECT_THAT(heard_.last_hello.tasks(), IsEmpty()) << "it does not run yet";
}
TEST_F(PodNodesTest, NotBeforeItIsDecidedHow) {
  AddPod(2, How::kNotYet);
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, NotTwiceWhereTheAgentKnowsOfIt) {
  Run();
  time_ += std::chrono::minutes(1);
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, NotTwiceAfterTheControllerHasBegunAnew) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, AgainIfNothingIsHeardOfIt) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(1));
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(2));
}
TEST_F(PodNodesTest, APodThatIsDeletedBeforeItIsATaskIsRefused) {
  AddPod(2, How::kNotYet);
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
  now_.tasks.front().leaves = true;
  Round();
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_refuse_start());
  EXPECT_EQ(agents_.orders.front().second.pod().uid(), now_.tasks.front().uid);
}
TEST_F(PodNodesTest, NotOneThatItsAgentMayHaveMadeATaskAlready) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  agents_.orders.clear();
  now_.tasks.front().leaves = true;
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, APodThatIsOverIsNotStarted) {
  AddPod().succeeded = true;
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, APodThatTheClusterHasEndedIsNotStarted) {
  AddPod().disrupted = true;
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, APodThatIsNoTaskIsLetStartOnceAConnection) {
  now_.plain = {{kNode, {"d", "web"}, "uid-web"}};
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_let_start());
  EXPECT_EQ(agents_.orders.front().second.pod().uid(), "uid-web");
  nodes_.OnDisconnected(kNode);
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(2));
}

// ---- What the engine hears. ----

TEST_F(PodNodesTest, WhoseTaskItIs) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect().ok());
  Say(v1::RUNNING);
  EXPECT_EQ(heard_.TheReport().spec().cluster_manager(), "kubernetes");
}
TEST_F(PodNodesTest, AlsoInHellosAndHeartbeats) {
  AddPod();
  Round();
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  EXPECT_EQ(heard_.last_hello.tasks(0).spec().cluster_manager(), "kubernetes");
  v1::FromAgent message;
  *message.mutable_heartbeat()->add_tasks() = Report(v1::RUNNING);
  nodes_.OnMessage(kNode, message);
  EXPECT_EQ(heard_.heartbeats.back().tasks(0).spec().cluster_manager(), "kubernetes");
}
TEST_F(PodNodesTest, OrdersGoToTheAgent) {
  Run();
  v1::ToAgent command;
  *command.mutable_task() = RefOf({JobId(7), 1, 0});
  command.mutable_suspend();
  nodes_.Send(kNode, command);
  EXPECT_THAT(agents_.orders, SizeIs(1));
}

// ---- Ends. ----

TEST_F(PodNodesTest, OneThatIsKilledIsEvictedWithItsGrace) {
  Run();
  Kill();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_EQ(eviction.uid, "uid-1");
  EXPECT_FALSE(eviction.at_once);
}
TEST_F(PodNodesTest, OneThatIsSavedIsEvictedAtOnce) {
  Run();
  SayThatItLeaves();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(eviction.at_once);
}
TEST_F(PodNodesTest, OneThatIsSavedAndWasFoundAgainIsEvictedToo) {
  AddPod();
  Round();
  v1::Hello hello;
  *hello.add_tasks() = Report(v1::PREPARED);
  hello.mutable_tasks(0)->set_leaves(true);
  ASSERT_TRUE(nodes_.OnConnected(kNode, hello).ok());
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodNodesTest, TheAgentIsToldThatThePodIsGone) {
  Run();
  now_.tasks.clear();
  EXPECT_THAT(Round(), IsEmpty());
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
  EXPECT_FALSE(agents_.orders.front().second.pod_gone().has_exit_code());
}
TEST_F(PodNodesTest, AlsoOfOneThatWentWhileNobodyLooked) {
  Round();
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
}
TEST_F(PodNodesTest, AndHowItEnded) {
  Run();
  now_.tasks.front().succeeded = false;
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_EQ(agents_.orders.front().second.pod_gone().exit_code(), 1);
}
TEST_F(PodNodesTest, AndThatTheClusterHasEndedItIsNoExitCode) {
  Run();
  now_.tasks.front().disrupted = true;
  EXPECT_THAT(Round(), IsEmpty());
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
  EXPECT_FALSE(agents_.orders.front().second.pod_gone().has_exit_code());
}
TEST_F(PodNodesTest, OneThatTheClusterHasEndedIsNotEvicted) {
  Run();
  Kill();
  now_.tasks.front().disrupted = true;
  EXPECT_THAT(Round(), IsEmpty());
}
TEST_F(PodNodesTest, AlsoOneThatFailsWhenItIsDeletedAfterItWasSaved) {
  Run();
  SayThatItLeaves();
  now_.tasks.front().failed_deleted = true;
  now_.tasks.front().leaves = true;
  EXPECT_TRUE(TheOnlyEviction().at_once);
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(PodNodesTest, OfOneThatTheClusterHasEndedItsAgentIsToldAtOnceAlthoughItIsSaved) {
  Run();
  SayThatItLeaves();
  now_.tasks.front().disrupted = true;
  now_.tasks.front().leaves = true;
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
}
TEST_F(PodNodesTest, OneThatFailsWhenItIsSavedIsRemovedBeforeItsAgentIsTold) {
  Run();
  SayThatItLeaves();
  now_.tasks.front().succeeded = false;
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(eviction.at_once);
  EXPECT_THAT(agents_.orders, IsEmpty());
  now_.tasks.clear();
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_FALSE(agents_.orders.front().second.pod_gone().has_exit_code());
}
TEST_F(PodNodesTest, UntilItSaysSo) {
  Run();
  now_.tasks.clear();
  Round();
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(2));
  Say(v1::LOST);
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(2));
}
TEST_F(PodNodesTest, APodThatIsNoTaskAnyMoreRunsOn) {
  Run();
  now_.plain = {{kNode, {"d", "a"}, "uid-1", true}};
  now_.tasks.clear();
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(2));
  EXPECT_TRUE(agents_.orders.front().second.pod_gone().stays());
  EXPECT_TRUE(agents_.orders.back().second.has_let_start());
}
TEST_F(PodNodesTest, AlsoWhenItIsToldAgain) {
  Run();
  now_.plain = {{kNode, {"d", "a"}, "uid-1", false}};
  now_.tasks.clear();
  Round();
  time_ += std::chrono::seconds(5);
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(2));
  EXPECT_TRUE(agents_.orders.back().second.pod_gone().stays());
}
TEST_F(PodNodesTest, AlsoWhenThatHappenedWhileNobodyLooked) {
  now_.plain = {{kNode, {"d", "a"}, "uid-1", false}};
  Round();
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.pod_gone().stays());
}
TEST_F(PodNodesTest, OneThatIsSavedGoesAllTheSame) {
  Run();
  SayThatItLeaves();
  now_.plain = {{kNode, {"d", "a"}, "uid-1", true}};
  now_.tasks.clear();
  EXPECT_THAT(Round(), SizeIs(1));
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodNodesTest, AlsoOneWhoseImageWasWrittenMeanwhile) {
  Run();
  now_.plain = {{kNode, {"d", "a"}, "uid-1", true}};
  now_.tasks.clear();
  Round();
  SayThatItLeaves();
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodNodesTest, OneThatItsAgentKnowsIsNotTakenFromIt) {
  Run();
  now_.tasks.front().not_saved = "it has no owner";
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
  Say(v1::RUNNING);
  EXPECT_EQ(heard_.TheReport().cannot_checkpoint(), "it has no owner");
}
TEST_F(PodNodesTest, NorWhenItIsFoundAgain) {
  AddPod().not_saved = "it has no owner";
  Round();
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  EXPECT_THAT(heard_.last_hello.tasks(), SizeIs(1));
  Round();
  EXPECT_THAT(heard_.reports, IsEmpty());
}

// ---- Pods that came in the place of others before their start was recorded, and have their number. ----

// An agent starts nothing of a name that it has.
TEST_F(PodNodesTest, AnotherPodOfTheSameNumberIsStartedWhenTheFirstIsGone) {
  Run();
  now_.tasks.front().uid = "uid-other";
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
  agents_.orders.clear();
  Say(v1::LOST);
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_EQ(agents_.orders.front().second.pod().uid(), "uid-other");
}
TEST_F(PodNodesTest, AlsoWhereTheFirstWentWhileNobodyLooked) {
  AddPod().uid = "uid-other";
  Round();
  ASSERT_TRUE(Connect(v1::RESTORING).ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(agents_.orders, SizeIs(2)) << "it is told again";
}
TEST_F(PodNodesTest, OnAnotherNodeItIsStartedAtOnce) {
  const NodeId other("n2");
  now_.machines.push_back({other, "uid-n2", Resources{4000, Bytes{1 << 30}, 0}});
  Run();
  ASSERT_TRUE(nodes_.OnConnected(other, {}).ok());
  now_.tasks.front().uid = "uid-other";
  now_.tasks.front().node = other;
  Round();
  ASSERT_THAT(agents_.nodes(), ElementsAre(other, kNode));
  EXPECT_TRUE(agents_.orders.front().second.has_launch());
  EXPECT_TRUE(agents_.orders.back().second.has_pod_gone());
  Kill();
  EXPECT_THAT(Round(), IsEmpty()) << "what is ordered of the first is not for the second";
}
// The engine knows only one of that name, and would take the first for the second.
TEST_F(PodNodesTest, OfTheFirstTheEngineHearsOnlyItsEnd) {
  Run();
  now_.tasks.front().uid = "uid-other";
  Round();
  Say(v1::RUNNING);
  EXPECT_THAT(heard_.reports, IsEmpty());
  v1::FromAgent message;
  *message.mutable_heartbeat()->add_tasks() = Report(v1::RUNNING);
  *message.mutable_heartbeat()->add_tasks() = Report(v1::RUNNING, 2);
  nodes_.OnMessage(kNode, message);
  ASSERT_THAT(heard_.heartbeats.back().tasks(), SizeIs(1));
  EXPECT_EQ(heard_.heartbeats.back().tasks(0).task().incarnation(), 2);
  ASSERT_TRUE(Connect(v1::RUNNING).ok());
  EXPECT_THAT(heard_.last_hello.tasks(), IsEmpty());
  Say(v1::LOST);
  EXPECT_EQ(heard_.TheReport().phase(), v1::LOST);
}
TEST_F(PodNodesTest, OneThatIsThereIsNotSaidToBeGone) {
  Run();
  PodTask first = now_.tasks.front();
  first.id.incarnation = 9;
  now_.tasks.front().uid = "uid-other";
  now_.tasks.push_back(first);
  Round();
  for (const auto& [node, order] : agents_.orders) EXPECT_FALSE(order.has_pod_gone());
}

// ---- Pods in the place of others whose start was not recorded. ----

// Of a job that has been started once, as is recorded.
class NextPodTest : public PodNodesTest {
 protected:
  NextPodTest() {
    now_.machines.push_back({kOther, "uid-n2", Resources{4000, Bytes{1 << 30}, 0}});
    AddPod(2, How::kImage).next.starts = 1;
    Round();
    EXPECT_TRUE(nodes_.OnConnected(kOther, {}).ok());
  }
  // The first one is being deleted, and another has come in its place, on another node.
  void Replace() {
    PodTask first = now_.tasks.front();
    first.leaves = true;
    AddPod(3, How::kImage).next.starts = 1;
    now_.tasks.front().node = kOther;
    now_.tasks.push_back(first);
    agents_.orders.clear();
    Round();
  }
  void FirstIsGone() {
    now_.tasks.pop_back();
    Round();
  }
  // The uids of the pods that agents were to start.
  std::vector<std::string> Started() {
    std::vector<std::string> started;
    for (const auto& [node, order] : agents_.orders) {
      if (order.has_restore()) started.push_back(order.pod().uid());
    }
    return started;
  }

  const NodeId kOther{"n2"};
};

TEST_F(NextPodTest, ItWaitsWhileTheFirstIsRestored) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Say(v1::RESTORING, 2);
  Replace();
  EXPECT_THAT(Started(), IsEmpty());
  Say(v1::RUNNING, 2);
  Round();
  EXPECT_THAT(Started(), IsEmpty());
  FirstIsGone();
  EXPECT_THAT(Started(), IsEmpty()) << "its agent is to say that nothing of it is left";
  Say(v1::LOST, 2);
  Round();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(NextPodTest, ItStartsWhileTheObjectOfTheFirstStaysThough) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Say(v1::RUNNING, 2);
  Replace();
  now_.tasks.back().failed_deleted = true;
  agents_.orders.clear();
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_pod_gone());
  Say(v1::LOST, 2);
  Round();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(NextPodTest, AlsoWhereTheFirstMayHaveBeenTold) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Replace();
  time_ += std::chrono::seconds(5);
  Round();
  EXPECT_THAT(Started(), IsEmpty());
  FirstIsGone();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(NextPodTest, WhatTheFirstIsNotToldIsNotWaitedFor) {
  ASSERT_TRUE(Connect().ok());
  Replace();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
// An earlier controller may have told its agent.
TEST_F(NextPodTest, WhileItsAgentIsAwayThatIsNotKnown) {
  Replace();
  EXPECT_THAT(Started(), IsEmpty());
  ASSERT_TRUE(Connect().ok());
  Round();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(NextPodTest, KubernetesHasLetGoOfTheFirstWhileItsAgentIsAway) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Say(v1::RESTORING, 2);
  nodes_.OnDisconnected(kNode);
  Replace();
  EXPECT_THAT(Started(), IsEmpty());
  FirstIsGone();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(NextPodTest, AFirstThatCouldNotBeRestoredDoesNotLive) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Say(v1::RESTORE_FAILED, 2);
  Replace();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
// Of a start that is recorded the engine says when the next may begin.
TEST_F(NextPodTest, WhatTheEngineKnowsIsTheEnginesToDecide) {
  ASSERT_TRUE(Connect().ok());
  Round();
  Say(v1::RESTORING, 2);
  Replace();
  now_.tasks.front().next.starts = 2;
  Round();
  EXPECT_THAT(Started(), ElementsAre("uid-3"));
}
TEST_F(PodNodesTest, APodThatIsBeingDeletedIsNotStarted) {
  AddPod().leaves = true;
  Round();
  ASSERT_TRUE(Connect().ok());
  Round();
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_refuse_start());
}

// ---- Budgets. ----

TEST_F(PodNodesTest, BeforeItIsSavedToLeaveItIsAskedWhetherItCould) {
  Run();
  Dump();
  const auto asked = Round();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_TRUE(asked.front().only_ask);
  EXPECT_THAT(agents_.orders, IsEmpty());
  nodes_.OnAnswer(asked.front(), absl::OkStatus());
  ASSERT_THAT(agents_.orders, SizeIs(1));
  EXPECT_TRUE(agents_.orders.front().second.has_dump());
  EXPECT_THAT(Round(), IsEmpty());
}
TEST_F(PodNodesTest, OneThatABudgetKeepsIsNotSavedToLeave) {
  Run();
  Dump();
  nodes_.OnAnswer(Round().front(), absl::FailedPreconditionError("the budget b"));
  EXPECT_THAT(agents_.orders, IsEmpty());
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.phase(), v1::RUNNING);
  EXPECT_EQ(report.failed_op(), 1'000'100);
  EXPECT_EQ(report.error(), "it may not leave: the budget b");
  Say(v1::RUNNING);  // a heartbeat later
  EXPECT_EQ(heard_.TheReport().failed_op(), 1'000'100);
}
TEST_F(PodNodesTest, WithoutAnAnswerItIsAskedAgain) {
  Run();
  Dump();
  nodes_.OnAnswer(Round().front(), absl::UnavailableError("no server"));
  EXPECT_THAT(agents_.orders, IsEmpty());
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(PodNodesTest, WhatIsCalledOffMeanwhileIsNotAsked) {
  Run();
  Dump();
  v1::ToAgent command;
  *command.mutable_task() = RefOf({JobId(7), 1, 0});
  command.mutable_abort();
  nodes_.Send(kNode, command);
  EXPECT_THAT(Round(), IsEmpty());
}
TEST_F(PodNodesTest, OneThatStaysIsSavedWithoutAsking) {
  Run();
  Dump(true);
  EXPECT_THAT(agents_.orders, SizeIs(1));
  EXPECT_THAT(Round(), IsEmpty());
}

TEST_F(PodNodesTest, NoBudgetKeepsWhatIsSavedAndLeaves) {
  Run();
  SayThatItLeaves();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(eviction.saved);
  EXPECT_TRUE(eviction.at_once);
}
TEST_F(PodNodesTest, ABudgetKeepsWhatRuns) {
  Run();
  Kill();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_FALSE(eviction.saved);
}
TEST_F(PodNodesTest, ABudgetKeepsWhatCouldNotBeRestored) {
  Run();
  Say(v1::RESTORE_FAILED);
  Round();
  time_ += std::chrono::seconds(2);
  const Eviction eviction = TheOnlyEviction();
  EXPECT_FALSE(eviction.saved);
}
TEST_F(PodNodesTest, ThatItLeavesIsNotBelievedOfAnAgentThatHasForgottenIt) {
  Run();
  SayThatItLeaves();
  ASSERT_TRUE(Connect().ok());
  for (const Eviction& eviction : Round()) EXPECT_FALSE(eviction.saved);
}

// ---- Those that cannot be started. ----

TEST_F(PodNodesTest, OneThatCouldNotBeRestoredIsEvictedAfterAPause) {
  Run();
  Say(v1::RESTORE_FAILED);
  EXPECT_THAT(Round(), IsEmpty());
  time_ += std::chrono::seconds(2);
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(eviction.at_once);
}
TEST_F(PodNodesTest, AfterTheNextOneALongerPause) {
  Run();
  Say(v1::RESTORE_FAILED);
  Round();
  AddPod(2);
  Round();
  Say(v1::RESTORE_FAILED, 2);
  Round();
  time_ += std::chrono::seconds(2);
  EXPECT_THAT(Round(), IsEmpty());
  time_ += std::chrono::seconds(2);
  EXPECT_THAT(Round(), SizeIs(1));
}

TEST_F(PodNodesTest, OneThatCouldNotBeRestoredIsEvictedByALaterControllerToo) {
  AddPod(2, How::kNotYet).start_is_over = true;  // of which its agent knows nothing any more
  Round();
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Round(), IsEmpty());
  time_ += std::chrono::seconds(2);
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(eviction.at_once);
}

// ---- Pods that no agent can save. ----

class OtherPodTest : public PodNodesTest {
 protected:
  void SetUp() override {
    AddPod().not_saved = "it has GPUs";
    now_.tasks.front().started = time_;
    Round();
    ASSERT_TRUE(Connect().ok());
  }
};

TEST_F(OtherPodTest, TheEngineIsToldWhy) {
  EXPECT_EQ(heard_.last_hello.tasks(0).cannot_checkpoint(), "it has GPUs");
}
TEST_F(OtherPodTest, ItsAgentIsToldNothing) {
  Round();
  Kill();
  Round();
  EXPECT_THAT(agents_.orders, IsEmpty());
}
TEST_F(OtherPodTest, WhatIsTakenBackIsNotUnwantedAnyMore) {
  Kill();
  const Eviction eviction = TheOnlyEviction();
  EXPECT_TRUE(nodes_.IsUnwanted(eviction));
  TakeBack();
  EXPECT_FALSE(nodes_.IsUnwanted(eviction));
}
TEST_F(OtherPodTest, ItIsNotUnwantedWhenItsAgentHasGoneAway) {
  Kill();
  const Eviction eviction = TheOnlyEviction();
  nodes_.OnDisconnected(kNode);
  EXPECT_FALSE(nodes_.IsUnwanted(eviction));
}
TEST_F(OtherPodTest, ItCanBeEvicted) {
  Kill();
  Round();
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(OtherPodTest, NotWhileItsAgentIsAway) {
  Kill();
  EXPECT_THAT(Round(), SizeIs(1));
  nodes_.OnDisconnected(kNode);
  EXPECT_THAT(Round(), IsEmpty());
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(heard_.last_hello.tasks(0).op(), 300) << "it can be taken back";
  EXPECT_THAT(Round(), SizeIs(1));
}
TEST_F(OtherPodTest, ThatABudgetKeepsItIsTold) {
  Kill();
  const Eviction eviction = TheOnlyEviction();
  heard_.reports.clear();
  nodes_.OnAnswer(eviction, absl::UnavailableError("no server"));
  EXPECT_THAT(heard_.reports, IsEmpty());
  nodes_.OnAnswer(eviction, absl::FailedPreconditionError("the disruption budget b"));
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.failed_op(), 300);
  EXPECT_EQ(report.error(), "the disruption budget b");
}
TEST_F(OtherPodTest, ThatTheClusterHasEndedItIsTold) {
  Round();
  heard_.reports.clear();
  now_.tasks.front().disrupted = true;
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::LOST);
}
TEST_F(OtherPodTest, ThatItWasEndedAsOrderedIsTold) {
  Kill();
  Round();
  heard_.reports.clear();
  now_.tasks.front().disrupted = true;
  Round();
  const v1::TaskReport report = heard_.TheReport();
  EXPECT_EQ(report.phase(), v1::EXITED);
  EXPECT_EQ(report.exit_code(), 143);
}
TEST_F(OtherPodTest, ItsEndIsTold) {
  Round();
  heard_.reports.clear();
  now_.tasks.clear();
  Round();
  EXPECT_EQ(heard_.TheReport().phase(), v1::LOST);
}

}  // namespace
}  // namespace siding::kubernetes
