// What a Kubernetes cluster costs siding: a fake API server with so many nodes and pods in this process, the
// real platform, pod agents and engine. First round by round on one thread, then with their threads. Beside
// it stands what it costs to parse the same lists and to keep what was parsed: less than that nobody needs.
// The server's own work counts as siding's wherever it cannot be told apart, so what is shown is at most what
// it is.
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/logging.h"
#include "controller/engine/engine.h"
#include "controller/journal/journal.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"
#include "controller/platform/kubernetes/rounds.h"
#include "controller/platform/kubernetes/speak/pod_agents.h"
#include "controller/platform/kubernetes/watch/informer.h"

namespace siding::kubernetes {
namespace {

using Seconds = std::chrono::duration<double>;

struct Flags {
  int nodes = 500;
  int pods = 5000;
  int batch = 1000;    // of these may make way
  int changes = 50;    // of pods, a second
  int seconds = 20;    // of each measurement
  int filling = 3000;  // bytes of a pod that nobody reads
};

double Now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double CpuOf(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
// That the program has asked for and not given back: what is resident depends on what was there before.
double InUseMiB() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

Json NodeJson(int number) {
  return {{"metadata",
           {{"name", absl::StrFormat("node-%04d", number)},
            {"labels", {{"kubernetes.io/hostname", absl::StrFormat("node-%04d", number)}}}}},
          {"spec", Json::object()},
          {"status",
           {{"allocatable", {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}}},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

Json PodJson(int number, const Flags& flags) {
  const Json running = {{"running", {{"startedAt", "2026-01-01T00:00:05Z"}}}};
  Json pod = {
      {"metadata",
       {{"labels", {{"app", absl::StrCat("app-", number % 100)}}},
        {"creationTimestamp", "2026-01-01T00:00:00Z"},
        {"managedFields",
         Json::array({{{"manager", "kubelet"}, {"fields", std::string(flags.filling, 'f')}}})}}},
      {"spec",
       {{"nodeName", absl::StrFormat("node-%04d", number % flags.nodes)},
        {"schedulerName", "default-scheduler"},
        {"tolerations", Json::array({{{"key", "node.kubernetes.io/not-ready"}, {"operator", "Exists"}}})},
        {"containers", Json::array({{{"name", "main"},
                                     {"resources", {{"requests", {{"cpu", "2"}, {"memory", "4Gi"}}}}}}})}}},
      {"status",
       {{"phase", "Running"},
        {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
        {"containerStatuses", Json::array({{{"name", "main"}, {"state", running}}})}}}};
  if (number < flags.batch) pod["metadata"]["annotations"]["siding.dev/preemptible"] = "kill";
  return pod;
}

ObjectName NameOfPod(int number) { return {"default", absl::StrFormat("pod-%05d", number)}; }

class NoAgents final : public AgentLink {
 public:
  void Send(const NodeId&, v1::ToAgent) override {}
};

// The engine does not learn here what is desired: nothing is.
class QuietPlatform final : public Platform {
 public:
  std::vector<siding::Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override {
    return {};
  }
  std::string manager() const override { return kKubernetes; }
};

// The engine behind a platform, as the controller has it.
class Brain final : public PlatformListener, public NodeSpeaker {
 public:
  Brain() : engine_({}, *journal_, platform_, agents_, SystemClock()) {
    agents_.SetEngine(engine_);
    engine_.Start().IgnoreError();
  }
  void OnChanges(ManagerChanges changes) override {
    jobs_ += static_cast<int>(changes.jobs.size());
    engine_.OnManager(std::move(changes));
  }
  void Round(const ClusterNow& now, Time time) override {
    tasks_ = static_cast<int>(now.tasks.size());
    agents_.Round(now, time);
    ++rounds_;
  }
  std::vector<Eviction> Unwanted(const ClusterNow& now, Time time) override {
    return agents_.Unwanted(now, time);
  }
  bool IsUnwanted(const Eviction& eviction) override { return agents_.IsUnwanted(eviction); }
  JobId HighestJob() override { return JobId(0); }
  int tasks() const { return tasks_; }
  int rounds() const { return rounds_; }
  void Tick() { engine_.Tick(); }

 private:
  const std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  QuietPlatform platform_;
  NoAgents none_;
  PodAgents agents_{none_, std::chrono::seconds(5)};
  Engine engine_;
  int jobs_ = 0;
  std::atomic<int> tasks_ = 0, rounds_ = 0;
};

// Puts what informers tell into mail.
class Ear final : public InformerListener {
 public:
  explicit Ear(std::vector<ObjectChange>& where) : where_(where) {}
  void OnChanges(const std::vector<ObjectChange>& changes) override {
    where_.insert(where_.end(), changes.begin(), changes.end());
  }
  void OnSynced() override { synced = true; }
  void OnHealth(const absl::Status&) override {}
  bool synced = false;

 private:
  std::vector<ObjectChange>& where_;
};

void Row(const std::string& what, const std::string& value) {
  std::cout << absl::StrFormat("%-66s %12s\n", what, value);
}
std::string Ms(double seconds) { return absl::StrFormat("%.1f ms", seconds * 1e3); }
std::string MiB(double mib) { return absl::StrFormat("%.1f MiB", mib); }

FakeApiServer::Settings ServerSettings() {
  return {.resources = {Pods(),
                        Nodes(),
                        ConfigMaps(),
                        Secrets(),
                        Events(),
                        {"policy", "v1", "poddisruptionbudgets", true}}};
}

void Fill(FakeApiServer& server, const Flags& flags) {
  for (int i = 0; i < flags.nodes; ++i)
    server.store().Put("nodes", {"", absl::StrFormat("node-%04d", i)}, NodeJson(i));
  for (int i = 0; i < flags.pods; ++i) server.store().Put("pods", NameOfPod(i), PodJson(i, flags));
  server.Compact();
}

void Change(FakeApiServer& server, int number) {
  Json pod = *server.store().Find("pods", NameOfPod(number));
  pod["metadata"]["annotations"]["example.org/beat"] = std::to_string(server.store().version());
  server.store().Put("pods", NameOfPod(number), std::move(pod));
}

// The least that anybody pays who knows all objects.
void ShowBound(FakeApiServer& server) {
  std::vector<std::string> bodies;
  for (const char* path : {"/api/v1/nodes", "/api/v1/pods"})
    bodies.push_back(server.Handle({.path = path}, Time{}).body);
  size_t bytes = 0;
  for (const std::string& body : bodies) bytes += body.size();
  const double before = InUseMiB(), begun = Now();
  std::vector<Json> parsed;
  for (const std::string& body : bodies) parsed.push_back(Json::parse(body));
  Row("the lists as text", MiB(static_cast<double>(bytes) / (1 << 20)));
  Row("bound: to parse them", Ms(Now() - begun));
  Row("bound: to keep what was parsed (memory in use)", MiB(InUseMiB() - before));
}

void ShowRounds(FakeApiServer& server, const Flags& flags) {
  FakeClock clock(SystemClock().Now());
  FakePacer pacer(clock);
  FakeTransport transport(server, clock);
  ApiClient client(transport, pacer);
  Brain brain;
  const auto rounds = NewRounds(SystemClock(), {});
  rounds->Begin(client).IgnoreError();
  Mail mail;
  Ear node_ear(mail.nodes), pod_ear(mail.pods);
  InformerTurns nodes(transport, pacer, node_ear, Nodes()), pods(transport, pacer, pod_ear, Pods());
  const double before = InUseMiB(), begun = Now();
  while (!node_ear.synced) nodes.Take({});
  while (!pod_ear.synced) pods.Take({});
  Row("to list (the server's own part included)", Ms(Now() - begun));
  Row("what informers keep (memory in use)", MiB(InUseMiB() - before));
  const auto round = [&] {
    Mail next{.synced = true};
    next.nodes.swap(mail.nodes);
    next.pods.swap(mail.pods);
    const double start = Now();
    rounds->Round(std::move(next), brain, brain, [] { return std::optional<DesiredState>(); });
    return Now() - start;
  };
  Row(absl::StrFormat("first round: all is new, %d pods get numbers (calls included)", flags.batch),
      Ms(round()));
  pods.Take({});
  Row("the round that hears of the numbers", Ms(round()));
  std::vector<double> still, changed;
  for (int i = 0; i < 50; ++i) still.push_back(round());
  for (int i = 0; i < 50; ++i) {
    Change(server, i * 7 % flags.pods);
    pods.Take({});
    changed.push_back(round());
  }
  const auto median = [](std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  };
  Row("a round without changes (median of 50)", Ms(median(still)));
  Row("a round with one change (median of 50)", Ms(median(changed)));
}

void ShowThreads(FakeApiServer& server, const Flags& flags) {
  FakeClock clock(SystemClock().Now());
  FakeTransport transport(server, clock, FakeTransport::Watching::kOn);
  Brain brain;
  const double before = InUseMiB(), begun = Now();
  auto platform = NewKubernetesPlatform(transport.Borrow(), RealPacer(), SystemClock(), {});
  platform->Start(brain, brain);
  while (brain.tasks() < flags.batch) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Row("from start until all is told to the engine", Ms(Now() - begun));
  Row("memory in use by then, all together (the server's history, too)", MiB(InUseMiB() - before));
  const auto measure = [&](const std::string& what, int changes) {
    const size_t asked = transport.asked().size();
    const int rounds = brain.rounds();
    const double cpu = CpuOf(RUSAGE_SELF), start = Now();
    double own = 0;  // of this thread: it plays the cluster
    int made = 0;
    while (Now() - start < flags.seconds) {
      const double mine = CpuOf(RUSAGE_THREAD);
      if (changes > 0) transport.Do([&](FakeApiServer& s) { Change(s, made++ % flags.pods); });
      own += CpuOf(RUSAGE_THREAD) - mine;
      std::this_thread::sleep_for(std::chrono::microseconds(1'000'000 / std::max(changes, 10)));
    }
    const double took = Now() - start;
    Row(absl::StrCat(what, ": share of a core"),
        absl::StrFormat("%.1f %%", 100 * (CpuOf(RUSAGE_SELF) - cpu - own) / took));
    Row(absl::StrCat(what, ": calls of the API a minute"),
        absl::StrFormat("%.1f", 60 * static_cast<double>(transport.asked().size() - asked) / took));
    Row(absl::StrCat(what, ": rounds a second"), absl::StrFormat("%.1f", (brain.rounds() - rounds) / took));
  };
  measure("nothing changes", 0);
  measure(absl::StrCat(flags.changes, " pods change a second"), flags.changes);
  platform->Stop();
}

int Main(int argc, char** argv) {
  CLI::App app{"What a Kubernetes cluster costs siding, by a fake API server in this process"};
  Flags flags;
  app.add_option("--nodes", flags.nodes, "Nodes")->check(CLI::Range(1, 9999));
  app.add_option("--pods", flags.pods, "Pods")->check(CLI::Range(1, 99999));
  app.add_option("--batch", flags.batch, "Of these may make way");
  app.add_option("--changes", flags.changes, "Pods that change in a second")->check(CLI::Range(1, 10000));
  app.add_option("--seconds", flags.seconds, "Of each measurement")->check(CLI::Range(1, 3600));
  app.add_option("--filling", flags.filling, "Bytes of a pod that nobody reads");
  CLI11_PARSE(app, argc, argv);
  flags.batch = std::min(flags.batch, flags.pods);
  spdlog::set_level(spdlog::level::off);
  std::cout << absl::StrFormat("%d nodes, %d pods, of which %d may make way\n\n", flags.nodes, flags.pods,
                               flags.batch);
  FakeApiServer server(ServerSettings());
  Fill(server, flags);
  ShowBound(server);
  ShowRounds(server, flags);
  FakeApiServer another(ServerSettings());
  Fill(another, flags);
  ShowThreads(another, flags);
  return 0;
}

}  // namespace
}  // namespace siding::kubernetes

int main(int argc, char** argv) { return siding::kubernetes::Main(argc, argv); }
