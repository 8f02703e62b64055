#include "controller/platform/kubernetes/kubernetes_platform.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The platform owns its transport; the test's outlives it.
class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport& transport) : transport_(transport) {}
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    return transport_.Send(request, std::move(stop));
  }
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                      std::stop_token stop) override {
    return transport_.Stream(request, reader, std::move(stop));
  }

 private:
  Transport& transport_;
};

// The cluster as the engine would know it.
class Engine final : public PlatformListener {
 public:
  std::vector<PodTask> OnRound(const ClusterNow& now) override {
    MutexLock lock(mutex_);
    now_ = now;
    ++rounds_;
    changed_.NotifyAll();
    std::vector<PodTask> evicted;
    for (const PodTask& task : now.tasks) {
      if (unwanted_.contains(task.id.job)) evicted.push_back(task);
    }
    return evicted;
  }
  void Evict(JobId job) {
    MutexLock lock(mutex_);
    unwanted_.insert(job);
  }
  ClusterNow AwaitRound() {
    MutexLock lock(mutex_);
    const int before = rounds_;
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rounds_ > before; });
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
    changed_.Wait(mutex_,
                  [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return heard_ > 0 && condition(jobs_); });
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
  ClusterNow now_ ABSL_GUARDED_BY(mutex_);
  int rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  int heard_ ABSL_GUARDED_BY(mutex_) = 0;
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
    if (!transport) transport = std::make_unique<Borrowed>(transport_);
    options.round = std::chrono::milliseconds(5);
    platform_ = NewKubernetesPlatform(std::move(transport), pacer_, clock_, options);
    platform_->Start(engine_);
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

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_{{.resources = {Pods(),
                                       Nodes(),
                                       {"", "v1", "configmaps", true},
                                       {"", "v1", "events", true},
                                       {"", "v1", "secrets", true},
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
TEST_F(KubernetesPlatformTest, WhatIsDesiredIsBroughtAbout) {
  AddPod("a", kDeadline);
  Start();
  engine_.AwaitJob(JobId(1), ManagedPhase::kWaiting);
  platform_->SetDesired(KeptFor(JobId(1), "n2"));
  EXPECT_THAT(engine_.AwaitJob(JobId(1), ManagedPhase::kRunning).nodes, ElementsAre(NodeId("n2")));
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
  // The first block was taken without an answer, and three numbers of the next were given in vain.
  const ManagedJob job = engine_.AwaitJob(JobId(104), ManagedPhase::kWaiting);
  EXPECT_EQ(job.spec.name, "a");
}
TEST_F(KubernetesPlatformTest, AControllerThatMayNotActOnlyLooks) {
  AddPod("a", kDeadline);
  AddNumbered("b");
  Start(NewGuardedTransport(std::make_unique<Borrowed>(transport_),
                            [] { return absl::FailedPreconditionError("another acts"); }));
  platform_->SetDesired(KeptFor(JobId(5), "n1"));
  engine_.AwaitJob(JobId(5), ManagedPhase::kWaiting);
  platform_->Stop();
  for (const char* change : {"PATCH", "POST", "PUT", "DELETE"}) EXPECT_EQ(CountAsked(change), 0) << change;
}
TEST_F(KubernetesPlatformTest, WhyAPodIsLeftAloneIsSaidOnItOnce) {
  for (const std::string round : {"b", "c"}) {
    Start();
    AddPod("a", {{"siding.dev/preemptible", "stop"}, {"round", round}});
    AddPod(round, kDeadline);
    engine_.AwaitJob(JobId(round == "b" ? 1 : 101), ManagedPhase::kWaiting);
  }
  platform_->Stop();
  const auto events = client_.List({"", "v1", "events", true}, {});
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
  engine_.Evict(JobId(5));
  engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
  EXPECT_EQ(CountAsked("POST /api/v1/namespaces/d/pods/victim/eviction"), 1);
}
TEST_F(KubernetesPlatformTest, WhatABudgetForbidsIsTriedAgainLater) {
  Put("poddisruptionbudgets", {"d", "b"},
      {{"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
  const Json ready = Json::array({{{"type", "Ready"}, {"status", "True"}}});
  AddNumbered("victim", {{"metadata", {{"labels", {{"app", "x"}}}}},
                         {"spec", {{"nodeName", "n1"}}},
                         {"status", {{"phase", "Running"}, {"conditions", ready}}}});
  Start();
  engine_.Evict(JobId(5));
  for (int i = 0; i < 3; ++i) engine_.AwaitRound();
  EXPECT_LE(CountAsked("victim/eviction"), 1) << "not at every round";
  transport_.Do([](FakeApiServer& server) { server.store().Remove("poddisruptionbudgets", {"d", "b"}); });
  clock_.Advance(std::chrono::seconds(5));
  engine_.AwaitJob(JobId(5), ManagedPhase::kEnding);
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
TEST_F(KubernetesPlatformTest, AfterAStopNothingIsDone) {
  Start();
  engine_.Await([](const auto& jobs) { return jobs.empty(); });
  platform_->Stop();
  const size_t asked = transport_.asked().size();
  AddPod("a", kDeadline);
  platform_->SetDesired(KeptFor(JobId(1), "n1"));
  EXPECT_EQ(transport_.asked().size(), asked);
}

}  // namespace
}  // namespace siding::kubernetes
