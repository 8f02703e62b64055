#include "controller/platform/kubernetes/kubernetes_platform.h"

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The cluster as the engine would know it.
class Engine final : public PlatformListener, public NodeSpeaker {
 public:
  void Round(const ClusterNow& now, Time) override {
    MutexLock lock(mutex_);
    now_ = now;
    ++rounds_;
    changed_.NotifyAll();
  }
  std::vector<Eviction> Unwanted(const ClusterNow& now, Time) override {
    MutexLock lock(mutex_);
    if (!unwanted_.empty()) as_ordered();
    std::vector<Eviction> evicted;
    if (needed_by_ && !jobs_.contains(*needed_by_)) return evicted;
    for (const PodTask& task : now.tasks) {
      if (unwanted_.contains(task.id.job))
        evicted.push_back({task.id.job, task.pod, task.uid, at_once, saved, only_ask});
    }
    return evicted;
  }
  bool IsUnwanted(const Eviction& eviction) override {
    MutexLock lock(mutex_);
    ++asked_;
    changed_.NotifyAll();
    return !taken_back_late && unwanted_.contains(eviction.job);
  }
  std::optional<Outlook> OutlookOf(JobId) override {
    return Outlook{.refused = true, .text = "no node can be free"};
  }
  // It was asked about an eviction, right before it.
  void AwaitAsked() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience,
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_ > 0; }));
  }
  JobId HighestJob() override { return highest; }
  // Set before the start alone: the platform's thread reads them.
  JobId highest{0};
  // Called in each round in which something is to be evicted.
  std::function<void()> as_ordered = [] {};
  bool at_once = false;  // evicted
  bool saved = false;    // they are
  bool only_ask = false;
  bool taken_back_late = false;  // evictions, while the round's calls are made
  // With `needed_by`: only as long as that job is there.
  void Evict(JobId job, std::optional<JobId> needed_by = {}) {
    MutexLock lock(mutex_);
    unwanted_.insert(job);
    needed_by_ = needed_by;
  }
  // The next one has begun. After two of them a whole round has passed that saw what was there before.
  ClusterNow AwaitRound() {
    MutexLock lock(mutex_);
    const int before = rounds_;
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience,
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rounds_ > before; }));
    return now_;
  }
  void OnChanges(ManagerChanges changes) override {
    MutexLock lock(mutex_);
    for (ManagedJob& job : changes.jobs) jobs_[job.id] = std::move(job);
    for (const JobId& job : changes.gone_jobs) jobs_.erase(job);
    for (ManagedNode& node : changes.nodes) nodes_[node.id] = std::move(node);
    ++heard_;
    changed_.NotifyAll();
  }
  template <class Condition>
  void Await(Condition condition) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return heard_ > 0 && condition(jobs_);
    }));
  }
  ManagedJob AwaitJob(JobId id, ManagedPhase phase) {
    ManagedJob job;
    Await([&](const auto& jobs) {
      const auto found = jobs.find(id);
      if (found == jobs.end() || found->second.phase != phase) return false;
      job = found->second;
      return true;
    });
    return job;
  }
  size_t nodes() {
    MutexLock lock(mutex_);
    return nodes_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<JobId, ManagedJob> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeId, ManagedNode> nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<JobId> unwanted_ ABSL_GUARDED_BY(mutex_);
  std::optional<JobId> needed_by_ ABSL_GUARDED_BY(mutex_);
  ClusterNow now_ ABSL_GUARDED_BY(mutex_);
  int rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  int heard_ ABSL_GUARDED_BY(mutex_) = 0;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class KubernetesPlatformTest : public testing::Test {
 protected:
  KubernetesPlatformTest() {
    for (const char* name : {"n1", "n2"}) {
      Put("nodes", {"", name},
          {{"status",
            {{"allocatable", {{"cpu", "2"}}},
             {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
    }
  }
  void Start(std::unique_ptr<Transport> transport = nullptr, PlatformOptions options = {}) {
    if (!transport) transport = transport_.Borrow();
    options.round = std::chrono::milliseconds(5);
    options.least_apart = Duration(0);  // the clock stands still
    platform_ = NewKubernetesPlatform(std::move(transport), pacer_, clock_, options);
    platform_->Start(engine_, engine_);
  }
  void Put(const std::string& plural, const ObjectName& name, const Json& object) {
    transport_.Do([&](FakeApiServer& server) { server.store().Put(plural, name, object); });
  }
  void AddPod(const std::string& name, const Json& annotations) {
    Put("pods", {"d", name},
        {{"metadata", {{"annotations", annotations}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
         {"spec",
          {{"schedulerName", "siding"},
           {"containers", Json::array({{{"resources", {{"requests", {{"cpu", "1"}}}}}}})}}}});
  }
  // Batch work with the number 5, as siding wrote it.
  void AddNumbered(const std::string& name, Json pod = Json::object()) {
    const std::string key(Seal::kKeySize, 'k');
    Put("secrets", {"siding", "siding-seal"}, {{"data", {{"key", absl::Base64Escape(key)}}}});
    pod["metadata"]["uid"] = "uid-" + name;
    pod["metadata"]["annotations"] = {{"siding.dev/preemptible", "kill"},
                                      {"siding.dev/job", "5"},
                                      {"siding.dev/seal", Seal(key).Of("uid-" + name, "5", "")}};
    Put("pods", {"d", name}, pod);
  }
  // Job 5, on n1; the watch of nodes is held.
  void ExpectEvictedWhenItsNodeIsSeenToBeKept() {
    EXPECT_TRUE(Eventually([&] { return CountAsked("PATCH /api/v1/nodes/n1") > 0; }));
    for (int round = 0; round < 5; ++round) engine_.AwaitRound();
    EXPECT_EQ(CountAsked("victim/eviction"), 0);
    transport_.Hold("nodes", false);
    engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
  }
  static DesiredState KeptFor(JobId job, const std::string& node) {
    DesiredState desired;
    desired.kept[job] = {{NodeId(node)}, "d", {}};
    desired.jobs[job] = {.nodes = {NodeId(node)}, .why = "is to start"};
    return desired;
  }
  // How many times something of this kind was asked for.
  int64_t CountAsked(const std::string& what) {
    int64_t count = 0;
    for (const std::string& asked : transport_.asked())
      count += asked.find(what) != std::string::npos ? 1 : 0;
    return count;
  }

  // Its finalizer was gone before it was evicted for the first time. It may be patched once more before the
  // watch has told of that: the version is an older one then, and the server refuses.
  void ExpectUncountedBeforeEvicted(const std::string& pod) {
    const std::vector<std::string> asked = transport_.asked();
    const std::string path = " /api/v1/namespaces/d/pods/" + pod;
    const auto patched = std::find(asked.begin(), asked.end(), "PATCH" + path);
    EXPECT_NE(patched, asked.end());
    EXPECT_LT(patched, std::find(asked.begin(), asked.end(), "POST" + path + "/eviction"));
    const auto object = client_.Get(Pods(), {"d", pod});
    EXPECT_TRUE(!object.ok() || ListAt(*object->json, {"metadata", "finalizers"}).empty());
  }

  // What is said on a pod.
  std::vector<std::string> EventsOf(const std::string& pod) {
    std::vector<std::string> texts;
    const auto events = client_.List(Events(), {});
    if (!events.ok()) return texts;
    for (const Object& event : events->items)
      if (TextAt(*event.json, {"involvedObject", "name"}) == pod)
        texts.push_back(TextAt(*event.json, {"message"}));
    return texts;
  }
  // Time passes meanwhile.
  template <class Condition>
  void AwaitWhile(Condition condition) {
    EXPECT_TRUE(Eventually([&] {
      clock_.Advance(std::chrono::seconds(1));
      return condition();
    }));
  }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_{{.resources = {Pods(),
                                       Nodes(),
                                       ConfigMaps(),
                                       Events(),
                                       Secrets(),
                                       OnDemandRequests(),
                                       {"batch", "v1", "jobs", true},
                                       {"policy", "v1", "poddisruptionbudgets", true}}}};
  FakeTransport transport_{server_, clock_, FakeTransport::Watching::kOn};
  ApiClient client_{transport_, pacer_};
  Engine engine_;
  std::unique_ptr<KubernetesPlatform> platform_;  // last: it uses the others
};

const Json kDeadline = {{"siding.dev/start-by", "2026-01-01T01:00:00Z"}};

TEST_F(KubernetesPlatformTest, AnEmptyClusterIsHeardOfOnce) {
  Start();
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
  EXPECT_EQ(engine_.nodes(), 2);
}
TEST_F(KubernetesPlatformTest, APodThatAsksIsNumberedAndHeardOf) {
  Start();
  AddPod("a", kDeadline);
  const ManagedJob job = engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  EXPECT_EQ(job.spec.name, "a");
  EXPECT_EQ(job.spec.kind, JobKind::kOnDemand);
  EXPECT_THAT(*platform_->NodesFor(job.spec), ElementsAre(NodeId("n1"), NodeId("n2")));
}
TEST_F(KubernetesPlatformTest, AJobIsNamedByItsPodOrWithoutOneByItsNumber) {
  Start();
  AddPod("a", kDeadline);
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  EXPECT_THAT(platform_->WhoIs(JobId(1)), testing::MatchesRegex("d/a \\(UID .+\\)"));
  EXPECT_EQ(platform_->WhoIs(JobId(2)), "job 2");
}
TEST_F(KubernetesPlatformTest, WhatIsDesiredIsBroughtAbout) {
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  platform_->SetDesired(KeptFor(JobId(1), "n2"));
  EXPECT_THAT(engine_.AwaitJob(JobId(1), ManagedPhase::kRunning).nodes, ElementsAre(NodeId("n2")));
}
// ---- Jobs that go on with the next pod of their owner. ----

class SavingPlatformTest : public KubernetesPlatformTest {
 protected:
  void StartSaving() {
    PlatformOptions options;
    options.saves = true;
    options.look_for_owner = Duration(0);
    Start(nullptr, options);
  }
  void AddPodOfJob(const std::string& name) {
    Put("pods", {"d", name},
        {{"metadata",
          {{"annotations", {{"siding.dev/preemptible", "checkpoint"}}},
           {"ownerReferences",
            Json::array(
                {{{"kind", "Job"}, {"name", "train"}, {"uid", "uid-train"}, {"controller", true}}})}}},
         {"spec", {{"runtimeClassName", "siding"}, {"containers", Json::array({{{"name", "main"}}})}}}});
  }
  void AddOwner(const Json& job = Json::object()) {
    Json owner = job;
    owner["metadata"]["uid"] = "uid-train";
    Put("jobs", {"d", "train"}, owner);
  }
  // Job 5 of "train" is to go on.
  static DesiredState Next() {
    DesiredState desired;
    desired.next[JobId(5)] = {
        .labels = {{"owner", "Job/train"}, {"owner-uid", "uid-train"}, {"namespace", "d"}}, .starts = 1};
    return desired;
  }
};

TEST_F(SavingPlatformTest, NoPodHasANumberBeforeItIsKnownWhoGoesOn) {
  AddPodOfJob("a");
  StartSaving();
  engine_.AwaitRound();
  engine_.AwaitRound();
  EXPECT_EQ(CountAsked("PATCH /api/v1/namespaces/d/pods"), 0);
  platform_->SetDesired({});
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
}
TEST_F(SavingPlatformTest, TheNextPodOfItsOwnerHasItsNumber) {
  AddOwner();
  StartSaving();
  platform_->SetDesired(Next());
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  AddPodOfJob("b");
  engine_.Await([](const auto& jobs) { return jobs.contains(JobId(5)) && jobs.at(JobId(5)).starts == 2; });
}
TEST_F(SavingPlatformTest, WithoutItsOwnerTheJobIsGone) {
  AddOwner();
  StartSaving();
  platform_->SetDesired(Next());
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  AddOwner({{"status", {{"conditions", Json::array({{{"type", "Failed"}, {"status", "True"}}})}}}});
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
}
TEST_F(SavingPlatformTest, AnOwnerThatCannotBeReadSaysNothing) {
  AddOwner();
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "/jobs/", .times = 3, .code = 403});
  StartSaving();
  platform_->SetDesired(Next());
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  for (int round = 0; round < 5; ++round) engine_.AwaitRound();
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
}
TEST_F(SavingPlatformTest, NothingIsSaidOfJobsBeforeItIsKnownWhoGoesOn) {
  AddOwner();
  AddNumbered(
      "a",
      {{"metadata",
        {{"ownerReferences",
          Json::array({{{"kind", "Job"}, {"name", "train"}, {"uid", "uid-train"}, {"controller", true}}})}}},
       {"spec", {{"nodeName", "n1"}}},
       {"status", {{"phase", "Failed"}, {"reason", "Evicted"}}}});
  StartSaving();
  engine_.AwaitRound();
  engine_.AwaitRound();
  EXPECT_EQ(engine_.nodes(), 0);
  platform_->SetDesired(Next());
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
}
TEST_F(SavingPlatformTest, APodThatIsSavedIsNotCountedAndGoesAtOnce) {
  AddNumbered("a", {{"metadata", {{"finalizers", {"batch.kubernetes.io/job-tracking"}}}},
                    {"spec", {{"nodeName", "n1"}}},
                    {"status", {{"phase", "Running"}}}});
  engine_.at_once = true;
  StartSaving();
  platform_->SetDesired({});
  engine_.AwaitJob(JobId(5), ManagedPhase::kRunning);
  engine_.Evict(JobId(5));
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
  ExpectUncountedBeforeEvicted("a");
}

TEST_F(KubernetesPlatformTest, NothingIsTakenBackBeforeItIsKnownWhatIsDesired) {
  const Json kept = Json::array({{{"key", "siding.dev/kept-for"}, {"value", "9"}, {"effect", "NoSchedule"}}});
  Put("nodes", {"", "n1"}, {{"spec", {{"taints", kept}}}});
  Start();
  AddPod("a", kDeadline);
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  EXPECT_EQ(CountAsked("PATCH /api/v1/nodes"), 0);
}
TEST_F(KubernetesPlatformTest, TheNamespaceOfItsOwnObjectsIsTheOneThatIsSet) {
  AddPod("a", kDeadline);
  Start(nullptr, {.space = "elsewhere"});
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  EXPECT_GT(CountAsked("POST /api/v1/namespaces/elsewhere/configmaps"), 0);
  EXPECT_GT(CountAsked("POST /api/v1/namespaces/elsewhere/secrets"), 0);
  EXPECT_EQ(CountAsked("POST /api/v1/namespaces/siding"), 0);
}
TEST_F(KubernetesPlatformTest, WhatFailsIsTriedAgain) {
  AddPod("a", kDeadline);
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "pods/a",
                  .method = HttpMethod::kPatch,
                  .times = 3,
                  .code = 500});
  transport_.Add({.kind = Fault::Kind::kAnswerLost, .path = "configmaps", .method = HttpMethod::kPost});
  Start();
  AwaitWhile([&] { return CountAsked("PATCH /api/v1/namespaces/d/pods/a") >= 4; });
  // The first number was taken without an answer, and three were given in vain.
  const ManagedJob job = engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  EXPECT_EQ(job.spec.name, "a");
}
// A patch that the server does not take, as of a pod whose annotations leave no room for another one.
TEST_F(KubernetesPlatformTest, OnePodsErrorIsThatPods) {
  AddPod("a", kDeadline);
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "pods/a",
                  .method = HttpMethod::kPatch,
                  .times = 1000,
                  .code = 422});
  Start();
  for (const char* name : {"b", "c"}) AddPod(name, kDeadline);
  engine_.Await([](const auto& jobs) { return jobs.size() == 2; });
  for (int round = 0; round < 50; ++round) engine_.AwaitRound();
  EXPECT_LE(CountAsked("PATCH /api/v1/namespaces/d/pods/a"), 10);
  AwaitWhile([&] { return CountAsked("PATCH /api/v1/namespaces/d/pods/a") >= 3; });
  EXPECT_TRUE(Eventually([&] { return !EventsOf("a").empty(); }));
  EXPECT_THAT(EventsOf("a"), ElementsAre(HasSubstr("siding cannot write its number on it: ")));
}
TEST_F(KubernetesPlatformTest, AMarkThatTheServerDoesNotTakeIsTriedAgainWithPauses) {
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "pods/a",
                  .method = HttpMethod::kPatch,
                  .times = 1000,
                  .code = 422});
  platform_->SetDesired(KeptFor(JobId(1), "n2"));
  engine_.AwaitJob(JobId(1), ManagedPhase::kRunning);
  for (int round = 0; round < 50; ++round) engine_.AwaitRound();
  // Once for its number. Watches that begin anew let some seconds pass.
  EXPECT_LE(CountAsked("PATCH /api/v1/namespaces/d/pods/a"), 10);
}
TEST_F(KubernetesPlatformTest, AControllerThatMayNotActOnlyLooks) {
  AddPod("a", kDeadline);
  AddNumbered("b");
  Start(
      NewGuardedTransport(transport_.Borrow(), [] { return absl::FailedPreconditionError("another acts"); }));
  platform_->SetDesired(KeptFor(JobId(5), "n1"));
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  engine_.AwaitRound();
  engine_.AwaitRound();
  platform_->Stop();
  for (const char* change : {"PATCH", "POST", "PUT", "DELETE"}) EXPECT_EQ(CountAsked(change), 0) << change;
}
TEST_F(KubernetesPlatformTest, ANumberThatIsRememberedIsNotGivenAgain) {
  engine_.highest = JobId(6);
  AddPod("a", kDeadline);
  Start();
  EXPECT_EQ(engine_.AwaitJob(JobId(7), ManagedPhase::kWaiting).spec.name, "a");
}
TEST_F(KubernetesPlatformTest, WhyAPodIsLeftAloneIsSaidOnItOnce) {
  for (const std::string round : {"b", "c"}) {
    Start();
    AddPod("a", {{"siding.dev/preemptible", "stop"}, {"round", round}});
    AddPod(round, kDeadline);
    engine_.AwaitJob(JobId(round == "b" ? 1 : 2), ManagedPhase::kWaiting);
    EXPECT_TRUE(
        Eventually([&] { return CountAsked("POST /api/v1/namespaces/d/events") >= (round == "b" ? 1 : 2); }));
  }
  platform_->Stop();
  const auto events = client_.List(Events(), {});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->items.size(), 1);
  const Json& event = *events->items.front().json;
  EXPECT_EQ(TextAt(event, {"involvedObject", "name"}), "a");
  EXPECT_THAT(TextAt(event, {"message"}), HasSubstr("siding.dev/preemptible: expected"));
}
TEST_F(KubernetesPlatformTest, PodsAreEvictedByTheirUid) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  Start();
  EXPECT_EQ(engine_.AwaitRound().tasks.size(), 1);
  platform_->SetDesired({});
  engine_.Evict(JobId(5));
  engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
  EXPECT_EQ(CountAsked("POST /api/v1/namespaces/d/pods/victim/eviction"), 1);
}
// In the moment between an eviction and the taint any other that waits would take the room.
TEST_F(KubernetesPlatformTest, NobodyIsEvictedFromANodeThatIsNotSeenToBeKept) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(6), ManagedPhase::kWaiting);
  transport_.Hold("nodes", true);
  DesiredState desired = KeptFor(JobId(6), "n1");
  platform_->SetDesired(desired);
  engine_.Evict(JobId(5));
  ExpectEvictedWhenItsNodeIsSeenToBeKept();
}
// The engine says it before it orders, which may be while the round asks what is ordered.
TEST_F(KubernetesPlatformTest, WhatIsOrderedIsAskedOfWhatIsDesiredByThen) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  AddPod("a", kDeadline);
  engine_.as_ordered = [this, told = false]() mutable {
    if (!std::exchange(told, true)) platform_->SetDesired(KeptFor(JobId(6), "n1"));
  };
  Start();
  platform_->SetDesired({});
  engine_.AwaitJob(JobId(6), ManagedPhase::kWaiting);
  transport_.Hold("nodes", true);
  engine_.Evict(JobId(5));
  ExpectEvictedWhenItsNodeIsSeenToBeKept();
}
// The calls before it may have taken half a minute.
TEST_F(KubernetesPlatformTest, WhatWasTakenBackMeanwhileEvictsNobody) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  engine_.taken_back_late = true;
  Start();
  platform_->SetDesired({});
  engine_.Evict(JobId(5));
  engine_.AwaitAsked();
  for (int round = 0; round < 2; ++round) engine_.AwaitRound();
  EXPECT_EQ(CountAsked("victim/eviction"), 0);
}
// That the pod is gone for which others are to leave is told in the round in which they would be evicted.
TEST_F(KubernetesPlatformTest, WhoIsNotNeededAnyMoreIsNotEvictedInTheSameRound) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(6), ManagedPhase::kWaiting);
  transport_.Hold("nodes", true);
  platform_->SetDesired(KeptFor(JobId(6), "n1"));
  engine_.Evict(JobId(5), JobId(6));
  for (int round = 0; round < 2; ++round) engine_.AwaitRound();
  transport_.Do([](FakeApiServer& server) { server.store().Remove("pods", {"d", "a"}); });
  engine_.Await([](const auto& jobs) { return !jobs.contains(JobId(6)); });
  for (int round = 0; round < 2; ++round) engine_.AwaitRound();
  EXPECT_EQ(CountAsked("victim/eviction"), 0);
}
TEST_F(KubernetesPlatformTest, APodThatEndsIsNotEvictedAgain) {
  AddNumbered("victim", {{"metadata", {{"deletionTimestamp", "2026-01-01T00:01:00Z"}}},
                         {"spec", {{"nodeName", "n1"}}},
                         {"status", {{"phase", "Running"}}}});
  Start();
  platform_->SetDesired({});
  engine_.Evict(JobId(5));
  for (int round = 0; round < 5; ++round) engine_.AwaitRound();
  EXPECT_EQ(CountAsked("victim/eviction"), 0);
}
// Nobody may write events, and each that is tried takes a server that answers slowly.
TEST_F(KubernetesPlatformTest, WhatCannotBeSaidKeepsNothingFromBeingDone) {
  transport_.Forbid(HttpMethod::kPost, "events");
  for (int i = 0; i < 300; ++i) AddPod(absl::StrCat("odd", i), {{"siding.dev/preemptible", "stop"}});
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  for (int round = 0; round < 10; ++round) engine_.AwaitRound();
  EXPECT_LE(CountAsked("POST /api/v1/namespaces/d/events"), 1);
}
TEST_F(KubernetesPlatformTest, NobodyIsEvictedBeforeItIsKnownForWhom) {
  AddNumbered("victim", {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
  Start();
  engine_.Evict(JobId(5));
  for (int round = 0; round < 5; ++round) engine_.AwaitRound();
  EXPECT_EQ(CountAsked("victim/eviction"), 0);
  platform_->SetDesired({});
  engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
}
TEST_F(KubernetesPlatformTest, WhatABudgetForbidsIsTriedAgainLater) {
  Put("poddisruptionbudgets", {"d", "b"},
      {{"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
  const Json ready = Json::array({{{"type", "Ready"}, {"status", "True"}}});
  AddNumbered("victim", {{"metadata", {{"labels", {{"app", "x"}}}}},
                         {"spec", {{"nodeName", "n1"}}},
                         {"status", {{"phase", "Running"}, {"conditions", ready}}}});
  Start();
  platform_->SetDesired({});
  engine_.Evict(JobId(5));
  for (int i = 0; i < 3; ++i) engine_.AwaitRound();
  EXPECT_LE(CountAsked("victim/eviction"), 1) << "not at every round";
  transport_.Do([](FakeApiServer& server) { server.store().Remove("poddisruptionbudgets", {"d", "b"}); });
  clock_.Advance(std::chrono::seconds(5));
  engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
}

// A pod that a budget keeps, and that is evicted nevertheless.
class KeptPodTest : public KubernetesPlatformTest {
 protected:
  void StartEvicting(bool saved) {
    Put("poddisruptionbudgets", {"d", "b"},
        {{"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
    const Json ready = Json::array({{{"type", "Ready"}, {"status", "True"}}});
    AddNumbered(
        "victim",
        {{"metadata", {{"labels", {{"app", "x"}}}, {"finalizers", {"batch.kubernetes.io/job-tracking"}}}},
         {"spec", {{"nodeName", "n1"}}},
         {"status", {{"phase", "Running"}, {"conditions", ready}}}});
    engine_.at_once = saved;
    engine_.saved = saved;
    Start();
    platform_->SetDesired({});
    engine_.Evict(JobId(5));
    AwaitEvictions(1);
  }
  void AwaitEvictions(int count) {
    EXPECT_TRUE(Eventually([&] { return CountAsked("victim/eviction") >= count; }));
    engine_.AwaitRound();
  }
  int64_t deletions() { return CountAsked("DELETE /api/v1/namespaces/d/pods/victim"); }
};

TEST_F(KeptPodTest, OneThatIsSavedIsDeletedAfterSomeRefusals) {
  StartEvicting(true);
  clock_.Advance(std::chrono::seconds(5));
  AwaitEvictions(2);
  EXPECT_EQ(deletions(), 0);
  clock_.Advance(std::chrono::seconds(5));
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
  EXPECT_EQ(deletions(), 1);
}
TEST_F(KeptPodTest, ItsJobDoesNotTakeItForFailed) {
  StartEvicting(true);
  ExpectUncountedBeforeEvicted("victim");
}
TEST_F(KeptPodTest, TheWordsOfTheBudgetAreSaidOnIt) {
  StartEvicting(true);
  clock_.Advance(std::chrono::seconds(10));
  AwaitEvictions(2);
  EXPECT_TRUE(Eventually([&] { return !EventsOf("victim").empty(); }));
  const absl::StatusOr<ListPage> events = client_.List(Events(), {.space = "d"});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->items.size(), 1);
  EXPECT_EQ(TextAt(*events->items.front().json, {"type"}), "Warning");
  EXPECT_THAT(TextAt(*events->items.front().json, {"message"}), HasSubstr("The disruption budget b needs"));
}
TEST_F(KeptPodTest, OneThatRunsIsNeverDeleted) {
  StartEvicting(false);
  for (int i = 2; i < 10; ++i) {
    clock_.Advance(std::chrono::seconds(5));
    AwaitEvictions(i);
  }
  EXPECT_EQ(deletions(), 0);
}
TEST_F(KeptPodTest, NorDoTwoBudgetsKeepOneThatIsSaved) {
  Put("poddisruptionbudgets", {"d", "c"}, {{"spec", {{"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
  StartEvicting(true);
  clock_.Advance(std::chrono::seconds(10));
  AwaitEvictions(2);
  EXPECT_EQ(deletions(), 1);
}
TEST_F(KeptPodTest, AServerThatIsBusyIsNoBudget) {
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "victim/eviction", .times = 1000, .code = 503});
  StartEvicting(true);
  clock_.Advance(std::chrono::seconds(10));
  AwaitEvictions(2);
  EXPECT_EQ(deletions(), 0);
}

TEST_F(KubernetesPlatformTest, WhatCannotBeWatchedIsNotKnown) {
  Start();
  EXPECT_EQ(engine_.AwaitRound().machines.size(), 2);
  transport_.Forbid(HttpMethod::kGet, "nodes");
  transport_.Do([](FakeApiServer& server) { server.Compact(); });
  transport_.EndWatches();
  AddPod("a", kDeadline);
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
}
TEST_F(KubernetesPlatformTest, ARequestIsAPodAndHasTheEnginesWord) {
  Start();
  Put("ondemandrequests", {"d", "steer"},
      {{"metadata", {{"creationTimestamp", "2026-01-01T00:00:00Z"}, {"generation", 1}}},
       {"spec",
        {{"startBy", "+60s"},
         {"template", {{"spec", {{"containers", Json::array({{{"name", "main"}}})}}}}}}}});
  const ManagedJob job = engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  EXPECT_EQ(FormatTime(job.spec.start_by), "2026-01-01T00:01:00.000Z");
  EXPECT_TRUE(Eventually([&] {
    const absl::StatusOr<Object> request = client_.Get(OnDemandRequests(), {"d", "steer"});
    return request.ok() && TextAt(*request->json, {"status", "reason"}) == "no node can be free";
  }));
}
// ---- One round. ----

class OneRoundTest : public KubernetesPlatformTest {
 protected:
  OneRoundTest() {
    for (const char* name : {"a", "b"})
      AddNumbered(name, {{"spec", {{"nodeName", "n1"}}}, {"status", {{"phase", "Running"}}}});
    engine_.Evict(JobId(5));
  }
  void Round(DesiredState desired = {}) {
    EXPECT_TRUE(rounds_->Begin(client_).ok());
    Mail mail{.nodes = All(Nodes()), .pods = All(Pods()), .desired = std::move(desired), .synced = true};
    before_ = transport_.asked().size();
    rounds_->Round(std::move(mail), engine_, engine_, [] { return std::nullopt; });
  }
  std::vector<ObjectChange> All(const Resource& resource) {
    std::vector<ObjectChange> changes;
    const absl::StatusOr<ListPage> page = client_.List(resource, {});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return changes;
    for (const Object& object : page->items) changes.push_back({std::nullopt, object});
    return changes;
  }
  // In the round, of these objects.
  std::vector<std::string> Asked(const std::string& what) {
    std::vector<std::string> found;
    const std::vector<std::string> asked = transport_.asked();
    for (size_t i = before_; i < asked.size(); ++i)
      if (asked[i].find(what) != std::string::npos) found.push_back(asked[i]);
    return found;
  }

  std::unique_ptr<Rounds> rounds_ = NewRounds(clock_, {});
  size_t before_ = 0;
};

TEST_F(OneRoundTest, EvictionsComeBeforeWhatOnlyTells) {
  DesiredState desired;
  desired.jobs[JobId(5)].why = "is to end";
  Round(desired);
  EXPECT_THAT(
      Asked("namespaces/d/pods/"),
      ElementsAre("POST /api/v1/namespaces/d/pods/a/eviction", "POST /api/v1/namespaces/d/pods/b/eviction",
                  "PATCH /api/v1/namespaces/d/pods/a", "PATCH /api/v1/namespaces/d/pods/b"));
}
TEST_F(OneRoundTest, APodThatItsJobDoesNotCountIsNotPatchedAgain) {
  AddNumbered("c", {{"metadata", {{"finalizers", {"batch.kubernetes.io/job-tracking"}}}},
                    {"spec", {{"nodeName", "n1"}}},
                    {"status", {{"phase", "Running"}}}});
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "c/eviction", .times = 1000, .code = 503});
  engine_.at_once = true;
  Round();
  EXPECT_THAT(Asked("pods/c"),
              ElementsAre("PATCH /api/v1/namespaces/d/pods/c", "POST /api/v1/namespaces/d/pods/c/eviction"));
  clock_.Advance(std::chrono::seconds(5));
  Round();
  EXPECT_THAT(Asked("pods/c"), ElementsAre("POST /api/v1/namespaces/d/pods/c/eviction"));
}
TEST_F(OneRoundTest, WithoutAServerItEnds) {
  transport_.Add({.path = "/eviction", .times = 1000});
  DesiredState desired;
  desired.jobs[JobId(5)].why = "is to end";
  Round(desired);
  EXPECT_THAT(Asked("a/eviction"), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(Asked("b/eviction"), testing::IsEmpty());
  EXPECT_THAT(Asked("PATCH"), testing::IsEmpty());
}
TEST_F(OneRoundTest, AlsoAtItsFirstStep) {
  transport_.Add({.path = "/nodes/", .times = 1000});
  DesiredState desired;
  desired.kept[JobId(5)] = {{NodeId("n1"), NodeId("n2"), NodeId("n3")}, "d", {}};  // it lacks a pod
  Round(desired);
  EXPECT_THAT(Asked("/nodes/n1"), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(Asked("/nodes/n2"), testing::IsEmpty());
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
}
// A node that is kept is not to be any more, and is again, before the watch has told anything.
class NodeInDoubtTest : public OneRoundTest {
 protected:
  NodeInDoubtTest() {
    transport_.Do([](FakeApiServer& server) {
      Json node = *server.store().Find("nodes", {"", "n1"});
      node["spec"]["taints"] = {{{"key", "siding.dev/kept-for"}, {"value", "5"}, {"effect", "NoSchedule"}}};
      server.store().Put("nodes", {"", "n1"}, node);
    });
    kept_.kept[JobId(5)] = {{NodeId("n1"), NodeId("n2"), NodeId("n3")}, "d", {}};  // it lacks a pod
    engine_.Evict(JobId(5), JobId(9));                                             // which is not there yet
  }
  void TakeTaintOff(Fault::Kind kind) {
    transport_.Add({.kind = kind, .path = "nodes/n1", .method = HttpMethod::kPatch});
    Round();
    EXPECT_THAT(Asked("PATCH /api/v1/nodes/n1"), testing::SizeIs(1));
  }
  // `nodes`: what the watch tells.
  void Keep(std::vector<ObjectChange> nodes = {}) {
    engine_.Evict(JobId(5));
    before_ = transport_.asked().size();
    rounds_->Round({.nodes = std::move(nodes), .desired = kept_, .synced = true}, engine_, engine_,
                   [] { return std::nullopt; });
  }

  DesiredState kept_;
};
TEST_F(NodeInDoubtTest, IsNotSeenToBeKeptByAnOlderWord) {
  TakeTaintOff(Fault::Kind::kAnswerLost);
  Keep();
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
  clock_.Advance(PlatformOptions().settled);
  Keep();
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
  Keep(All(Nodes()));
  EXPECT_THAT(Asked("PATCH /api/v1/nodes/n1"), testing::SizeIs(1));
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
  Keep(All(Nodes()));
  EXPECT_THAT(Asked("/eviction"), testing::SizeIs(2));
}
TEST_F(NodeInDoubtTest, IsAskedForWhenNothingMoreCanComeOfTheChange) {
  TakeTaintOff(Fault::Kind::kUnreachable);
  Keep();
  EXPECT_THAT(Asked("nodes/n1"), testing::IsEmpty());
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
  clock_.Advance(PlatformOptions().settled);
  Keep();
  EXPECT_THAT(Asked("nodes/n1"), ElementsAre("GET /api/v1/nodes/n1"));
  EXPECT_THAT(Asked("/eviction"), testing::SizeIs(2));
}
TEST_F(NodeInDoubtTest, IsNotOneOfWhichTheServerHasRefusedTheChange) {
  transport_.Add(
      {.kind = Fault::Kind::kAnswer, .path = "nodes/n1", .method = HttpMethod::kPatch, .code = 422});
  Round();
  Keep();
  EXPECT_THAT(Asked("/eviction"), testing::SizeIs(2));
}
// Its finalizer goes first, and then the pod at once.
class UncountedTest : public OneRoundTest {
 protected:
  UncountedTest() {
    for (const char* name : {"a", "b"})
      AddNumbered(name, {{"metadata", {{"finalizers", {"batch.kubernetes.io/job-tracking"}}}},
                         {"spec", {{"nodeName", "n1"}}},
                         {"status", {{"phase", "Running"}}}});
    engine_.at_once = true;
  }
};
TEST_F(UncountedTest, OneThatIsNotToCountAsFailedGoesInTheSameRound) {
  Round();
  EXPECT_THAT(Asked("namespaces/d/pods/"),
              ElementsAre("PATCH /api/v1/namespaces/d/pods/a", "POST /api/v1/namespaces/d/pods/a/eviction",
                          "PATCH /api/v1/namespaces/d/pods/b", "POST /api/v1/namespaces/d/pods/b/eviction"));
}
TEST_F(UncountedTest, OneThatWouldCountStaysAndIsInNoOthersWay) {
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "pods/a", .method = HttpMethod::kPatch, .code = 422});
  Round();
  EXPECT_THAT(Asked("a/eviction"), testing::IsEmpty());
  EXPECT_THAT(Asked("b/eviction"), testing::SizeIs(1));
}
TEST_F(OneRoundTest, AServerThatDoesNotSayHowItEvictsIsAskedAgain) {
  transport_.Add({.kind = Fault::Kind::kAnswer, .path = "/version", .code = 404});
  Round();
  EXPECT_THAT(Asked("/eviction"), testing::IsEmpty());
  Round();
  EXPECT_THAT(Asked("/eviction"), testing::SizeIs(2));
}
TEST_F(OneRoundTest, AMissingRightToAskForAnEvictionIsSaid) {
  transport_.Forbid(HttpMethod::kPost, "pods");
  engine_.only_ask = true;
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  Round();
  spdlog::set_default_logger(before);
  EXPECT_THAT(said.str(), HasSubstr("pod d/a: asked whether it may be evicted: "));
  EXPECT_THAT(said.str(), HasSubstr("403"));
}
size_t Threads() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}
TEST_F(KubernetesPlatformTest, AfterAStopNothingIsDone) {
  const size_t before = Threads();
  Start();
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
  EXPECT_GT(Threads(), before);
  platform_->Stop();
  // Nobody is left who could do anything later. One that was waited for may still be on its way out, here and
  // before the start.
  EXPECT_TRUE(Eventually([&] { return Threads() <= before; }));
  const size_t asked = transport_.asked().size();
  AddPod("a", kDeadline);
  platform_->SetDesired(KeptFor(JobId(1), "n1"));
  EXPECT_EQ(transport_.asked().size(), asked);
}

}  // namespace
}  // namespace siding::kubernetes
