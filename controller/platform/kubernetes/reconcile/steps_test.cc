#include "controller/platform/kubernetes/reconcile/steps.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Json kOthersTaint = {
    {"key", "team"}, {"value", "x"}, {"effect", "NoExecute"}, {"timeAdded", "2026-01-01T00:00:00Z"}};

class StepsTest : public testing::Test {
 protected:
  StepsTest() {
    for (const char* name : {"n1", "n2"}) AddNode(name);
  }
  void AddNode(const std::string& name, const Json& spec = Json::object()) {
    Put("nodes", {"", name},
        {{"metadata", {{"labels", {{"kubernetes.io/hostname", "host-" + name}}}}},
         {"spec", spec},
         {"status",
          {{"allocatable", {{"cpu", "2"}, {"pods", "9"}}},
           {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
  }
  // Of job 7, with a deadline, requesting a CPU.
  Json Pod(const Json& spec = {{"schedulerName", "siding"}}, const std::string& job = "7") {
    Json pod = {{"metadata", {{"annotations", {{"siding.dev/start-by", "+60s"}, {"siding.dev/job", job}}}}},
                {"spec", spec}};
    pod["spec"]["containers"] =
        Json::array({{{"name", "main"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}});
    return pod;
  }
  static Json InGang(Json pod) {
    pod["metadata"]["annotations"]["siding.dev/gang"] = "g";
    pod["metadata"]["annotations"]["siding.dev/gang-size"] = "2";
    return pod;
  }
  void Put(const std::string& plural, const ObjectName& name, const Json& object) {
    transport_.Do([&](FakeApiServer& server) { server.store().Put(plural, name, object); });
  }
  JobTable Table() {
    JobTable table({}, [](const siding::kubernetes::Pod&) { return true; });
    const auto nodes = client_.List(Nodes(), {});
    const auto pods = client_.List(Pods(), {});
    for (const Object& node : nodes->items) table.OnNodes({{std::nullopt, node}});
    for (const Object& pod : pods->items) table.OnPods({{std::nullopt, pod}});
    return table;
  }
  // Takes the steps; what was done, for people.
  std::vector<std::string> Take() {
    std::vector<std::string> taken;
    for (const Step& step : StepsTowards(desired_, {}, Table(), clock_.Now())) {
      const absl::Status status = Apply(client_, step);
      taken.push_back(step.target + ": " + step.action + (status.ok() ? "" : ": " + status.ToString()));
    }
    return taken;
  }
  void Keep(const std::vector<NodeId>& nodes, const std::string& why = "") {
    desired_.kept[JobId(7)] = {nodes, "d", {}};
    desired_.jobs[JobId(7)] = {.nodes = nodes, .why = why};
  }
  // One that is there, and that somebody else is to place.
  void AddWaiting(const std::string& job = "7") {
    Put("pods", {"d", "waiting-" + job}, Pod({{"schedulerName", "others"}}, job));
  }
  // Its kubelet runs it.
  void Run(const std::string& name) {
    Json pod = Now(Pods(), {"d", name});
    pod["status"]["phase"] = "Running";
    Put("pods", {"d", name}, pod);
  }
  Json Now(const Resource& resource, const ObjectName& name) { return *client_.Get(resource, name)->json; }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_;
  FakeTransport transport_{server_, clock_};
  ApiClient client_{transport_, pacer_};
  DesiredState desired_;
};

TEST_F(StepsTest, NothingDesiredIsNothingToDo) {
  Put("pods", {"d", "a"}, Pod());
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(StepsTest, ANodeIsKeptOnceAndThenNoMore) {
  AddWaiting();
  desired_.kept[JobId(7)] = {{NodeId("n1")}, "d", {}};
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  EXPECT_EQ(ListAt(Now(Nodes(), {"", "n1"}), {"spec", "taints"}),
            Json::array({{{"key", "siding.dev/kept-for"}, {"value", "7"}, {"effect", "NoSchedule"}}}));
  EXPECT_THAT(Take(), IsEmpty());
  desired_ = {};
  EXPECT_THAT(Take(), ElementsAre("node n1: kept no more"));
  EXPECT_THAT(ListAt(Now(Nodes(), {"", "n1"}), {"spec", "taints"}), IsEmpty());
}
// It may have been kept no more meanwhile.
TEST_F(StepsTest, NothingIsBoundToANodeOfWhichTheWatchHasNotToldYet) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n1")});
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  JobTable table = Table();
  EXPECT_EQ(StepsTowards(desired_, {}, table, clock_.Now()).size(), 1u);
  table.OnNodeWritten("n1");
  EXPECT_THAT(StepsTowards(desired_, {}, table, clock_.Now()), IsEmpty());
  const Object node = *client_.Get(Nodes(), {"", "n1"});
  table.OnNodes({{node, node}});
  EXPECT_EQ(StepsTowards(desired_, {}, table, clock_.Now()).size(), 1u);
}
TEST_F(StepsTest, NothingIsBoundToANodeThatWasCordonedSince) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n1")});
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  Json node = Now(Nodes(), {"", "n1"});
  node["spec"]["unschedulable"] = true;
  Put("nodes", {"", "n1"}, node);
  EXPECT_THAT(Take(), IsEmpty());
  node["spec"]["unschedulable"] = false;
  Put("nodes", {"", "n1"}, node);
  EXPECT_THAT(Take(), ElementsAre("pod d/a: bound to n1"));
}
TEST_F(StepsTest, NorToOneThatGotATaintThatItDoesNotTolerate) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n1")});
  Take();
  Json node = Now(Nodes(), {"", "n1"});
  node["spec"]["taints"].push_back(kOthersTaint);
  Put("nodes", {"", "n1"}, node);
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, WhatOnlyTellsPeopleComesLast) {
  Put("pods", {"d", "a"}, Pod({{"schedulerName", "siding"}}, "3"));
  Put("pods", {"d", "b"}, Pod());
  Keep({NodeId("n1")}, "is to start");
  desired_.jobs[JobId(3)].why = "waits";
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7", "pod d/a: marked: waits",
                                  "pod d/b: marked: is to start"));
  Keep({NodeId("n1")}, "is to start now");
  desired_.jobs[JobId(3)].why = "waits on";
  EXPECT_THAT(Take(), ElementsAre("pod d/b: bound to n1", "pod d/a: marked: waits on",
                                  "pod d/b: marked: is to start now"));
}
TEST_F(StepsTest, ANodeThatIsKeptForAnotherChangesHands) {
  AddWaiting();
  AddNode("n1",
          {{"taints", Json::array({{{"key", "siding.dev/kept-for"}, {"value", "6"}, {"effect", "NoSchedule"}},
                                   kOthersTaint})}});
  desired_.kept[JobId(7)] = {{NodeId("n1")}, "d", {}};
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  EXPECT_EQ(ListAt(Now(Nodes(), {"", "n1"}), {"spec", "taints"}),
            Json::array(
                {kOthersTaint, {{"key", "siding.dev/kept-for"}, {"value", "7"}, {"effect", "NoSchedule"}}}));
}
TEST_F(StepsTest, ANodeThatChangedMeanwhileIsLookedAtAgain) {
  AddWaiting();
  desired_.kept[JobId(7)] = {{NodeId("n1")}, "d", {}};
  const std::vector<Step> steps = StepsTowards(desired_, {}, Table(), clock_.Now());
  AddNode("n1", {{"taints", Json::array({kOthersTaint})}});
  const absl::Status status = Apply(client_, steps.front());
  EXPECT_TRUE(IsOverTaken(status)) << status;
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
}

TEST_F(StepsTest, APodIsBoundWhereThereIsRoom) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  EXPECT_THAT(Take(), ElementsAre("node n2: kept for job 7"));
  EXPECT_THAT(Take(), ElementsAre("pod d/a: bound to n2"));
  EXPECT_EQ(TextAt(Now(Pods(), {"d", "a"}), {"spec", "nodeName"}), "n2");
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, ANodeOnWhichItsPodRunsIsKeptNoMore) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  Take();
  Take();
  Run("a");
  EXPECT_THAT(Take(), ElementsAre("node n2: kept no more"));
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, ANodeWhosePodIsBoundAndDoesNotRunYetStaysKept) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  Take();
  Take();
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, ANodeIsNotKeptAgainWhileItsPodEnds) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  Take();
  Take();
  Run("a");
  Take();
  Json pod = Now(Pods(), {"d", "a"});
  pod["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z";
  Put("pods", {"d", "a"}, pod);
  EXPECT_THAT(Take(), IsEmpty());
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "a"}); });
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, ANodeWhosePodNeverRunsIsKeptAsLongAsWasPromised) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  desired_.kept[JobId(7)].until = clock_.Now() + std::chrono::seconds(1);
  Take();
  Take();
  EXPECT_THAT(Take(), IsEmpty());
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(Take(), ElementsAre("node n2: kept no more"));
}
TEST_F(StepsTest, ANodeThatAnotherDeadlineWantsIsKeptForThatOne) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  AddWaiting("8");
  desired_.kept[JobId(8)] = {{NodeId("n2")}, "d", {}};
  Take();
  Take();
  Run("a");
  EXPECT_THAT(Take(), ElementsAre("node n2: kept for job 8"));
}
TEST_F(StepsTest, NodesOfAGangStayKeptUntilAllItsPodsRun) {
  for (const char* name : {"g-0", "g-1"}) Put("pods", {"d", name}, InGang(Pod()));
  Keep({NodeId("n1"), NodeId("n2")});
  Take();
  Take();
  Run("g-0");
  EXPECT_THAT(Take(), IsEmpty());
  Run("g-1");
  EXPECT_THAT(Take(), ElementsAre("node n1: kept no more", "node n2: kept no more"));
}
TEST_F(StepsTest, NodesOfAGangThatLacksAPodStayKept) {
  for (const char* name : {"g-0", "g-1"}) Put("pods", {"d", name}, InGang(Pod()));
  Keep({NodeId("n1"), NodeId("n2")});
  Take();
  Take();
  Run("g-0");
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "g-1"}); });
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, ANodeIsKeptAgainForThePodThatComesInThePlaceOfOneThatRan) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  Take();
  Take();
  Run("a");
  Take();
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "a"}); });
  Put("pods", {"d", "b"}, Pod());
  EXPECT_THAT(Take(), ElementsAre("node n2: kept for job 7"));
}
TEST_F(StepsTest, ItWaitsWhileAnotherIsThere) {
  Put("pods", {"d", "a"}, Pod());
  Json victim = Pod({{"nodeName", "n2"}}, "3");
  victim["spec"]["containers"].push_back(victim["spec"]["containers"][0]);
  victim["metadata"]["annotations"].erase("siding.dev/start-by");
  Put("pods", {"d", "victim"}, victim);
  Keep({NodeId("n2")});
  EXPECT_THAT(Take(), ElementsAre("node n2: kept for job 7"));
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "victim"}); });
  EXPECT_THAT(Take(), ElementsAre("pod d/a: bound to n2"));
}
TEST_F(StepsTest, ATaintThatIsStillAnothersKeepsNothing) {
  Put("pods", {"d", "a"}, Pod());
  AddNode("n2",
          {{"taints",
            Json::array({{{"key", "siding.dev/kept-for"}, {"value", "6"}, {"effect", "NoSchedule"}}})}});
  Keep({NodeId("n2")});
  EXPECT_THAT(Take(), ElementsAre("node n2: kept for job 7"));
  EXPECT_THAT(Take(), ElementsAre("pod d/a: bound to n2"));
}
TEST_F(StepsTest, WhoCameBeforeTheTaintIsSeenBeforeABinding) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n2")});
  Take();
  const std::vector<Step> steps = StepsTowards(desired_, {}, Table(), clock_.Now());
  ASSERT_EQ(steps.size(), 1);
  Json other = Pod({{"nodeName", "n2"}}, "3");
  other["spec"]["containers"].push_back(other["spec"]["containers"][0]);
  Put("pods", {"d", "other"}, other);
  const absl::Status status = Apply(client_, steps.front());
  EXPECT_TRUE(IsOverTaken(status)) << status;
  EXPECT_EQ(TextAt(Now(Pods(), {"d", "a"}), {"spec", "nodeName"}), "");
}
TEST_F(StepsTest, AGangIsBoundTogetherByRank) {
  for (const char* name : {"g-0", "g-1"}) Put("pods", {"d", name}, InGang(Pod()));
  Json system = Pod({{"nodeName", "n2"}});
  system["metadata"].erase("annotations");
  system["spec"]["containers"].push_back(system["spec"]["containers"][0]);
  Put("pods", {"d", "system"}, system);
  Keep({NodeId("n2"), NodeId("n1")});
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7", "node n2: kept for job 7"));
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "system"}); });
  EXPECT_THAT(Take(), ElementsAre("pod d/g-0: bound to n2", "pod d/g-1: bound to n1"));
}
TEST_F(StepsTest, TheRestOfAGangIsBoundAfterAFailure) {
  for (const char* name : {"g-0", "g-1"}) Put("pods", {"d", name}, InGang(Pod()));
  Keep({NodeId("n1"), NodeId("n2")});
  Take();
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "g-1/binding", .code = 500});
  Take();
  EXPECT_THAT(Take(), ElementsAre("pod d/g-1: bound to n2"));
}
TEST_F(StepsTest, AGatedPodIsToldItsNodeAndLetGo) {
  const Json toleration = {{"key", "mine"}, {"operator", "Exists"}};
  Put("pods", {"d", "a"},
      Pod({{"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}})},
           {"tolerations", Json::array({toleration})}}));
  Keep({NodeId("n1")});
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  EXPECT_THAT(Take(), ElementsAre("pod d/a: let go to n1"));
  const Json now = Now(Pods(), {"d", "a"});
  EXPECT_THAT(ListAt(now, {"spec", "schedulingGates"}), IsEmpty());
  EXPECT_EQ(TextAt(now, {"spec", "nodeSelector", "kubernetes.io/hostname"}), "host-n1");
  EXPECT_EQ(
      ListAt(now, {"spec", "tolerations"}),
      Json::array(
          {toleration, {{"key", "siding.dev/kept-for"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}}));
  EXPECT_THAT(Take(), IsEmpty());
}
// It holds nothing of the node before the cluster has placed it.
TEST_F(StepsTest, WhatWasLetGoIsCountedWhereItIsToBe) {
  const auto cpus = [](Json pod, const char* cpu) {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu;
    return pod;
  };
  const Json gated = {{"schedulerName", "default-scheduler"},
                      {"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}})}};
  Put("pods", {"d", "a"}, cpus(Pod(gated), "1500m"));
  Put("pods", {"d", "b"}, Pod({{"schedulerName", "siding"}}, "8"));
  Keep({NodeId("n1")});
  desired_.kept[JobId(8)] = {{NodeId("n1")}, "d", {}};
  desired_.jobs[JobId(8)] = {.nodes = {NodeId("n1")}, .why = ""};
  EXPECT_THAT(Take(), ElementsAre("node n1: kept for job 7"));
  EXPECT_THAT(Take(), ElementsAre("pod d/a: let go to n1"));
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, WithoutNodesThatAreKeptNothingIsBound) {
  Put("pods", {"d", "a"}, Pod());
  desired_.jobs[JobId(7)] = {.nodes = {NodeId("n1")}};
  EXPECT_THAT(Take(), IsEmpty());
}
TEST_F(StepsTest, AnotherPodOfThatNameIsNotBound) {
  Put("pods", {"d", "a"}, Pod());
  Keep({NodeId("n1")});
  Take();
  const std::vector<Step> steps = StepsTowards(desired_, {}, Table(), clock_.Now());
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "a"}); });
  EXPECT_TRUE(IsOverTaken(Apply(client_, steps.back())));
}

TEST_F(StepsTest, WhyAPodWaitsIsWrittenOnItAndTakenBack) {
  Put("pods", {"d", "a"}, Pod());
  desired_.jobs[JobId(7)] = {.why = "is to start by noon"};
  EXPECT_THAT(Take(), ElementsAre("pod d/a: marked: is to start by noon"));
  EXPECT_EQ(TextAt(Now(Pods(), {"d", "a"}), {"metadata", "annotations", "siding.dev/status"}),
            "is to start by noon");
  EXPECT_THAT(Take(), IsEmpty());
  desired_ = {};
  EXPECT_THAT(Take(), ElementsAre("pod d/a: no longer marked"));
  EXPECT_THAT(Take(), IsEmpty());
}

// ---- Pods that are to go. ----

class EvictedTest : public StepsTest {
 protected:
  EvictedTest() {
    Put("pods", {"d", "victim"}, Pod({{"nodeName", "n1"}}, "5"));
    victim_ = {JobId(5), {"d", "victim"}, TextAt(Now(Pods(), {"d", "victim"}), {"metadata", "uid"})};
    AddWaiting();
  }
  std::vector<std::string> Steps() {
    std::vector<std::string> steps;
    for (const Step& step : StepsTowards(desired_, {victim_}, Table(), clock_.Now()))
      steps.push_back(step.target + ": " + step.action + (step.after_last ? ", after that" : ""));
    return steps;
  }
  void Change(const Json& patch) {
    Json pod = Now(Pods(), {"d", "victim"});
    pod.merge_patch(patch);
    Put("pods", {"d", "victim"}, pod);
  }
  Eviction victim_;
};

TEST_F(EvictedTest, GoWhenTheirNodeIsSeenToBeKept) {
  Keep({NodeId("n1")});
  EXPECT_THAT(Steps(), ElementsAre("node n1: kept for job 7"));
  Take();
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: evicted, of job 5"));
}
TEST_F(EvictedTest, GoBeforePeopleAreTold) {
  desired_.jobs[JobId(5)] = {.why = "makes way"};
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: evicted, of job 5", "pod d/victim: marked: makes way"));
}
TEST_F(EvictedTest, AreLeftAloneWhileTheyEnd) {
  Change({{"metadata", {{"deletionTimestamp", "2026-01-01T00:01:00Z"}, {"deletionGracePeriodSeconds", 30}}}});
  EXPECT_THAT(Steps(), IsEmpty());
  victim_.at_once = true;
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: evicted, of job 5"));
}
TEST_F(EvictedTest, DoNotCountAsFailedBeforeTheyGo) {
  Change({{"metadata", {{"finalizers", Json::array({"batch.kubernetes.io/job-tracking"})}}}});
  victim_.at_once = true;
  Keep({NodeId("n1")});
  Take();
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: not to count as failed",
                                   "pod d/victim: evicted, of job 5, after that"));
}
TEST_F(EvictedTest, ThatEndAtOnceOnlyDoNotCountAsFailed) {
  Change({{"metadata",
           {{"finalizers", Json::array({"batch.kubernetes.io/job-tracking"})},
            {"deletionTimestamp", "2026-01-01T00:01:00Z"},
            {"deletionGracePeriodSeconds", 0}}}});
  victim_.at_once = true;
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: not to count as failed"));
}
TEST_F(EvictedTest, CountAsAnyThatFailsWhereTheyEndThemselves) {
  Change({{"metadata", {{"finalizers", Json::array({"batch.kubernetes.io/job-tracking"})}}}});
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: evicted, of job 5"));
}
TEST_F(EvictedTest, AreAskedForBeforeTheirNodeIsKept) {
  Keep({NodeId("n1")});
  victim_.only_ask = true;
  EXPECT_THAT(Steps(),
              ElementsAre("node n1: kept for job 7", "pod d/victim: asked whether it may be evicted"));
}
TEST_F(EvictedTest, ThatAreNotKnownAreAskedOfTheServer) {
  victim_.uid = "another";
  EXPECT_THAT(Steps(), ElementsAre("pod d/victim: evicted, of job 5"));
}

}  // namespace
}  // namespace siding::kubernetes
