#include "controller/platform/kubernetes/kubernetes_platform.h"

#include <map>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/reconcile/events.h"
#include "controller/platform/kubernetes/reconcile/numbers.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/reconcile/steps.h"
#include "controller/platform/kubernetes/watch/informer.h"
#include "controller/platform/kubernetes/watch/job_table.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

constexpr ptrdiff_t kMostEvents = 1000;

// What the informers have told and nobody has looked at yet, and a bell.
class Mailbox {
 public:
  struct Mail {
    std::vector<ObjectChange> nodes;
    std::vector<ObjectChange> pods;
    std::optional<DesiredState> desired;
    std::vector<std::pair<JobId, PodEvent>> told;  // of jobs, whose pods are still to be found
    // As it is now.
    bool synced = false;  // both, once
    bool nodes_healthy = true;
    bool pods_healthy = true;
  };
  void AddNodes(const std::vector<ObjectChange>& changes) { Add(&Mail::nodes, changes); }
  void AddPods(const std::vector<ObjectChange>& changes) { Add(&Mail::pods, changes); }
  void Desire(DesiredState desired) {
    MutexLock lock(mutex_);
    mail_.desired = std::move(desired);
    Ring();
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
    Mail mail = mail_;
    mail_.nodes.clear();
    mail_.pods.clear();
    mail_.desired.reset();
    mail_.told.clear();
    return mail;
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
  Listener(Mailbox& mailbox, Put put, bool Mailbox::Mail::*healthy, const char* what)
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
  bool Mailbox::Mail::*const healthy_;
  const char* const what_;
};

class WatchedKubernetes final : public KubernetesPlatform {
 public:
  WatchedKubernetes(std::unique_ptr<Transport> transport, Pacer& pacer, const Clock& clock,
                    const PlatformOptions& options)
      : transport_(std::move(transport)),
        pacer_(pacer),
        clock_(clock),
        options_(options),
        table_(options.left_alone, [this](const Pod& pod) { return seal_->HoldsOn(pod); }) {}
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
    MutexLock lock(mutex_);
    return table_.NodesFor(job);
  }
  void SetDesired(const DesiredState& desired) override { mailbox_.Desire(desired); }

  void Start(PlatformListener& listener) override {
    listener_ = &listener;
    worker_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
    nodes_.emplace(*transport_, pacer_, node_listener_, Nodes());
    pods_.emplace(*transport_, pacer_, pod_listener_, Pods());
  }
  void Wake() override { mailbox_.Wake(); }
  void Tell(JobId job, bool warning, std::string reason, std::string text, std::string key) override {
    mailbox_.Tell(job, {{}, "", warning, std::move(reason), std::move(text), std::move(key)});
  }
  void Stop() override {
    pods_.reset();
    nodes_.reset();
    worker_ = {};  // asks it to stop, and waits
  }

 private:
  // Observes, tells, and does what is wanted, round after round.
  void Work(const std::stop_token& stop) {
    ApiClient client(*transport_, pacer_, stop);
    Numbers numbers(client, {options_.space, "siding-numbers"});
    std::optional<DesiredState> desired;
    if (!LoadSeal(client, stop)) return;
    while (std::optional<Mailbox::Mail> mail = mailbox_.Take(options_.round, stop)) {
      if (mail->desired) desired = std::move(mail->desired);
      Observe(*mail);
      if (!mail->synced) continue;
      // Nodes first: a pod with a deadline is planned for as soon as it is heard of.
      std::vector<PodTask> unwanted;
      if (mail->nodes_healthy && mail->pods_healthy) unwanted = listener_->OnRound(Now());
      TellChanges();
      EvictAll(client, unwanted);
      Report(client);
      NumberAll(client, numbers);
      if (desired) Reconcile(client, *desired);
    }
  }

  // Before any pod is looked at. False: a stop is requested.
  bool LoadSeal(ApiClient& client, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      absl::StatusOr<Seal> seal = Seal::Load(client, {options_.space, "siding-seal"});
      if (Log("the seal", "read", seal.status())) {
        seal_ = *std::move(seal);
        return true;
      }
      if (!pacer_.Pause(options_.round, stop)) return false;
    }
    return false;
  }

  void Observe(const Mailbox::Mail& mail) {
    MutexLock lock(mutex_);
    table_.OnNodes(mail.nodes);
    table_.OnPods(mail.pods);
    for (const Refusal& refusal : table_.TakeRefusals())
      events_.push_back({refusal.pod, refusal.uid, true, "SidingRefused", refusal.why, ""});
    for (const auto& [job, event] : mail.told) {
      for (const Pod* pod : table_.PodsThatCount(job)) {
        events_.push_back(event);
        events_.back().pod = pod->name;
        events_.back().uid = pod->uid;
      }
    }
  }

  // Not under the lock: the engine may ask where a pod may be.
  void TellChanges() {
    ManagerChanges changes;
    {
      MutexLock lock(mutex_);
      changes = table_.TakeChanges();
    }
    const bool any = !changes.jobs.empty() || !changes.gone_jobs.empty() || !changes.nodes.empty() ||
                     !changes.gone_nodes.empty();
    if (any || !std::exchange(told_, true)) listener_->OnChanges(std::move(changes));
  }

  ClusterNow Now() const {
    MutexLock lock(mutex_);
    ClusterNow now;
    for (const auto& [name, node] : table_.nodes()) {
      if (node.ready) now.machines.push_back({NodeId(name), node.object.uid, ToResources(node.allocatable)});
    }
    now.tasks = table_.Tasks();
    return now;
  }

  void EvictAll(ApiClient& client, const std::vector<PodTask>& pods) {
    std::map<std::string, Time> evicted;
    const Time now = clock_.Now();
    for (const PodTask& pod : pods) {
      const auto before = evicted_.find(pod.uid);
      if (before != evicted_.end() && now < before->second + options_.evict_again) {
        evicted.insert(*before);
        continue;
      }
      if (eviction_.empty()) {
        const absl::StatusOr<Discovery> found = Discover(client);
        if (!Log("the server", "asked what it has", found.status())) return;
        eviction_ = found->eviction;
      }
      Log("pod " + ToString(pod.pod), absl::StrCat("evicted, of job ", pod.id.job.value()),
          client.Evict(pod.pod, {.uid = pod.uid}, std::nullopt, eviction_));
      evicted[pod.uid] = now;
    }
    evicted_ = std::move(evicted);
  }

  void Report(ApiClient& client) {
    std::vector<PodEvent> left;
    for (const PodEvent& event : events_) {
      const absl::Status said = kubernetes::Report(client, event, clock_.Now());
      if (!Log("pod " + ToString(event.pod), "told: " + event.text, said)) left.push_back(event);
    }
    events_ = std::move(left);
    // What nobody could be told for so long helps nobody any more.
    if (events_.size() > kMostEvents) events_.erase(events_.begin(), events_.end() - kMostEvents);
  }

  void NumberAll(ApiClient& client, Numbers& numbers) {
    JobTable::Without without;
    {
      MutexLock lock(mutex_);
      without = table_.FindUnnumbered();
    }
    if (!without.pods.empty())
      Log("pods", absl::StrCat(without.pods.size(), " numbered"),
          NumberPods(without, numbers, *seal_, client));
  }

  void Reconcile(ApiClient& client, const DesiredState& desired) {
    std::vector<Step> steps;
    {
      MutexLock lock(mutex_);
      steps = StepsTowards(desired, table_);
    }
    for (const Step& step : steps) Log(step.target, step.action, Apply(client, step));
  }

  // False: it has to be tried again. What goes on failing in the same way is said once.
  bool Log(const std::string& target, const std::string& action, const absl::Status& status) {
    if (IsOverTaken(status)) return true;  // the change that was in the way will be told
    std::string& problem = problems_[target];
    if (status.ok()) {
      spdlog::info("kubernetes: {}: {}", target, action);
      problems_.erase(target);
    } else if (problem != status.message()) {
      problem = std::string(status.message());
      spdlog::warn("kubernetes: {}: {}: {}", target, action, problem);
    }
    return status.ok();
  }

  const std::unique_ptr<Transport> transport_;
  Pacer& pacer_;
  const Clock& clock_;
  const PlatformOptions options_;
  PlatformListener* listener_ = nullptr;
  Mailbox mailbox_;
  Listener node_listener_{mailbox_, &Mailbox::AddNodes, &Mailbox::Mail::nodes_healthy, "nodes"};
  Listener pod_listener_{mailbox_, &Mailbox::AddPods, &Mailbox::Mail::pods_healthy, "pods"};
  std::optional<Seal> seal_;  // of the worker, as long as it has no pods of the table's
  mutable Mutex mutex_;
  JobTable table_ ABSL_GUARDED_BY(mutex_);
  // Of the worker.
  bool told_ = false;
  std::string eviction_;                         // the server's version of it
  std::map<std::string, Time> evicted_;          // by uid: when last, of those that are still asked for
  std::vector<PodEvent> events_;                 // not reported yet
  std::map<std::string, std::string> problems_;  // by target: what was said of it last
  std::optional<Informer> nodes_;
  std::optional<Informer> pods_;
  std::jthread worker_;
};

}  // namespace

std::unique_ptr<KubernetesPlatform> NewKubernetesPlatform(std::unique_ptr<Transport> transport, Pacer& pacer,
                                                          const Clock& clock,
                                                          const PlatformOptions& options) {
  return std::make_unique<WatchedKubernetes>(std::move(transport), pacer, clock, options);
}

}  // namespace siding::kubernetes
