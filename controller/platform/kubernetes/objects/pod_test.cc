#include "controller/platform/kubernetes/objects/pod.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/objects/node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

Object Made(const std::string& text) {
  auto object = ObjectFrom(*ParseJson(text));
  EXPECT_TRUE(object.ok()) << object.status();
  return *object;
}
Pod PodOf(const std::string& metadata, const std::string& spec = "{}", const std::string& status = "{}") {
  return PodFrom(Made(R"({"metadata":{"namespace":"d","name":"a","uid":"u","resourceVersion":"7")" +
                      metadata + R"(},"spec":)" + spec + R"(,"status":)" + status + "}"));
}
Node NodeOf(const std::string& spec, const std::string& status) {
  return NodeFrom(
      Made(R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"}},"spec":)" + spec +
           R"(,"status":)" + status + "}"));
}
std::string Ready(const std::string& status) {
  return R"({"conditions":[{"type":"Ready","status":")" + status + R"(","reason":"R","message":"m"}]})";
}

TEST(Pod, WhatIsSaidToSidingIsFound) {
  const Pod pod = PodOf(R"(,"labels":{"siding.dev/gang":"g","siding.dev/notice":"1s","app":"x"},)"
                        R"("annotations":{"siding.dev/notice":"2s","siding.dev":"no"})");
  EXPECT_THAT(pod.said, UnorderedElementsAre(Pair("gang", "g"), Pair("notice", "2s")));
}
TEST(Pod, ItsOwnerIsTheOneThatControlsIt) {
  const Pod pod = PodOf(R"(,"ownerReferences":[{"kind":"Gang","name":"g","uid":"1"},)"
                        R"({"kind":"Job","name":"j","uid":"2","controller":true}])");
  EXPECT_EQ(pod.owner, (Owner{"Job", "j", "2"}));
  EXPECT_EQ(PodOf("").owner, Owner());
}
TEST(Pod, TimesAreRead) {
  const Pod pod =
      PodOf(R"(,"creationTimestamp":"1970-01-01T00:00:01Z","deletionTimestamp":"1970-01-01T00:00:03Z")", "{}",
            R"({"startTime":"1970-01-01T00:00:01Z"})");
  EXPECT_EQ(pod.created, Time(std::chrono::seconds(1)));
  EXPECT_EQ(pod.started, std::nullopt);
  EXPECT_EQ(pod.deleting, Time(std::chrono::seconds(3)));
  EXPECT_EQ(PodOf("").deleting, std::nullopt);
}
TEST(Pod, ItHasStartedWhenItsFirstContainerHas) {
  const Pod pod =
      PodOf("", "{}",
            R"({"containerStatuses":[{"state":{"running":{"startedAt":"1970-01-01T00:00:09Z"}}},)"
            R"({"state":{"waiting":{}},"lastState":{"terminated":{"startedAt":"1970-01-01T00:00:05Z"}}}]})");
  EXPECT_EQ(pod.started, Time(std::chrono::seconds(5)));
}
TEST(Pod, AGateAndASchedulerAreRead) {
  const Pod pod =
      PodOf("", R"({"schedulerName":"siding","schedulingGates":[{"name":"siding.dev/wait"}],"priority":-5})");
  EXPECT_EQ(pod.scheduler, "siding");
  EXPECT_THAT(pod.gates, ElementsAre("siding.dev/wait"));
  EXPECT_EQ(pod.priority, -5);
}
TEST(Pod, OneWhoseNodeDoesNotAnswerStillHoldsIt) {
  EXPECT_EQ(PodOf("", "{}", R"({"phase":"Unknown"})").phase, PodPhase::kRunning);
  EXPECT_TRUE(HoldsNode(PodOf("", R"({"nodeName":"n"})", R"({"phase":"Unknown"})")));
}
TEST(Pod, OneThatHasNoNodeOrIsOverHoldsNone) {
  EXPECT_FALSE(HoldsNode(PodOf("", "{}", R"({"phase":"Pending"})")));
  for (const char* phase : {"Succeeded", "Failed"}) {
    EXPECT_FALSE(HoldsNode(PodOf("", R"({"nodeName":"n"})", std::string(R"({"phase":")") + phase + "\"}")))
        << phase;
  }
}
bool IsDisrupted(const std::string& status) {
  return PodOf("", "{}", R"({"phase":"Failed",)" + status + "}").disrupted;
}
TEST(Pod, OneThatItsKubeletHasEndedIsDisrupted) {
  EXPECT_TRUE(
      IsDisrupted(R"("reason":"Evicted","message":"The node was low on resource: memory. Container main was)"
                  R"( using 2Gi, which exceeds its request of 0. ")"));
  EXPECT_TRUE(IsDisrupted(R"("reason":"Preempting","message":"Preempted in order to admit critical pod")"));
}
TEST(Pod, OneWhoseNodeGoesOffIsDisruptedInEachVersionsWords) {
  EXPECT_TRUE(IsDisrupted(R"("reason":"Shutdown")"));
  EXPECT_TRUE(IsDisrupted(R"("reason":"NodeShutdown")"));
  EXPECT_TRUE(IsDisrupted(R"("reason":"Terminated")"));
}
TEST(Pod, OneThatItsKubeletDidNotTakeInIsDisrupted) {
  EXPECT_TRUE(IsDisrupted(R"("reason":"OutOfcpu")"));
  EXPECT_TRUE(IsDisrupted(R"("reason":"Evicted","message":"The node had condition: [DiskPressure]. ")"));
}
TEST(Pod, OneWithTheConditionIsDisrupted) {
  EXPECT_TRUE(IsDisrupted(R"("conditions":[{"type":"DisruptionTarget","status":"True"}])"));
  EXPECT_FALSE(IsDisrupted(R"("conditions":[{"type":"DisruptionTarget","status":"False"}])"));
}
TEST(Pod, OneWhoseEndNobodySawIsDisrupted) {
  EXPECT_TRUE(
      IsDisrupted(R"("containerStatuses":[{"state":{"terminated":{"exitCode":255,"reason":"Unknown"}}}])"));
  EXPECT_TRUE(IsDisrupted(
      R"("initContainerStatuses":[{"state":{"terminated":{"reason":"ContainerStatusUnknown"}}}])"));
}
TEST(Pod, OneWhoseProgramFailedIsNotDisrupted) {
  EXPECT_FALSE(
      IsDisrupted(R"("containerStatuses":[{"state":{"terminated":{"exitCode":255,"reason":"Error"}}}])"));
  EXPECT_FALSE(
      IsDisrupted(R"("containerStatuses":[{"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}])"));
}
TEST(Pod, OneThatHasUsedMoreThanItsOwnLimitIsNotDisrupted) {
  EXPECT_FALSE(IsDisrupted(
      R"("reason":"Evicted","message":"Usage of EmptyDir volume \"a\" exceeds the limit \"1Mi\". ")"));
  EXPECT_FALSE(IsDisrupted(
      R"("reason":"Evicted","message":"Pod ephemeral local storage usage exceeds the total limit of)"
      R"( containers 1Mi. ")"));
  EXPECT_FALSE(IsDisrupted(
      R"("reason":"Evicted","message":"Container main exceeded its local ephemeral storage limit \"1Mi\". ")"));
  EXPECT_FALSE(IsDisrupted(R"("reason":"DeadlineExceeded")"));
}
TEST(Pod, OneThatRunsOrHasDoneItsWorkIsNotDisrupted) {
  EXPECT_FALSE(PodOf("", "{}", R"({"phase":"Running","reason":"NodeLost"})").disrupted);
  EXPECT_FALSE(PodOf("", "{}", R"({"phase":"Succeeded","reason":"Terminated"})").disrupted);
}
TEST(Pod, APriorityIsCutToWhatSidingCounts) {
  EXPECT_EQ(PodOf("", R"({"priority":2000000000})").priority, 1'000'000);
  EXPECT_EQ(PodOf("", R"({"priority":-2000000000})").priority, -1'000'000);
}
TEST(Pod, WhatItRequestsIsSummedOrSaidToBeUnreadable) {
  EXPECT_EQ(PodOf("", R"({"containers":[{"resources":{"requests":{"cpu":"2"}}}]})").requests.cpu, 2000);
  const Pod wrong = PodOf("", R"({"containers":[{"name":"c","resources":{"requests":{"cpu":[]}}}]})");
  EXPECT_THAT(wrong.problem, HasSubstr("container c: cpu"));
  EXPECT_EQ(wrong.requests, Amounts());
}
TEST(Pod, AnythingOddIsNoCrash) {
  for (const char* odd : {"1", "[]", "null", "\"x\"", R"({"a":1})"}) {
    PodOf(std::string(R"(,"labels":)") + odd + R"(,"ownerReferences":)" + odd, odd, odd);
    NodeOf(odd, odd);
  }
}

TEST(Node, IsReadAndReady) {
  const Node node = NodeOf(
      R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}],"unschedulable":true})",
      R"({"allocatable":{"cpu":"4","nvidia.com/gpu":"2"},"conditions":[{"type":"Ready","status":"True"}]})");
  EXPECT_TRUE(node.ready);
  EXPECT_TRUE(node.cordoned);
  EXPECT_THAT(node.labels, ElementsAre(Pair("a", "b")));
  ASSERT_EQ(node.taints.size(), 1u);
  EXPECT_EQ(ToString(node.taints.front()), "k=v:NoSchedule");
  EXPECT_EQ(ToResources(node.allocatable), (Resources{4000, Bytes{0}, 2}));
}
TEST(Node, OneThatIsNotReadySaysWhy) {
  EXPECT_EQ(NodeOf("{}", Ready("False")).why_not_ready, "R: m");
  EXPECT_EQ(NodeOf("{}", Ready("True")).why_not_ready, "");
  EXPECT_EQ(NodeOf("{}", "{}").why_not_ready, "its kubelet has said nothing yet");
}
TEST(Node, WhatCannotBeReadCountsAsNothing) {
  const Node node = NodeOf("{}", R"({"allocatable":{"cpu":"lots"}})");
  EXPECT_EQ(node.allocatable, Amounts());
  EXPECT_THAT(node.problem, HasSubstr("status.allocatable: cpu"));
}

}  // namespace
}  // namespace siding::kubernetes
