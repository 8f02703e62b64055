#include "controller/platform/kubernetes/reconcile/optional_kind.h"

#include <atomic>
#include <utility>
#include <vector>

#include "controller/platform/kubernetes/client/discovery.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

constexpr Duration kLookAgain = std::chrono::seconds(30);

}  // namespace

class OptionalKind::Listener final : public InformerListener {
 public:
  Listener(std::string name, std::function<void()> wake) : name_(std::move(name)), wake_(std::move(wake)) {}
  void OnChanges(const std::vector<ObjectChange>&) override { wake_(); }
  void OnSynced() override {
    synced_ = true;
    wake_();
  }
  void OnHealth(const absl::Status& health) override {
    if (health.ok()) {
      spdlog::info("kubernetes: {} are watched", name_);
    } else {
      spdlog::warn("kubernetes: {} cannot be watched: {}; nothing is done for them", name_,
                   std::string(health.message()));
    }
    healthy_ = health.ok();
    wake_();
  }
  bool knows_all() const { return synced_ && healthy_; }

 private:
  const std::string name_;
  const std::function<void()> wake_;
  std::atomic<bool> synced_ = false;
  std::atomic<bool> healthy_ = true;
};

OptionalKind::OptionalKind(Transport& transport, Pacer& pacer, const Clock& clock, Resource resource,
                           Words words, Sources sources)
    : transport_(transport),
      pacer_(pacer),
      clock_(clock),
      resource_(std::move(resource)),
      words_(std::move(words)),
      sources_(std::move(sources)),
      listener_(std::make_unique<Listener>(words_.name, sources_.wake)) {}

OptionalKind::~OptionalKind() = default;

std::optional<Objects> OptionalKind::Look(ApiClient& client) {
  if (informer_) {
    if (!listener_->knows_all()) return std::nullopt;
    return informer_->Snapshot();
  }
  const Time now = clock_.Now();
  if (looked_ && now < *looked_ + kLookAgain) return std::nullopt;
  looked_ = now;
  const absl::StatusOr<bool> has = HasResource(client, resource_);
  if (!has.ok()) {
    sources_.log(words_.name, "looked for", has.status());
  } else if (*has) {
    spdlog::info("kubernetes: {} are {}", words_.name, words_.done);
    informer_.emplace(transport_, pacer_, *listener_, resource_);
  } else if (!std::exchange(said_missing_, true)) {
    spdlog::info("kubernetes: {} are not {}: the server has no {}; deploy/kubernetes/crds.yaml is it",
                 words_.name, words_.done, ToString(resource_));
  }
  return std::nullopt;
}

}  // namespace siding::kubernetes
