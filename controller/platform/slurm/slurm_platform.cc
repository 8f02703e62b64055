#include "controller/platform/slurm/slurm_platform.h"

#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "controller/platform/slurm/guarded_client.h"
#include "controller/platform/slurm/translate.h"
#include "controller/platform/slurm/watcher.h"
#include "spdlog/spdlog.h"

namespace siding::slurm {
namespace {

constexpr Duration kPartitionsEvery = std::chrono::seconds(10);

class WatchedSlurm final : public SlurmPlatform, public ChangeListener {
 public:
  WatchedSlurm(std::unique_ptr<Client> client, const PlatformOptions& options, const Clock& clock)
      : client_(std::move(client)), options_(options), clock_(clock) {}

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
    std::lock_guard lock(mutex_);
    if (nodes) std::erase_if(*nodes, [&](const NodeId& node) { return reserved_.contains(node); });
    return nodes;
  }
  void Complete(JobSpec& job) const override { TakeWholeNodes(job, *inventory()); }
  void Want(const ManagerWishes& wishes) override {
    std::lock_guard lock(mutex_);
    if (watcher_) {
      watcher_->Want(WishesOf(wishes));
    } else {
      early_ = wishes;
    }
  }

  void Start(Sink sink) override {
    spdlog::info("slurm: by {}", client_->Description());
    sink_ = std::move(sink);
    std::lock_guard lock(mutex_);
    watcher_ = std::make_unique<Watcher>(*client_, *this, clock_, options_.interval);
    if (early_) watcher_->Want(WishesOf(*early_));
  }

  void Stop() override {
    // Not under the lock: the sink may be about to wish something.
    std::unique_ptr<Watcher> watcher;
    {
      std::lock_guard lock(mutex_);
      watcher.swap(watcher_);
    }
  }

 private:
  void OnChanges(const Changes& changes) override {
    LookAtPartitions();
    Inventory seen = WithNodes(*inventory(), changes.nodes);
    // It seldom changes, and those who read it have it as long as they like.
    if (seen != *inventory()) Keep(std::move(seen));
    sink_(ManagerChangesOf(changes, *inventory(), options_.user_name));
  }
  void OnHealth(const absl::Status& health) override {
    if (health.ok()) {
      spdlog::info("slurm: answers");
    } else {
      spdlog::warn("slurm: does not answer: {}; nothing is taken to have changed",
                   std::string(health.message()));
    }
  }
  void OnStep(const StepTaken& taken) override {
    const std::string actions = absl::StrJoin(taken.step.actions, ", ");
    if (taken.status.ok()) {
      spdlog::info("slurm: {}: {}", taken.step.target, actions);
    } else {
      spdlog::warn("slurm: {}: {}: {}", taken.step.target, actions, std::string(taken.status.message()));
    }
  }

  std::shared_ptr<const Inventory> inventory() const {
    std::lock_guard lock(mutex_);
    return inventory_;
  }
  void Keep(Inventory inventory) {
    std::lock_guard lock(mutex_);
    inventory_ = std::make_shared<const Inventory>(std::move(inventory));
  }

  // And at reservations, on the watcher's thread, whose client it is. They change when an administrator says
  // so.
  void LookAtPartitions() {
    const Time now = clock_.Now();
    if (partitions_seen_ && now - *partitions_seen_ < kPartitionsEvery) return;
    const auto partitions = client_->Partitions();
    const auto reservations = client_->Reservations();
    if (!partitions.ok() || !reservations.ok())
      return;  // that Slurm does not answer has been or will be said
    partitions_seen_ = now;
    Keep({**partitions, inventory()->nodes});
    std::lock_guard lock(mutex_);
    reserved_ = ReservedByOthers(**reservations, now);
  }

  const std::unique_ptr<Client> client_;
  const PlatformOptions options_;
  const Clock& clock_;
  Sink sink_;
  std::optional<Time> partitions_seen_;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const Inventory> inventory_ = std::make_shared<const Inventory>();
  std::set<NodeId> reserved_;           // by others than siding
  std::optional<ManagerWishes> early_;  // wished while there was no watcher
  std::unique_ptr<Watcher> watcher_;    // last: ends before what it uses
};

}  // namespace

std::unique_ptr<SlurmPlatform> NewSlurmPlatform(std::unique_ptr<Client> client,
                                                const PlatformOptions& options, const Clock& clock) {
  return std::make_unique<WatchedSlurm>(std::move(client), options, clock);
}

absl::StatusOr<std::unique_ptr<SlurmPlatform>> OpenSlurmPlatform(const PlatformOptions& options,
                                                                 const Clock& clock) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, OpenClient(options.backend));
  if (options.may_act) client = NewGuardedClient(std::move(client), options.may_act);
  return NewSlurmPlatform(std::move(client), options, clock);
}

}  // namespace siding::slurm
