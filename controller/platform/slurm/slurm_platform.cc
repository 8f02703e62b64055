#include "controller/platform/slurm/slurm_platform.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutex.h"
#include "common/status.h"
#include "controller/platform/slurm/client/guarded_client.h"
#include "controller/platform/slurm/reconcile/reconciler.h"
#include "controller/platform/slurm/watch/translate.h"
#include "controller/platform/slurm/watch/watcher.h"
#include "spdlog/spdlog.h"

namespace siding::slurm {
namespace {

constexpr Duration kSettingsEvery = std::chrono::minutes(5);

class PolledSlurm final : public SlurmPlatform, public PollListener {
 public:
  PolledSlurm(std::unique_ptr<Client> client, const PlatformOptions& options, const Clock& clock)
      : client_(std::move(client)), options_(options), clock_(clock), reconciler_(*client_) {}

  // Slurm places its jobs itself.
  std::vector<Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override { return {}; }
  std::string manager() const override { return kManager; }
  bool steers() const override { return options_.steers; }
  // A job that Slurm suspends keeps its memory and all generic resources.
  Capabilities capabilities() const override {
    return {.freezing_frees_slots = options_.suspends, .freezing_frees_gpus = false};
  }
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const override {
    auto nodes = NodesOf(*inventory(), job);
    if (!nodes) return nodes;
    for (const NodeId& node : ReservedByOthers(*reservations(), clock_.Now())) nodes->erase(node);
    return nodes;
  }
  void Complete(JobSpec& job) const override { TakeWholeNodes(job, *inventory()); }
  void SetDesired(const DesiredState& desired) override {
    reconciler_.SetDesired(desired);
    MutexLock lock(mutex_);
    if (watcher_) watcher_->Wake();
  }

  void Start(Sink sink) override {
    spdlog::info("slurm: by {}", client_->Description());
    sink_ = std::move(sink);
    MutexLock lock(mutex_);
    watcher_ = std::make_unique<Watcher>(*client_, *this, clock_, options_.interval);
  }

  void Stop() override {
    // Not under the lock: the sink may be about to set what is desired.
    std::unique_ptr<Watcher> watcher;
    {
      MutexLock lock(mutex_);
      watcher.swap(watcher_);
    }
  }

 private:
  void OnInventory(const Client::List<Partition>& partitions,
                   const Client::List<Reservation>& reservations) override {
    Keep({*partitions, inventory()->nodes});
    MutexLock lock(mutex_);
    reservations_ = reservations;
  }
  void OnChanges(const Changes& changes) override {
    Inventory seen = WithNodes(*inventory(), changes.nodes);
    // It seldom changes, and those who read it have it as long as they like.
    if (seen != *inventory()) Keep(std::move(seen));
    sink_(ManagerChangesOf(changes, *inventory(), options_.user_name));
  }
  void OnPolled(const std::vector<QueueJob>& jobs, bool changed) override {
    // Not before: what has changed is in OnChanges(), and at the first poll that is everything.
    if (std::exchange(silent_, false)) sink_({});
    for (const StepResult& result : reconciler_.Reconcile(jobs, changed, clock_.Now())) Log(result);
    CheckSettings();
  }
  void OnHealth(const absl::Status& health) override {
    if (health.ok()) {
      spdlog::info("slurm: answers");
    } else {
      silent_ = true;
      ManagerChanges nothing;
      nothing.answers = false;
      sink_(std::move(nothing));
      spdlog::warn("slurm: does not answer: {}; nothing is taken to have changed",
                   std::string(health.message()));
    }
  }
  static void Log(const StepResult& result) {
    const std::string actions = absl::StrJoin(result.step.actions, ", ");
    if (result.status.ok()) {
      spdlog::info("slurm: {}: {}", result.step.target, actions);
    } else {
      spdlog::warn("slurm: {}: {}: {}", result.step.target, actions, std::string(result.status.message()));
    }
  }

  std::shared_ptr<const Inventory> inventory() const {
    MutexLock lock(mutex_);
    return inventory_;
  }
  Client::List<Reservation> reservations() const {
    MutexLock lock(mutex_);
    return reservations_;
  }
  void Keep(Inventory inventory) {
    MutexLock lock(mutex_);
    inventory_ = std::make_shared<const Inventory>(std::move(inventory));
  }

  // Says what is wrong with Slurm's settings once, and again when that has changed. Seldom, and after
  // everything else: scontrol, which says them, also waits for each slurmctld that is down.
  void CheckSettings() {
    const Time now = clock_.Now();
    if (settings_seen_ && now - *settings_seen_ < kSettingsEvery) return;
    settings_seen_ = now;
    const absl::StatusOr<Settings> settings = client_->LoadSettings();
    if (absl::IsUnavailable(settings.status())) return;
    if (settings.ok()) reconciler_.SetPriorityByAge(settings->priority_by_age);
    std::vector<std::string> problems =
        settings.ok() ? ProblemsOf(*settings)
                      : std::vector<std::string>{
                            absl::StrCat("its settings cannot be checked: ", settings.status().message())};
    if (problems == problems_) return;
    for (const std::string& problem : problems) spdlog::warn("slurm: {}", problem);
    if (problems.empty()) spdlog::info("slurm: its settings are as they should be now");
    problems_ = std::move(problems);
  }

  const std::unique_ptr<Client> client_;
  const PlatformOptions options_;
  const Clock& clock_;
  Sink sink_;
  bool silent_ = false;  // the sink was told so
  std::optional<Time> settings_seen_;
  std::vector<std::string> problems_;  // of Slurm's settings, that were said
  Reconciler reconciler_;
  mutable Mutex mutex_;
  std::shared_ptr<const Inventory> inventory_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Inventory>();
  Client::List<Reservation> reservations_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const std::vector<Reservation>>();
  std::unique_ptr<Watcher> watcher_ ABSL_GUARDED_BY(mutex_);  // last: ends before what it uses
};

}  // namespace

std::unique_ptr<SlurmPlatform> NewSlurmPlatform(std::unique_ptr<Client> client,
                                                const PlatformOptions& options, const Clock& clock) {
  return std::make_unique<PolledSlurm>(std::move(client), options, clock);
}

absl::StatusOr<std::unique_ptr<SlurmPlatform>> OpenSlurmPlatform(const PlatformOptions& options,
                                                                 const Clock& clock) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, OpenClient(options.backend));
  if (options.may_act) client = NewGuardedClient(std::move(client), options.may_act);
  return NewSlurmPlatform(std::move(client), options, clock);
}

}  // namespace siding::slurm
