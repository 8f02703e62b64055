#include "controller/platform/kubernetes/watch/job_table.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/objects/marks.h"
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
  std::string owner = "";  // its kind, named "train"
  std::string index = "";  // in its Job
  bool ready = false;
  std::string reason = "";  // why it has failed

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
    if (!owner.empty())
      json["metadata"]["ownerReferences"] =
          Json::array({{{"kind", owner}, {"name", "train"}, {"uid", "uid-train"}, {"controller", true}}});
    if (!index.empty()) json["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = index;
    if (deleting) json["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:40Z";
    if (!node.empty()) json["spec"]["nodeName"] = node;
    if (!spec.contains("schedulerName") && said.contains("start-by"))
      json["spec"]["schedulerName"] = "siding";
    json["spec"]["containers"] = Json::array({{{"name", "main"}, {"resources", {{"requests", requests}}}}});
    if (ready) json["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "True"}}});
    if (!reason.empty()) json["status"]["reason"] = reason;
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
  // `saves`: agents freeze and save pods.
  explicit JobTableTest(bool saves = false)
      : table_(
            {"kube-system"}, [](const Pod& pod) { return !pod.said.contains("seal"); }, saves) {
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

  JobTable table_;
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
            "siding.dev/preemptible: expected kill among its methods: it cannot be saved, for pods are only "
            "evicted "
            "in this cluster");
}
TEST_F(JobTableTest, ANamespaceThatIsLeftAlone) {
  Add({.said = kBatch, .space = "kube-system"});
  EXPECT_EQ(Refused(), "siding leaves pods of the namespace kube-system alone");
}
TEST_F(JobTableTest, APodThatWasLetGoStaysItsJobUntilItIsBound) {
  Made made{.said = {{"start-by", "+60s"}, {"job", "7"}}};
  made.spec = {{"schedulerName", "default-scheduler"},
               {"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}})}};
  Add(made);
  table_.TakeChanges();
  made.spec.erase("schedulingGates");
  Add(made);
  const ManagerChanges changes = table_.TakeChanges();
  ASSERT_EQ(changes.jobs.size(), 1);
  EXPECT_EQ(changes.jobs.front().phase, ManagedPhase::kWaiting);
  EXPECT_TRUE(table_.TakeRefusals().empty());
}
TEST_F(JobTableTest, ADeadlineNeedsSidingToChooseTheNode) {
  Add({.said = {{"start-by", "+60s"}}, .spec = {{"schedulerName", "default-scheduler"}}});
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
TEST_F(JobTableTest, TheNumberOfAPodThatAsksNothingNowIsNotGivenToAnother) {
  Add({.said = {{"job", "7"}}});
  EXPECT_EQ(table_.FindUnnumbered().highest, JobId(7));
}
TEST_F(JobTableTest, ANumberThatSidingDidNotWriteCountsForNothing) {
  Add({.said = {{"job", "7"}, {"seal", "forged"}}});
  EXPECT_EQ(table_.FindUnnumbered().highest, JobId(0));
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

TEST_F(JobTableTest, APodBesideAGangThatIsWholeGetsNoNumber) {
  for (const char* name : {"g-0", "g-1"})
    Add({.name = name,
         .said = OfGang("2"),
         .node = "n1",
         .phase = "Running",
         .started = "1970-01-01T00:00:12Z"});
  table_.TakeChanges();
  auto third = OfGang("2");
  third.erase("job");
  Add({.name = "g-2", .said = third, .created = "1970-01-01T00:00:20Z"});
  const JobTable::Without found = table_.FindUnnumbered();
  EXPECT_THAT(found.pods, IsEmpty());
  ASSERT_THAT(found.surplus, SizeIs(1));
  EXPECT_THAT(found.surplus[0].why, HasSubstr("gang-size: expected 2 pods of the gang g"));
  EXPECT_THAT(table_.TakeChanges().jobs, IsEmpty());
}
TEST_F(JobTableTest, OfPodsThatComeTogetherAGangHasAsManyAsItSays) {
  for (const char* name : {"g-0", "g-1", "g-2"}) {
    auto said = OfGang("2");
    said.erase("job");
    Add({.name = name, .said = said});
  }
  EXPECT_THAT(table_.FindUnnumbered().pods, SizeIs(2));
  EXPECT_THAT(table_.FindUnnumbered().surplus, SizeIs(1));
}
TEST_F(JobTableTest, ADeadlineThatWasOverBeforeItsPodWasMadeIsRefused) {
  Add({.said = {{"start-by", "1970-01-01T00:00:09Z"}}});
  EXPECT_THAT(Refused(), HasSubstr("siding.dev/start-by: expected a time after its pod was made"));
}
TEST_F(JobTableTest, OneThatWaitsForSidingWithoutADeadlineIsTold) {
  Add({.said = {}, .spec = {{"schedulerName", "siding"}}});
  EXPECT_THAT(Refused(), HasSubstr("expected that annotation"));
  Add({.name = "b", .said = {{"preemptible", "kill"}}, .spec = {{"schedulerName", "siding"}}});
  EXPECT_THAT(Refused(), HasSubstr("expected that annotation"));
  Add({.name = "c", .spec = {{"schedulingGates", Json::array({{{"name", "siding.dev/wait"}}})}}});
  EXPECT_THAT(Refused(), HasSubstr("expected that annotation"));
  Add({.name = "d", .node = "n1", .spec = {{"schedulerName", "siding"}}});
  EXPECT_EQ(Refused(), "0 refusals");
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
TEST_F(JobTableTest, WhatAPodIsToSidingIsKnownByItsName) {
  Add({.name = "a", .said = kDeadline});
  Add({.name = "b", .said = {{"start-by", "soon"}}});
  EXPECT_EQ(table_.StandingOf({"d", "a"})->number, JobId(8));
  EXPECT_EQ(table_.StandingOf({"d", "b"})->number, std::nullopt);
  EXPECT_THAT(table_.StandingOf({"d", "b"})->refused, testing::HasSubstr("siding.dev/start-by"));
  EXPECT_FALSE(table_.StandingOf({"d", "c"}));
}
// Of all pods of a namespace; it lets so many of them go.
Object BudgetOf(const std::string& space, int lets_go) {
  return *ObjectFrom(
      {{"metadata", {{"name", "b"}, {"namespace", space}, {"uid", "u"}, {"resourceVersion", "1"}}},
       {"spec", {{"selector", {{"matchLabels", Json::object()}}}}},
       {"status", {{"expectedPods", 2}, {"disruptionsAllowed", lets_go}}}});
}
TEST_F(JobTableTest, PodsOfOneBudgetShareWhatItAllows) {
  table_.OnBudgets({{std::nullopt, BudgetOf("d", 1)}});
  Made made{.said = kBatch, .node = "n1", .phase = "Running"};
  made.ready = true;
  Add(made);
  const ManagedJob job = Job();
  EXPECT_EQ(job.kept_by, "");
  EXPECT_THAT(job.allowances, ElementsAre(Allowance{"the disruption budget d/b", 1, 1}));
}
// Plans know budgets by these names (engine/decide/tentative_plan.cc).
TEST_F(JobTableTest, BudgetsOfOneNameInTwoNamespacesShareNothing) {
  table_.OnBudgets({{std::nullopt, BudgetOf("d", 1)}, {std::nullopt, BudgetOf("e", 2)}});
  std::map<JobId, std::vector<Allowance>> allowances;
  for (const auto& [space, number] : {std::pair("d", "7"), std::pair("e", "8")}) {
    Made made{.name = space, .said = kBatch, .node = "n1", .phase = "Running", .space = space};
    made.said["job"] = number;
    made.ready = true;
    Add(made);
  }
  for (const ManagedJob& job : table_.TakeChanges().jobs) allowances[job.id] = job.allowances;
  EXPECT_THAT(allowances[JobId(7)], ElementsAre(Allowance{"the disruption budget d/b", 1, 1}));
  EXPECT_THAT(allowances[JobId(8)], ElementsAre(Allowance{"the disruption budget e/b", 1, 2}));
}
TEST_F(JobTableTest, ABudgetThatIsUsedUpKeepsNoPodOfAnotherNamespace) {
  table_.OnBudgets({{std::nullopt, BudgetOf("d", 0)}, {std::nullopt, BudgetOf("e", 1)}});
  Made made{.said = kBatch, .node = "n1", .phase = "Running", .space = "e"};
  made.ready = true;
  Add(made);
  EXPECT_EQ(Job().kept_by, "");
}
TEST_F(JobTableTest, APodThatABudgetKeepsMustNotLeave) {
  const auto budget = [](int allowed) { return BudgetOf("d", allowed); };
  Made made{.said = kBatch, .node = "n1", .phase = "Running"};
  made.ready = true;
  Add(made);
  EXPECT_EQ(Job().kept_by, "");
  table_.OnBudgets({{std::nullopt, budget(0)}});
  EXPECT_THAT(Job().kept_by, HasSubstr("the disruption budget d/b"));
  table_.OnBudgets({{budget(0), budget(1)}});
  EXPECT_EQ(Job().kept_by, "");
  table_.OnBudgets({{budget(1), budget(0)}});
  table_.OnBudgets({{budget(0), std::nullopt}});
  EXPECT_EQ(Job().kept_by, "");
}
TEST_F(JobTableTest, ABudgetSaysNothingOfAPodThatIsNotReady) {
  Add({.said = kBatch, .node = "n1", .phase = "Running"});
  Job();
  table_.OnBudgets(
      {{std::nullopt,
        *ObjectFrom(
            {{"metadata", {{"name", "b"}, {"namespace", "d"}, {"uid", "u"}, {"resourceVersion", "1"}}},
             {"status", {{"expectedPods", 1}}}})}});
  EXPECT_EQ(Job().kept_by, "");
}

// ---- Jobs that go on with the next pod of their owner. ----

TEST(JobTable, AFolderThatIsTheSameOnAllNodesIsNoObstacle) {
  JobTable table({}, [](const Pod&) { return true; }, true, {.read_write = {"/data"}});
  for (const char* path : {"/data/a", "/database"}) {
    Made made{.name = "p" + std::to_string(std::string(path).size()), .owner = "Job"};
    made.said = {{"preemptible", "checkpoint"}};
    made.spec = {{"runtimeClassName", "siding"},
                 {"volumes", Json::array({{{"name", "v"}, {"hostPath", {{"path", path}}}}})}};
    table.OnPods({{std::nullopt, made.Build()}});
  }
  const std::vector<Refusal> refusals = table.TakeRefusals();
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_EQ(refusals.front().pod.name, "p9");
  EXPECT_THAT(refusals.front().why, HasSubstr("kubernetes.host_paths"));
}

// The administrator has taken the folder back while the job was away.
class JobWithoutItsFolderTest : public ::testing::Test {
 protected:
  static Made Of(const std::string& name, std::map<std::string, std::string> marks = {}) {
    Made made{.name = name, .said = std::move(marks), .node = "n1", .owner = "Job"};
    made.said["preemptible"] = "checkpoint";
    made.spec = {{"runtimeClassName", "siding"},
                 {"volumes", Json::array({{{"name", "v"}, {"hostPath", {{"path", "/data"}}}}})}};
    return made;
  }
  void Add(const Made& made) { table_.OnPods({{std::nullopt, made.Build()}}); }
  void Park() {
    DesiredState::Next next{
        .labels = {{"owner", "Job/train"}, {"owner-uid", "uid-train"}, {"namespace", "d"}},
        .starts = 1,
        .how = DesiredState::Next::How::kImage};
    table_.OnNext({{JobId(7), next}});
  }
  void ExpectHeir() {
    const auto found = table_.FindUnnumbered().pods;
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found.front().heir, JobId(7));
    ASSERT_THAT(table_.PlainPods(), SizeIs(1));
    EXPECT_FALSE(table_.PlainPods().front().for_good);
  }

  JobTable table_{{}, [](const Pod&) { return true; }, true};
};

TEST_F(JobWithoutItsFolderTest, ItGoesOnWithItsNextPod) {
  Park();
  Add(Of("b"));
  EXPECT_THAT(table_.TakeRefusals(), IsEmpty());
  ExpectHeir();
}
TEST_F(JobWithoutItsFolderTest, AlsoWithOneThatWasThereBeforeIt) {
  Add(Of("b"));
  ASSERT_THAT(table_.PlainPods(), SizeIs(1));
  EXPECT_FALSE(table_.PlainPods().front().for_good) << "it is not known whether anything goes on";
  Park();
  ExpectHeir();
}
TEST_F(JobWithoutItsFolderTest, ItStaysOneThatGoesOn) {
  Add(Of("b", {{"job", "7"}, {"starts", "2"}}));
  EXPECT_EQ(table_.TakeChanges().jobs.front().spec.labels.at("owner-uid"), "uid-train");
  Park();
  EXPECT_EQ(table_.TakeChanges().jobs.front().spec.labels.at("owner-uid"), "uid-train");
  const std::vector<PodTask> tasks = table_.Tasks();
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks.front().next.how, DesiredState::Next::How::kImage);
}
TEST_F(JobWithoutItsFolderTest, OneWithoutAnythingToGoOnWithIsRefused) {
  table_.OnNext({});
  Add(Of("b"));
  EXPECT_THAT(table_.TakeRefusals(), SizeIs(1));
  EXPECT_TRUE(table_.PlainPods().front().for_good);
}
// It has begun by itself.
TEST_F(JobWithoutItsFolderTest, APodThatNoAgentIsAskedAboutIsNoHeir) {
  Park();
  Made made = Of("b");
  made.spec = Json::object();
  made.said["preemptible"] = "checkpoint,kill";
  Add(made);
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
}

class JobThatGoesOnTest : public JobTableTest {
 protected:
  JobThatGoesOnTest() : JobTableTest(true) {}
  // A pod of the Job "train".
  static Made Of(const std::string& name, std::map<std::string, std::string> marks = {}) {
    Made made{.name = name, .said = std::move(marks)};
    made.said["preemptible"] = "checkpoint";
    made.spec = {{"runtimeClassName", "siding"}};
    made.owner = "Job";
    return made;
  }
  static DesiredState::Next Next(DesiredState::Next::How how = DesiredState::Next::How::kNotYet) {
    return {.labels = {{"owner", "Job/train"}, {"owner-uid", "uid-train"}, {"namespace", "d"}},
            .starts = 1,
            .how = how};
  }
  void AddRunning(int starts = 1) {
    Made made = Of("a", {{"job", "7"}, {"starts", absl::StrCat(starts)}});
    made.node = "n1";
    made.phase = "Running";
    Add(made);
  }
  // The cluster has ended it.
  void AddEvicted(const std::string& name = "a", int starts = 1) {
    Made made = Of(name, {{"job", "7"}, {"starts", absl::StrCat(starts)}});
    made.node = "n1";
    made.phase = "Failed";
    made.reason = "Evicted";
    Add(made);
  }
  PodTask Task() {
    const std::vector<PodTask> tasks = table_.Tasks();
    EXPECT_THAT(tasks, SizeIs(1));
    return tasks.empty() ? PodTask() : tasks.front();
  }
};
using How = DesiredState::Next::How;

TEST_F(JobThatGoesOnTest, ItIsKnownByItsOwner) {
  AddRunning();
  EXPECT_EQ(Job().spec.labels.at("owner-uid"), "uid-train");
}
TEST_F(JobThatGoesOnTest, CheckpointAloneIsEnough) {
  Add(Of("a"));
  EXPECT_THAT(table_.TakeRefusals(), IsEmpty());
}
TEST_F(JobThatGoesOnTest, WithoutKillItMustBeAbleToBeSaved) {
  Made made = Of("a");
  made.spec = Json::object();
  Add(made);
  EXPECT_THAT(Refused(), HasSubstr("it cannot be saved, for spec.runtimeClassName is not siding"));
}
TEST_F(JobThatGoesOnTest, WithoutAPodItWaits) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  Remove("a");
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kWaiting);
  EXPECT_EQ(job.starts, 1);
}
TEST_F(JobThatGoesOnTest, ItWaitsAlsoForOneWhoHasJustBegunToLook) {
  table_.OnNext({{JobId(7), Next()}});
  EXPECT_EQ(Job().phase, ManagedPhase::kWaiting);
}
TEST_F(JobThatGoesOnTest, WithoutAnOwnerThatMakesPodsItIsGone) {
  table_.OnNext({{JobId(7), Next()}});
  table_.TakeChanges();
  ASSERT_THAT(table_.Orphans(), SizeIs(1));
  EXPECT_EQ(table_.Orphans().front().owner, (ObjectName{"d", "train"}));
  EXPECT_EQ(table_.Orphans().front().uid, "uid-train");
  table_.OnOwnerGone(JobId(7));
  EXPECT_THAT(table_.TakeChanges().gone_jobs, ElementsAre(JobId(7)));
  EXPECT_THAT(table_.Orphans(), IsEmpty());
}
TEST_F(JobThatGoesOnTest, WithAPodItIsNoOrphan) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  EXPECT_THAT(table_.Orphans(), IsEmpty());
}
TEST_F(JobThatGoesOnTest, TheNextPodOfItsOwnerIsItsHeir) {
  table_.OnNext({{JobId(7), Next()}});
  Add(Of("b"));
  const auto found = table_.FindUnnumbered().pods;
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().heir, JobId(7));
  EXPECT_EQ(found.front().starts, 2);
}
TEST_F(JobThatGoesOnTest, EachHasOneHeir) {
  table_.OnNext({{JobId(7), Next()}});
  Add(Of("b"));
  Add(Of("c"));
  const auto found = table_.FindUnnumbered().pods;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].heir, JobId(7));
  EXPECT_EQ(found[1].heir, std::nullopt);
}
TEST_F(JobThatGoesOnTest, TheFirstOneGoesOnFirst) {
  table_.OnNext({{JobId(7), Next()}, {JobId(9), Next()}});
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, JobId(7));
}
TEST_F(JobThatGoesOnTest, APodOfAnotherOwnerIsNone) {
  DesiredState::Next other = Next();
  other.labels["owner-uid"] = "uid-other";
  table_.OnNext({{JobId(7), other}});
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
}
TEST_F(JobThatGoesOnTest, OneThatHasAPodHasNoHeir) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
}
TEST_F(JobThatGoesOnTest, OneWhosePodIsLeavingHasOne) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  Made leaving = Of("a", {{"job", "7"}});
  leaving.node = "n1";
  leaving.deleting = true;
  Add(leaving);
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, JobId(7));
}
TEST_F(JobThatGoesOnTest, OneWhosePodHasDoneItsWorkHasNone) {
  table_.OnNext({{JobId(7), Next()}});
  Made done = Of("a", {{"job", "7"}});
  done.node = "n1";
  done.phase = "Succeeded";
  Add(done);
  Add(Of("b"));  // the Job's next piece of work
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
}
TEST_F(JobThatGoesOnTest, OneWhosePodRunsOnForItselfHasNone) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  table_.TakeChanges();
  Made withdrawn{.name = "a", .node = "n1", .phase = "Running"};  // its user has taken its annotations away
  Add(withdrawn);
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
  EXPECT_THAT(table_.TakeChanges().gone_jobs, ElementsAre(JobId(7)));
}
TEST_F(JobThatGoesOnTest, TheNumberOfOneThatRunsOnForItselfIsNotGivenAgain) {
  AddRunning();
  Add({.name = "a", .node = "n1", .phase = "Running"});
  EXPECT_EQ(table_.FindUnnumbered().highest, JobId(7));
}
TEST_F(JobThatGoesOnTest, OneWhosePodIsRemovedAfterItWasTakenBackWaits) {
  AddRunning();
  table_.OnNext({{JobId(7), Next()}});
  Add({.name = "a", .node = "n1", .phase = "Running"});
  table_.TakeChanges();
  Remove("a");  // it was saved already
  EXPECT_EQ(Job().phase, ManagedPhase::kWaiting);
}
TEST_F(JobThatGoesOnTest, OneWhosePodIsTakenBackAfterTheClusterHasEndedItWaits) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted();
  table_.TakeChanges();
  Add({.name = "a", .node = "n1", .phase = "Failed", .reason = "Evicted"});
  EXPECT_EQ(Job().phase, ManagedPhase::kWaiting);
}
TEST_F(JobThatGoesOnTest, ItsIndexInItsJobCounts) {
  DesiredState::Next second = Next();
  second.labels["place"] = "1";
  table_.OnNext({{JobId(7), second}});
  Made first = Of("b");
  first.index = "0";
  Add(first);
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, std::nullopt);
}
TEST_F(JobThatGoesOnTest, ANumberOfStartsIsNotGivenTwice) {
  table_.OnNext({{JobId(7), Next()}});
  AddRunning(2);  // and goes before its start was recorded
  Remove("a");
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().starts, 3);
}
TEST_F(JobThatGoesOnTest, APodThatFailedBecauseItWasEvictedDoesNotEndIt) {
  table_.OnNext({{JobId(7), Next()}});
  Made made = Of("a", {{"job", "7"}});
  made.node = "n1";
  made.phase = "Failed";
  made.deleting = true;
  Add(made);
  EXPECT_EQ(Job().phase, ManagedPhase::kEnding);
  EXPECT_EQ(Task().succeeded, std::nullopt);
}
TEST_F(JobThatGoesOnTest, APodThatFailedByItselfEndsIt) {
  table_.OnNext({{JobId(7), Next()}});
  Made made = Of("a", {{"job", "7"}});
  made.node = "n1";
  made.phase = "Failed";
  Add(made);
  EXPECT_EQ(Job().phase, ManagedPhase::kOver);
  EXPECT_EQ(Task().succeeded, false);
}
TEST_F(JobThatGoesOnTest, OneWhosePodTheClusterHasEndedWaitsForTheNext) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted();
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kWaiting);
  EXPECT_THAT(job.nodes, IsEmpty());
}
TEST_F(JobThatGoesOnTest, ItsTaskIsOverAndHasNotFailed) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted();
  EXPECT_TRUE(Task().disrupted);
  EXPECT_EQ(Task().succeeded, std::nullopt);
}
TEST_F(JobThatGoesOnTest, ThePodAfterOneThatTheClusterHasEndedIsItsHeir) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted();
  Add(Of("b"));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().heir, JobId(7));
  EXPECT_EQ(table_.FindUnnumbered().pods.front().starts, 2);
}
TEST_F(JobThatGoesOnTest, PodsThatTheClusterHasEndedDoNotCountBesideALaterOne) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted("a", 1);
  AddEvicted("b", 2);
  Made third = Of("c", {{"job", "7"}, {"starts", "3"}});
  third.node = "n2";
  third.phase = "Running";
  Add(third);
  EXPECT_THAT(Job().nodes, ElementsAre(NodeId("n2")));
  third.phase = "Succeeded";
  Add(third);
  const ManagedJob job = Job();
  EXPECT_EQ(job.phase, ManagedPhase::kOver);
  EXPECT_TRUE(job.succeeded);
}
TEST_F(JobThatGoesOnTest, EachPodThatTheClusterHasEndedIsATaskOfItsOwnStart) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted("a", 1);
  AddEvicted("b", 2);
  const std::vector<PodTask> tasks = table_.Tasks();
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_EQ(tasks[0].id, (TaskId{JobId(7), 2, 0}));
  EXPECT_EQ(tasks[1].id, (TaskId{JobId(7), 1, 0}));
}
TEST_F(JobThatGoesOnTest, NumbersOfStartsThatWereSeenBeforeItWasKnownToGoOnAreNotGivenAgain) {
  AddEvicted("a", 1);
  AddEvicted("b", 2);
  table_.OnNext({{JobId(7), Next()}});
  Add(Of("c"));
  const auto without = table_.FindUnnumbered();
  ASSERT_THAT(without.pods, SizeIs(1));
  EXPECT_EQ(without.pods[0].starts, 3);
}
TEST_F(JobThatGoesOnTest, BeforeItIsKnownToGoOnItIsNotOverBecauseOfItsPod) {
  AddEvicted();
  EXPECT_TRUE(Task().disrupted);
}
TEST_F(JobThatGoesOnTest, OneWhosePodTheClusterHasEndedIsOverWithItsOwner) {
  table_.OnNext({{JobId(7), Next()}});
  AddEvicted();
  table_.TakeChanges();
  ASSERT_THAT(table_.Orphans(), SizeIs(1));
  table_.OnOwnerGone(JobId(7));
  EXPECT_EQ(Job().phase, ManagedPhase::kOver);
  EXPECT_TRUE(Task().disrupted);
  EXPECT_THAT(table_.Orphans(), IsEmpty());
}
TEST_F(JobThatGoesOnTest, OneOfWhichNothingIsRecordedIsOverWithItsPod) {
  table_.OnNext({});
  AddEvicted();
  EXPECT_EQ(Job().phase, ManagedPhase::kOver);
}
TEST_F(JobThatGoesOnTest, ItsFirstStartIsFromItsBeginning) {
  AddRunning();
  EXPECT_EQ(Task().next.how, How::kBeginning);
}
TEST_F(JobThatGoesOnTest, ALaterOneIsAsSidingSays) {
  table_.OnNext({{JobId(7), Next(How::kImage)}});
  AddRunning(2);
  EXPECT_EQ(Task().next.how, How::kImage);
}
TEST_F(JobThatGoesOnTest, OneThatIsRecordedIsNotMadeAgain) {
  DesiredState::Next next = Next(How::kImage);
  next.starts = 2;
  table_.OnNext({{JobId(7), next}});
  AddRunning(2);
  EXPECT_EQ(Task().next.how, How::kNotYet);
}
TEST_F(JobThatGoesOnTest, AnHeirOfOneThatHasEndedMeanwhileBegins) {
  table_.OnNext({});
  AddRunning(2);
  EXPECT_EQ(Task().next.how, How::kBeginning);
}
TEST_F(JobThatGoesOnTest, BeforeItIsKnownWhatGoesOnNoneBegins) {
  AddRunning(2);
  EXPECT_EQ(Task().next.how, How::kNotYet);
}
TEST_F(JobThatGoesOnTest, OneWhoseStartIsOverIsNotStartedAgain) {
  DesiredState::Next next = Next(How::kImage);
  next.starts = 2;
  table_.OnNext({{JobId(7), next}});
  AddRunning(2);
  EXPECT_TRUE(Task().start_is_over);
}
TEST_F(JobThatGoesOnTest, APodThatEndsStaysATaskBesideTheOneInItsPlace) {
  table_.OnNext({{JobId(7), Next()}});
  Made leaving = Of("a", {{"job", "7"}});
  leaving.node = "n1";
  leaving.deleting = true;
  Add(leaving);
  Made heir = Of("b", {{"job", "7"}, {"starts", "2"}});
  heir.node = "n1";
  Add(heir);
  const std::vector<PodTask> tasks = table_.Tasks();
  ASSERT_THAT(tasks, SizeIs(2));
  EXPECT_EQ(tasks[0].id, (TaskId{JobId(7), 2, 0}));
  EXPECT_EQ(tasks[1].id, (TaskId{JobId(7), 1, 0}));
  EXPECT_EQ(tasks[1].uid, "uid-a");
}
TEST_F(JobThatGoesOnTest, APodThatFailsWhenItIsDeletedIsOverBeforeItsObjectIsGone) {
  table_.OnNext({{JobId(7), Next()}});
  Made deleted = Of("a", {{"job", "7"}});
  deleted.node = "n1";
  deleted.deleting = true;
  Add(deleted);
  EXPECT_FALSE(Task().is_over()) << "its processes are given time to end";
  deleted.phase = "Failed";
  Add(deleted);
  EXPECT_TRUE(Task().failed_deleted);
  EXPECT_EQ(Task().succeeded, std::nullopt) << "which says nothing of its work";
}
TEST_F(JobThatGoesOnTest, APodWhoseOwnerIsGoneStaysItsJob) {
  AddRunning();
  Made made = Of("a", {{"job", "7"}});
  made.node = "n1";
  made.phase = "Running";
  made.owner = "";
  Add(made);
  EXPECT_THAT(table_.TakeRefusals(), IsEmpty());
  EXPECT_THAT(Task().not_saved, HasSubstr("no owner"));
}
TEST_F(JobThatGoesOnTest, APodThatIsAboutToBeATaskIsNotLetStart) {
  Made made = Of("a");
  made.node = "n1";
  Add(made);
  ASSERT_THAT(table_.PlainPods(), SizeIs(1));
  EXPECT_FALSE(table_.PlainPods().front().for_good);
}
TEST_F(JobThatGoesOnTest, WhatIsNotSavedIsSaid) {
  Made made = Of("a", {{"job", "7"}});
  made.said["preemptible"] = "checkpoint,kill";
  made.node = "n1";
  made.owner = "";
  Add(made);
  EXPECT_THAT(Task().not_saved, HasSubstr("no owner"));
}
TEST_F(JobThatGoesOnTest, WhatIsMadeBySidingRuncAndIsNoTaskIsListed) {
  AddRunning();  // a task
  Add({.name = "b", .node = "n1", .spec = {{"runtimeClassName", "siding"}}});
  ASSERT_THAT(table_.PlainPods(), SizeIs(1));
  EXPECT_EQ(table_.PlainPods().front().uid, "uid-b");
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
