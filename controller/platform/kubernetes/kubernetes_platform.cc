#include "controller/platform/kubernetes/kubernetes_platform.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/reconcile/checkpoints.h"
#include "controller/platform/kubernetes/reconcile/event_queue.h"
#include "controller/platform/kubernetes/reconcile/events.h"
#include "controller/platform/kubernetes/reconcile/requests.h"
#include "controller/platform/kubernetes/rounds.h"
#include "controller/platform/kubernetes/watch/informer.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

// What the informers have told and nobody has looked at yet, and a bell.
class Mailbox {
 public:
  void AddNodes(const std::vector<ObjectChange>& changes) { Add(&Mail::nodes, changes); }
  void AddPods(const std::vector<ObjectChange>& changes) { Add(&Mail::pods, changes); }
  void AddBudgets(const std::vector<ObjectChange>& changes) { Add(&Mail::budgets, changes); }
  void Desire(DesiredState desired) {
    MutexLock lock(mutex_);
    mail_.desired = std::move(desired);
    Ring();
  }
  std::optional<DesiredState> TakeDesired() {
    MutexLock lock(mutex_);
    return std::exchange(mail_.desired, std::nullopt);
  }
  void Tell(JobId job, PodEvent event) {
    MutexLock lock(mutex_);
    mail_.told.emplace_back(job, std::move(event));
    Ring();
  }
  void Synced() {
    MutexLock lock(mutex_);
    mail_.synced = ++synced_ == 2;
    Ring();
  }
  // A watch has failed (or goes on again).
  void SetHealthy(bool Mail::*which, bool healthy) {
    MutexLock lock(mutex_);
    mail_.*which = healthy;
    Ring();
  }
  void Wake() {
    MutexLock lock(mutex_);
    Ring();
  }
  // Waits until there is something, or for so long. Nothing: a stop is requested.
  std::optional<Mail> Take(Duration at_most, const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { Wake(); });
    MutexLock lock(mutex_);
    bell_.WaitFor(mutex_, at_most,
                  [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return there_ || stop.stop_requested(); });
    if (stop.stop_requested()) return std::nullopt;
    there_ = false;
    Mail next{
        .synced = mail_.synced, .nodes_healthy = mail_.nodes_healthy, .pods_healthy = mail_.pods_healthy};
    return std::exchange(mail_, std::move(next));
  }

 private:
  void Ring() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    there_ = true;
    bell_.NotifyAll();
  }
  void Add(std::vector<ObjectChange> Mail::*where, const std::vector<ObjectChange>& changes) {
    MutexLock lock(mutex_);
    (mail_.*where).insert((mail_.*where).end(), changes.begin(), changes.end());
    Ring();
  }

  Mutex mutex_;
  CondVar bell_;
  Mail mail_ ABSL_GUARDED_BY(mutex_);
  bool there_ ABSL_GUARDED_BY(mutex_) = false;
  int synced_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Puts what an informer tells into the mailbox.
class Listener final : public InformerListener {
 public:
  using Put = void (Mailbox::*)(const std::vector<ObjectChange>&);
  Listener(Mailbox& mailbox, Put put, bool Mail::*healthy, const char* what)
      : mailbox_(mailbox), put_(put), healthy_(healthy), what_(what) {}
  void OnChanges(const std::vector<ObjectChange>& changes) override { (mailbox_.*put_)(changes); }
  void OnSynced() override { mailbox_.Synced(); }
  void OnHealth(const absl::Status& health) override {
    if (health.ok()) {
      spdlog::info("kubernetes: {} are watched", what_);
    } else {
      spdlog::warn("kubernetes: {} cannot be watched: {}; nothing is taken to have changed", what_,
                   std::string(health.message()));
    }
    mailbox_.SetHealthy(healthy_, health.ok());
  }

 private:
  Mailbox& mailbox_;
  const Put put_;
  bool Mail::*const healthy_;
  const char* const what_;
};

// Budgets are a help to plans: each eviction asks the server, and nothing waits for them.
class BudgetListener final : public InformerListener {
 public:
  explicit BudgetListener(Mailbox& mailbox) : mailbox_(mailbox) {}
  void OnChanges(const std::vector<ObjectChange>& changes) override { mailbox_.AddBudgets(changes); }
  void OnSynced() override {}
  void OnHealth(const absl::Status& health) override {
    if (!health.ok())
      spdlog::warn("kubernetes: disruption budgets cannot be watched: {}; plans do not know of them",
                   std::string(health.message()));
  }

 private:
  Mailbox& mailbox_;
};

class WatchedKubernetes final : public KubernetesPlatform {
 public:
  WatchedKubernetes(std::unique_ptr<Transport> transport, Pacer& pacer, const Clock& clock,
                    const PlatformOptions& options)
      : transport_(std::move(transport)),
        pacer_(pacer),
        clock_(clock),
        options_(options),
        rounds_(NewRounds(clock, options)) {}
  ~WatchedKubernetes() override { Stop(); }

  // It places its pods, or siding binds them to the nodes that were planned.
  std::vector<siding::Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override {
    return {};
  }
  std::string manager() const override { return kKubernetes; }
  // To the scheduler and the kubelet a frozen pod has all that it requested.
  Capabilities capabilities() const override {
    return {.freezing_frees_slots = false, .freezing_frees_gpus = false};
  }
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const override {
    return rounds_->NodesFor(job);
  }
  bool continues_jobs() const override { return options_.saves; }
  void SetDesired(const DesiredState& desired) override { mailbox_.Desire(desired); }

  void Start(PlatformListener& listener, NodeSpeaker& speaker) override {
    speaker_ = &speaker;
    speaker.SetBell([this] { mailbox_.Wake(); });
    narrator_ = std::jthread([this](const std::stop_token& stop) { Narrate(stop); });
    worker_ = std::jthread([this, &listener](const std::stop_token& stop) { Work(listener, stop); });
    nodes_.emplace(*transport_, pacer_, node_listener_, Nodes());
    pods_.emplace(*transport_, pacer_, pod_listener_, Pods());
  }
  void Tell(JobId job, bool warning, std::string reason, std::string text, std::string key) override {
    mailbox_.Tell(job, {{}, "", warning, std::move(reason), std::move(text), std::move(key)});
  }
  std::string WhoIs(JobId job) const override { return rounds_->WhoIs(job); }
  void Stop() override {
    if (speaker_ != nullptr) speaker_->SetBell(nullptr);
    pods_.reset();
    nodes_.reset();
    worker_ = {};  // asks it to stop, and waits
    narrator_ = {};
    if (NodeSpeaker* const speaker = std::exchange(speaker_, nullptr)) speaker->Leave();
  }
  int64_t lost_events() const override { return events_.lost(); }

 private:
  void Work(PlatformListener& listener, const std::stop_token& stop) {
    ApiClient client(*transport_, pacer_, stop);
    Requests requests(*transport_, pacer_, clock_, options_.left_alone, SourcesOf(listener));
    CheckpointObjects checkpoints(
        *transport_, pacer_, clock_, options_.space,
        {[&listener] { return listener.CheckpointsKept(); }, [this] { mailbox_.Wake(); }, Logger()});
    while (!rounds_->Begin(client).ok()) {
      if (!pacer_.Pause(options_.round, stop)) return;
    }
    std::optional<Informer> budgets;
    // A round looks at the whole cluster, however little has changed.
    while (std::optional<Mail> mail = mailbox_.Take(options_.round, stop)) {
      const Time begun = pacer_.Now();
      const bool pods_are_known = mail->synced && mail->pods_healthy;
      rounds_->Round(*std::move(mail), listener, *speaker_, [this] { return mailbox_.TakeDesired(); });
      for (PodEvent& event : rounds_->TakeEvents()) Say(std::move(event));
      if (pods_are_known) requests.Round(client);
      if (pods_are_known && !budgets) WatchBudgets(client, budgets);
      checkpoints.Round(client);
      const Duration left = begun + options_.least_apart - pacer_.Now();
      if (left > Duration(0) && !pacer_.Pause(left, stop)) return;
    }
  }

  void Say(PodEvent event) {
    events_.Add(std::move(event));
    MutexLock lock(events_mutex_);
    events_bell_.NotifyAll();
    new_events_ = true;
  }

  // On a thread of its own: a server that takes no events, or takes long, must not delay what pods wait for.
  void Narrate(const std::stop_token& stop) {
    ApiClient client(*transport_, pacer_, stop, {.attempts = 1});
    const std::stop_callback wake(stop, [this] {
      MutexLock lock(events_mutex_);
      events_bell_.NotifyAll();
    });
    while (!stop.stop_requested()) {
      while (std::optional<PodEvent> event = events_.Take(pacer_.Now())) {
        const absl::Status said = Report(client, *event, clock_.Now());
        events_.Done(*std::move(event), said, pacer_.Now());
        if (stop.stop_requested()) return;
      }
      MutexLock lock(events_mutex_);
      events_bell_.WaitFor(events_mutex_, options_.round, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_mutex_) {
        return std::exchange(new_events_, false) || stop.stop_requested();
      });
    }
  }

  void WatchBudgets(ApiClient& client, std::optional<Informer>& budgets) {
    const absl::StatusOr<Discovery> found = Discover(client);
    if (!found.ok()) return;  // with the next round
    for (const char* version : {"v1", "v1beta1"}) {
      if (!found->Has("policy", version)) continue;
      budgets.emplace(*transport_, pacer_, budget_listener_, PodDisruptionBudgets(version));
      return;
    }
  }

  Requests::Sources SourcesOf(PlatformListener& listener) {
    return {[this](const ObjectName& pod) { return rounds_->StandingOf(pod); },
            [&listener](JobId job) { return listener.OutlookOf(job); }, [this] { mailbox_.Wake(); },
            Logger()};
  }
  std::function<bool(const std::string&, const std::string&, const absl::Status&)> Logger() {
    return [this](const std::string& target, const std::string& action, const absl::Status& status) {
      return rounds_->Log(target, action, status);
    };
  }

  const std::unique_ptr<Transport> transport_;
  Pacer& pacer_;
  const Clock& clock_;
  const PlatformOptions options_;
  const std::unique_ptr<Rounds> rounds_;
  Mailbox mailbox_;
  Listener node_listener_{mailbox_, &Mailbox::AddNodes, &Mail::nodes_healthy, "nodes"};
  Listener pod_listener_{mailbox_, &Mailbox::AddPods, &Mail::pods_healthy, "pods"};
  BudgetListener budget_listener_{mailbox_};
  std::optional<Informer> nodes_;
  std::optional<Informer> pods_;
  NodeSpeaker* speaker_ = nullptr;  // between Start() and Stop()
  EventQueue events_;
  Mutex events_mutex_;
  CondVar events_bell_;
  bool new_events_ ABSL_GUARDED_BY(events_mutex_) = false;
  std::jthread narrator_;
  std::jthread worker_;
};

}  // namespace

std::unique_ptr<KubernetesPlatform> NewKubernetesPlatform(std::unique_ptr<Transport> transport, Pacer& pacer,
                                                          const Clock& clock,
                                                          const PlatformOptions& options) {
  return std::make_unique<WatchedKubernetes>(std::move(transport), pacer, clock, options);
}

}  // namespace siding::kubernetes
