// One life of a controller: the real engine, rounds, informers and pod agents, driven by the timeline in the
// place of their threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "controller/engine/engine.h"
#include "controller/platform/kubernetes/reconcile/event_queue.h"
#include "controller/platform/kubernetes/reconcile/requests.h"
#include "controller/platform/kubernetes/rounds.h"
#include "controller/platform/kubernetes/speak/pod_speaker.h"
#include "controller/platform/kubernetes/watch/informer.h"
#include "tests/simulation/journal_disk.h"
#include "tests/simulation/kubernetes/wire.h"
#include "tests/simulation/network.h"

namespace siding::simulation::pods {

struct ControllerOptions {
  std::string name;
  Policy policy;
  Duration heartbeat = std::chrono::seconds(2);
  Duration least_apart = std::chrono::milliseconds(200);  // watches
  int page = 500;
  bool saves = false;
  kubernetes::SealKeeper* seal_keeper = nullptr;
};

// Beside the journal, whose controllers have it together.
class SealDisk final : public kubernetes::SealKeeper {
 public:
  absl::StatusOr<std::string> Read() override {
    if (key_.empty()) return absl::NotFoundError("nothing is kept");
    return key_;
  }
  absl::Status Keep(const std::string& key) override {
    key_ = key;
    return absl::OkStatus();
  }

 private:
  std::string key_;
};

// Not thread-safe. It may be in the midst of a call while others go on; it must not be destroyed then.
class Controller final : public kubernetes::PlatformListener,
                         public kubernetes::NodeSpeaker,
                         public Platform,
                         public AgentLink,
                         public StreamServer {
 public:
  // `ends` need not say what it is told.
  Controller(const Wire::Ends& ends, JournalDisk& journal, simulation::Network& streams,
             ControllerOptions options);
  ~Controller() override;

  // False: its first event could not be written, and it is dead.
  bool Start();
  // At this moment, whatever it is doing.
  void Die();
  // From now on another one acts: nothing of this one's is written or done any more.
  void Depose();
  bool lives() const { return engine_ != nullptr && !dead_; }
  bool busy() const { return busy_ > 0; }
  // The journal's disk: it dies as soon as it would act on what it has just written; and it has to be started
  // again.
  void OnDoom() { doomed_ = true; }
  void OnDamage();
  // Of the cluster: what its engine knows.
  const Told& engine_was_told() const { return engine_was_told_; }
  // The engine's state must be what its journal says.
  void CompareWithJournal() const;

  // ---- Of the platform's worker. ----
  void OnChanges(ManagerChanges changes) override;
  void Round(const kubernetes::ClusterNow& now, Time time) override;
  std::vector<kubernetes::Eviction> Unwanted(const kubernetes::ClusterNow& now, Time time) override;
  bool IsUnwanted(const kubernetes::Eviction& eviction) override;
  void OnAnswer(const kubernetes::Eviction& asked, const absl::Status& answer) override;
  std::optional<kubernetes::Outlook> OutlookOf(JobId id) override;
  JobId HighestJob() override;
  // ---- Of agents. ----
  bool IsUp() const override { return lives() && acts_; }
  void OnMessage(const StreamPtr& stream, const v1::FromAgent& message) override;
  void OnClosed(const StreamPtr& stream) override;
  // ---- Of the engine. ----
  std::vector<siding::Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override {
    return {};
  }
  std::string manager() const override { return kKubernetes; }
  Capabilities capabilities() const override {
    return {.freezing_frees_slots = false, .freezing_frees_gpus = false};
  }
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const override {
    return rounds_->NodesFor(job);
  }
  void SetDesired(const DesiredState& desired) override;
  bool continues_jobs() const override { return options_.saves; }
  void Send(const NodeId& node, v1::ToAgent command) override;
  // Before an order goes out to an agent.
  std::function<void(const NodeId&, const v1::ToAgent&)> on_order = [](const NodeId&, const v1::ToAgent&) {};

 private:
  // Writes only while its controller acts.
  class Fenced;
  // Hears an informer.
  class Ear;
  // That of budgets, for which nothing waits.
  class BudgetEar;
  // That of requests, which are looked at as a whole.
  class RequestEar;

  void After(Duration delay, std::function<void()> what);
  void Inside(const std::function<void(Engine&)>& call);
  void Begin();
  void Ring();
  void RoundAfter(Duration delay);
  void WorkOnce();
  void SayEvents();
  void Narrate();
  void Greet(const StreamPtr& stream, const v1::Hello& hello);
  void LeaveStream(const StreamPtr& stream);
  void CloseStreams();
  void Tick();
  void Watch(kubernetes::InformerTurns& turns);

  Lab& lab_;
  Told told_, engine_was_told_;
  const Wire::Ends ends_;
  const ControllerOptions options_;
  JournalDisk& disk_;
  const std::unique_ptr<Journal> journal_;
  bool acts_ = true, dead_ = false, doomed_ = false, damaged_ = false;
  int busy_ = 0;
  std::stop_source stop_;
  const std::unique_ptr<kubernetes::Transport> transport_, looking_;
  kubernetes::ApiClient client_;
  const std::unique_ptr<kubernetes::Rounds> rounds_;
  const std::unique_ptr<BudgetEar> budget_ear_;
  const std::unique_ptr<RequestEar> request_ear_;
  std::unique_ptr<kubernetes::Requests> requests_;
  simulation::Network& streams_;
  const std::unique_ptr<kubernetes::PodSpeaker> agents_;
  std::map<NodeId, StreamPtr> serving_;
  std::unique_ptr<Engine> engine_;
  kubernetes::Mail mail_;
  kubernetes::EventQueue events_;
  int synced_ = 0;
  bool begun_ = false, rings_ = false;
  int rounds_asked_ = 0, ticks_ = 0;
  int64_t narrated_ = 0;  // events, on pods
  std::vector<std::unique_ptr<Ear>> ears_;
  std::vector<std::unique_ptr<kubernetes::InformerTurns>> informers_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace siding::simulation::pods
