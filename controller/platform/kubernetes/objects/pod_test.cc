#include "controller/platform/kubernetes/objects/pod.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/objects/node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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
Node NodeOf(const std::string& spec, const std::string& status, std::string* problem = nullptr) {
  return NodeFrom(
      Made(R"({"metadata":{"name":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"}},"spec":)" + spec +
           R"(,"status":)" + status + "}"),
      problem);
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
TEST(Pod, APriorityIsCutToWhatSidingCounts) {
  EXPECT_EQ(PodOf("", R"({"priority":2000000000})").priority, 1'000'000);
  EXPECT_EQ(PodOf("", R"({"priority":-2000000000})").priority, -1'000'000);
}
TEST(Pod, ReadyIsACondition) {
  EXPECT_TRUE(PodOf("", "{}", Ready("True")).ready);
  EXPECT_FALSE(PodOf("", "{}", Ready("False")).ready);
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
  EXPECT_THAT(node.taints, ElementsAre(Taint{"k", "v", "NoSchedule"}));
  EXPECT_EQ(ToResources(node.allocatable), (Resources{4000, Bytes{0}, 2}));
}
TEST(Node, OneThatIsNotReadySaysWhy) {
  EXPECT_EQ(NodeOf("{}", Ready("False")).why_not_ready, "R: m");
  EXPECT_EQ(NodeOf("{}", Ready("True")).why_not_ready, "");
  EXPECT_EQ(NodeOf("{}", "{}").why_not_ready, "its kubelet has said nothing yet");
}
TEST(Node, WhatCannotBeReadCountsAsNothing) {
  std::string problem;
  const Node node = NodeOf("{}", R"({"allocatable":{"cpu":"lots"}})", &problem);
  EXPECT_EQ(node.allocatable, Amounts());
  EXPECT_THAT(problem, HasSubstr("status.allocatable: cpu"));
}

}  // namespace
}  // namespace siding::kubernetes
