#include "controller/platform/kubernetes/watch/job_table.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Json kOneCpu = {{"cpu", "1"}, {"memory", "1Ki"}};

// What makes a pod, a piece at a time.
struct Made {
  std::string name = "a";
  std::map<std::string, std::string> said = {};
  std::string node = "";
  std::string phase = "Pending";
  Json requests = kOneCpu;
  std::string space = "d";
  std::string created = "1970-01-01T00:00:10Z";
  Json spec = Json::object();
  bool deleting = false;
  std::string started = "";

  Object Build() const {
    Json json = {{"metadata",
                  {{"name", name},
                   {"namespace", space},
                   {"uid", "uid-" + name},
                   {"resourceVersion", "1"},
                   {"creationTimestamp", created}}},
                 {"spec", spec},
                 {"status", {{"phase", phase}}}};
    for (const auto& [key, value] : said) json["metadata"]["annotations"][kPrefix + key] = value;
    if (deleting) json["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:40Z";
    if (!node.empty()) json["spec"]["nodeName"] = node;
    if (!spec.contains("schedulerName")) json["spec"]["schedulerName"] = "siding";
    json["spec"]["containers"] = Json::array({{{"name", "main"}, {"resources", {{"requests", requests}}}}});
    if (!started.empty())
      json["status"]["containerStatuses"] =
          Json::array({{{"state", {{"running", {{"startedAt", started}}}}}}});
    return *ObjectFrom(std::move(json));
  }
};
Object NodeNamed(const std::string& name, const Json& spec = Json::object(),
                 const std::string& pods = "110") {
  return *ObjectFrom(
      {{"metadata",
        {{"name", name}, {"uid", "uid-" + name}, {"resourceVersion", "1"}, {"labels", {{"name", name}}}}},
       {"spec", spec},
       {"status",
        {{"allocatable", {{"cpu", "4"}, {"memory", "8Ki"}, {"pods", pods}}},
         {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
}

class JobTableTest : public testing::Test {
 protected:
  JobTableTest() {
    table_.OnNodes({{{}, NodeNamed("n1")}, {{}, NodeNamed("n2")}});
    table_.TakeChanges();
  }
  void Add(const Made& made) {
    auto& last = pods_[made.name];
    const Object now = made.Build();
    table_.OnPods({{last, now}});
    last = now;
  }
  void Remove(const std::string& name) {
    table_.OnPods({{pods_[name], std::nullopt}});
    pods_.erase(name);
  }
  ManagedJob Job() {
    const ManagerChanges changes = table_.TakeChanges();
    EXPECT_THAT(changes.jobs, SizeIs(1));
    return changes.jobs.empty() ? ManagedJob() : changes.jobs.front();
  }
  ManagedNode NodeNow() {
    const ManagerChanges changes = table_.TakeChanges();
    EXPECT_THAT(changes.nodes, SizeIs(1));
    return changes.nodes.empty() ? ManagedNode() : changes.nodes.front();
  }
  std::string Refused() {
    const std::vector<Refusal> refusals = table_.TakeRefusals();
    return refusals.size() == 1 ? refusals.front().why : absl::StrCat(refusals.size(), " refusals");
  }

  JobTable table_{{"kube-system"}, [](const Pod& pod) { return !pod.said.contains("seal"); }};
  std::map<std::string, std::optional<Object>> pods_;
};

const std::map<std::string, std::string> kBatch = {{"preemptible", "kill"}, {"job", "7"}};
const std::map<std::string, std::string> kDeadline = {{"start-by", "+60s"}, {"walltime", "5m"}, {"job", "8"}};
std::map<std::string, std::string> OfGang(const std::string& size) {
  auto said = kDeadline;
  said["gang"] = "g";
  said["gang-size"] = size;
  return said;
}

TEST_F(JobTableTest, BatchWorkThatRuns) {
  Add({.said = kBatch, .node = "n1", .phase = "Running", .started = "1970-01-01T00:00:12Z"});
  const ManagedJob job = Job();
  EXPECT_EQ(job.id, JobId(7));
  EXPECT_EQ(job.phase, ManagedPhase::kRunning);
  EXPECT_THAT(job.nodes, ElementsAre(NodeId("n1")));
  EXPECT_EQ(job.started, Time(std::chrono::seconds(12)));
  EXPECT_EQ(job.starts, 1);
  EXPECT_EQ(job.spec.name, "a");
  EXPECT_EQ(job.spec.user, "d");
  EXPECT_EQ(job.spec.cluster_manager, "kubernetes");
  EXPECT_EQ(job.spec.per_node, (Resources{1000, Bytes{1024}, 0}));
  EXPECT_EQ(job.spec.methods, MethodSet{siding::Method::kKill});
}
TEST_F(JobTableTest, APodWithADeadlineThatWaits) {
  Add({.said = kDeadline});
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kWaiting);
  EXPECT_TRUE(job.may_start);
  EXPECT_EQ(job.spec.kind, JobKind::kOnDemand);
  EXPECT_EQ(job.spec.start_by, Time(std::chrono::seconds(70)));
  EXPECT_EQ(job.spec.hold, std::chrono::minutes(5));
}
TEST_F(JobTableTest, OneThatHasANodeRunsAndHasNotStarted) {
  Add({.said = kDeadline, .node = "n1"});
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kRunning);
  EXPECT_EQ(job.started, std::nullopt);
}
TEST_F(JobTableTest, OneThatEndsAndOneThatIsOver) {
  Add({.said = kBatch, .node = "n1", .phase = "Running", .deleting = true});
  EXPECT_EQ(Job().phase, ManagedPhase::kEnding);
  Add({.said = kBatch, .node = "n1", .phase = "Failed"});
  const ManagedJob failed = Job();
  EXPECT_EQ(failed.phase, ManagedPhase::kOver);
  EXPECT_FALSE(failed.succeeded);
  Add({.said = kBatch, .node = "n1", .phase = "Succeeded"});
  EXPECT_TRUE(Job().succeeded);
}
TEST_F(JobTableTest, APodThatIsGoneIsAJobThatIsGone) {
  Add({.said = kBatch});
  Remove("a");
  EXPECT_THAT(table_.TakeChanges().gone_jobs, ElementsAre(JobId(7)));
}
TEST_F(JobTableTest, ThePodThatCameInItsPlaceCounts) {
  Add({.said = kBatch, .node = "n1", .phase = "Running", .deleting = true});
  auto again = kBatch;
  again["starts"] = "2";
  Add({.name = "b", .said = again});
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kWaiting);
  EXPECT_EQ(job.starts, 2);
  EXPECT_THAT(job.nodes, IsEmpty());
}

TEST_F(JobTableTest, AGangWaitsUntilAllArePresent) {
  Add({.name = "g-0", .said = OfGang("2")});
  const ManagedJob half = Job();
  EXPECT_FALSE(half.may_start);
  EXPECT_EQ(half.state, "1 of 2 pods are there");
  Add({.name = "g-1", .said = OfGang("2"), .requests = {{"cpu", "2"}}});
  const ManagedJob whole = Job();
  EXPECT_TRUE(whole.may_start);
  EXPECT_EQ(whole.spec.nodes, 2);
  EXPECT_EQ(whole.spec.per_node, (Resources{2000, Bytes{1024}, 0}));
}
TEST_F(JobTableTest, AGangRunsWhenAllHaveNodesByRank) {
  for (const char* name : {"g-10", "g-9"})
    Add({.name = name, .said = OfGang("2"), .node = name == std::string("g-9") ? "n2" : "n1"});
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kRunning);
  EXPECT_THAT(job.nodes, ElementsAre(NodeId("n2"), NodeId("n1")));
}

TEST_F(JobTableTest, AnothersGateMustGoFirst) {
  const Json spec = {
      {"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}, {{"name", "other.io/gate"}}})}};
  Add({.said = kDeadline, .spec = spec});
  EXPECT_FALSE(Job().may_start);
}

TEST_F(JobTableTest, ANodeIsAsLargeAsOthersLeaveIt) {
  Add({.name = "system", .node = "n1", .phase = "Running"});
  EXPECT_EQ(NodeNow().capacity, (Resources{3000, Bytes{7 * 1024}, 0}));
  Add({.name = "system", .node = "n1", .phase = "Succeeded"});
  EXPECT_EQ(NodeNow().capacity, (Resources{4000, Bytes{8 * 1024}, 0}));
}
TEST_F(JobTableTest, AJobTakesNothingOfItsNodesSize) {
  Add({.said = kBatch, .node = "n1", .phase = "Running"});
  EXPECT_THAT(table_.TakeChanges().nodes, IsEmpty());
}
TEST_F(JobTableTest, MoreThanANodeHasIsNothingLeft) {
  for (const char* name : {"x", "y"})
    Add({.name = name, .node = "n1", .requests = {{"cpu", "9e18"}, {"memory", "9e18"}}});
  EXPECT_EQ(NodeNow().capacity, (Resources{0, Bytes{0}, 0}));
}
TEST_F(JobTableTest, RoomIsWhatAllPodsLeaveThoseThatEndIncluded) {
  Add({.name = "system", .node = "n1", .phase = "Running"});
  Add({.name = "ends",
       .said = kBatch,
       .node = "n1",
       .phase = "Running",
       .requests = {{"cpu", "2"}},
       .deleting = true});
  Add({.name = "waits", .said = kDeadline, .requests = {{"cpu", "1"}}});
  const Pod waits = *table_.Find({"d", "waits"});
  EXPECT_TRUE(table_.HasRoom("n1", waits));
  Add({.name = "ends",
       .said = kBatch,
       .node = "n1",
       .phase = "Running",
       .requests = {{"cpu", "2001m"}},
       .deleting = true});
  EXPECT_FALSE(table_.HasRoom("n1", waits));
  EXPECT_FALSE(table_.HasRoom("none", waits));
}
TEST_F(JobTableTest, ANodeTakesSoManyPods) {
  table_.OnNodes({{NodeNamed("n1"), NodeNamed("n1", Json::object(), "1")}});
  Add({.name = "small", .node = "n1", .requests = Json::object()});
  EXPECT_FALSE(table_.HasRoom("n1", Pod()));
  EXPECT_TRUE(table_.HasRoom("n2", Pod()));
}
TEST_F(JobTableTest, ACordonedNodeIsNotUsable) {
  table_.OnNodes({{NodeNamed("n1"), NodeNamed("n1", {{"unschedulable", true}})}});
  const ManagedNode node = NodeNow();
  EXPECT_FALSE(node.usable);
  EXPECT_EQ(node.why, "cordoned");
}
TEST_F(JobTableTest, ANodeThatIsGone) {
  table_.OnNodes({{NodeNamed("n1"), std::nullopt}});
  EXPECT_THAT(table_.TakeChanges().gone_nodes, ElementsAre(NodeId("n1")));
}

TEST_F(JobTableTest, WhatCannotBeReadIsRefusedAndNobodysJob) {
  Add({.said = {{"preemptible", "stop"}, {"job", "7"}}});
  EXPECT_THAT(Refused(), HasSubstr("siding.dev/preemptible: expected"));
  EXPECT_THAT(table_.TakeChanges().jobs, IsEmpty());
  EXPECT_THAT(table_.FindUnnumbered().pods, IsEmpty());
}
TEST_F(JobTableTest, ARefusalIsSaidAgainOnlyIfItIsAnother) {
  Add({.said = {{"preemptible", "stop"}}});
  Refused();
  Add({.said = {{"preemptible", "stop"}}, .node = "n1", .phase = "Running"});
  EXPECT_EQ(Refused(), "0 refusals");
  Add({.said = {{"premptible", "kill"}}, .node = "n1", .phase = "Running"});
  EXPECT_THAT(Refused(), HasSubstr("siding.dev/premptible"));
}
TEST_F(JobTableTest, WhatIsNotThereYetIsSaid) {
  Add({.said = {{"preemptible", "checkpoint,suspend"}}});
  EXPECT_EQ(Refused(),
            "siding.dev/preemptible: expected kill among its methods: pods can only be evicted as yet");
}
TEST_F(JobTableTest, ANamespaceThatIsLeftAlone) {
  Add({.said = kBatch, .space = "kube-system"});
  EXPECT_EQ(Refused(), "siding leaves pods of the namespace kube-system alone");
}
TEST_F(JobTableTest, ADeadlineNeedsSidingToChooseTheNode) {
  Add({.said = kDeadline, .spec = {{"schedulerName", "default-scheduler"}}});
  EXPECT_THAT(Refused(), HasSubstr("expected schedulerName: siding, or the scheduling gate siding.dev/wait"));
  Add({.name = "b",
       .said = kDeadline,
       .spec = {{"schedulerName", "default-scheduler"},
                {"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}})}}});
  EXPECT_EQ(Refused(), "0 refusals");
}
TEST_F(JobTableTest, WhatIsNotPlannedWithIsSaid) {
  Add({.said = kDeadline,
       .requests = {{"vendor.com/thing", 1}},
       .spec = {{"resourceClaims", Json::array({{{"name", "x"}}})}}});
  EXPECT_EQ(Refused(),
            "siding.dev/start-by: expected nothing that siding does not plan with, as is resource claims, "
            "vendor.com/thing");
}

TEST_F(JobTableTest, PodsOfBatchWorkThatHaveANodeAreTasks) {
  auto in_gang = kBatch;
  in_gang["gang"] = "g";
  in_gang["gang-size"] = "2";
  in_gang["starts"] = "3";
  Add({.name = "g-0", .said = in_gang});
  Add({.name = "g-1", .said = in_gang, .node = "n2", .phase = "Running", .started = "1970-01-01T00:00:12Z"});
  Add({.name = "urgent", .said = kDeadline, .node = "n1", .phase = "Running"});
  const std::vector<PodTask> tasks = table_.Tasks();
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks[0].id, (TaskId{JobId(7), 3, 1}));
  EXPECT_EQ(tasks[0].node, NodeId("n2"));
  EXPECT_EQ(tasks[0].uid, "uid-g-1");
  EXPECT_EQ(tasks[0].started, Time(std::chrono::seconds(12)));
  EXPECT_EQ(tasks[0].succeeded, std::nullopt);
  Add({.name = "g-1", .said = in_gang, .node = "n2", .phase = "Failed"});
  Add({.name = "g-0", .said = in_gang, .node = "n1", .phase = "Succeeded"});
  EXPECT_EQ(table_.Tasks()[0].succeeded, true);
  EXPECT_EQ(table_.Tasks()[1].succeeded, false);
}
TEST_F(JobTableTest, WhatHasNoNumberIsListedInOrder) {
  const std::map<std::string, std::string> said = {{"preemptible", "kill"}};
  Add({.name = "late", .said = said, .created = "1970-01-01T00:00:30Z"});
  Add({.name = "early", .said = said});
  Add({.name = "over", .said = said, .phase = "Succeeded"});
  Add({.name = "silent"});
  const auto found = table_.FindUnnumbered().pods;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].pod.name, "early");
  EXPECT_EQ(found[0].version, "1");
  EXPECT_EQ(found[1].pod.name, "late");
  EXPECT_THAT(table_.TakeChanges().jobs, IsEmpty());
}
TEST_F(JobTableTest, ANumberThatIsNotSidingsIsNone) {
  auto forged = kBatch;
  forged["seal"] = "forged";
  Add({.said = forged});
  EXPECT_THAT(table_.TakeChanges().jobs, IsEmpty());
  EXPECT_THAT(table_.FindUnnumbered().pods, SizeIs(1));
}
TEST_F(JobTableTest, AGangHasOneNumber) {
  Add({.name = "g-0", .said = OfGang("2")});
  auto other = OfGang("2");
  other.erase("job");
  Add({.name = "g-1", .said = other});
  Add({.name = "h-0", .said = other, .space = "elsewhere"});
  const auto found = table_.FindUnnumbered().pods;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].gang, JobId(8));
  EXPECT_EQ(found[1].gang, std::nullopt);
}

TEST_F(JobTableTest, APodInThePlaceOfOneThatLeavesIsOfAnotherGang) {
  Add({.name = "g-0", .said = OfGang("2"), .node = "n1", .phase = "Running", .deleting = true});
  Add({.name = "g-1", .said = OfGang("2"), .node = "n2", .phase = "Running"});
  auto again = OfGang("2");
  again.erase("job");
  Add({.name = "g-2", .said = again});
  const auto found = table_.FindUnnumbered().pods;
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].gang, std::nullopt);
}
TEST_F(JobTableTest, WhereAPodMayBeIsAskedByItsJob) {
  Add({.said = kDeadline, .spec = {{"nodeSelector", {{"name", "n2"}}}}});
  EXPECT_THAT(*table_.NodesFor(Job().spec), ElementsAre(NodeId("n2")));
  EXPECT_EQ(table_.NodesFor(JobSpec()), std::nullopt);
}
TEST_F(JobTableTest, NodesThatSidingKeepsAreNotClosedToItsJobs) {
  const Json spec = {
      {"taints", Json::array({{{"key", "siding.dev/kept-for"}, {"value", "8"}, {"effect", "NoSchedule"}}})}};
  table_.OnNodes({{NodeNamed("n1"), NodeNamed("n1", spec)}});
  Add({.said = kDeadline});
  EXPECT_THAT(*table_.NodesFor(Job().spec), SizeIs(2));
}

}  // namespace
}  // namespace siding::kubernetes
