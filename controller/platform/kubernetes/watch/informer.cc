#include "controller/platform/kubernetes/watch/informer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace siding::kubernetes {

Informer::Informer(Transport& transport, Pacer& pacer, InformerListener& listener, Resource resource,
                   Selection selection, InformerRules rules)
    : transport_(transport),
      pacer_(pacer),
      listener_(listener),
      resource_(std::move(resource)),
      selection_(std::move(selection)),
      rules_(rules),
      state_(rules),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Informer::~Informer() {
  thread_.request_stop();
  thread_.join();
}

Objects Informer::Snapshot() const {
  MutexLock lock(mutex_);
  return state_.objects();
}

void Informer::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    InformerState::Step step;
    {
      MutexLock lock(mutex_);
      step = state_.Next();
    }
    const Duration pause = step.not_before - pacer_.Now();
    if (pause > Duration(0) && !pacer_.Pause(pause, stop)) return;
    Take(step, stop);
    if (!stop.stop_requested()) Tell();
  }
}

void Informer::Take(const InformerState::Step& step, const std::stop_token& stop) {
  // The state decides when something is tried again.
  ApiClient client(transport_, pacer_, stop, {.attempts = 1});
  if (!step.list) return Watch(client, step);
  absl::StatusOr<ListPage> page = client.GetPage(resource_, selection_, step.limit, step.token);
  MutexLock lock(mutex_);
  if (page.ok()) {
    state_.OnPage(*std::move(page));
  } else {
    state_.OnListFailed(page.status(), pacer_.Now());
  }
}

void Informer::Watch(ApiClient& client, const InformerState::Step& step) {
  const std::string what = absl::StrCat("watch ", ToString(resource_));
  {
    MutexLock lock(mutex_);
    state_.OnWatchBegun(pacer_.Now());
  }
  absl::Status said;  // by the stream itself
  const auto read = [&](absl::string_view line) {
    absl::StatusOr<WatchEvent> event = EventFrom(line, what);
    if (!event.ok()) {
      said = event.status();
      return false;
    }
    {
      MutexLock lock(mutex_);
      state_.OnEvent(*std::move(event));
    }
    Tell();
    return true;
  };
  const absl::Status ended = client.Watch(resource_, selection_, step.version, rules_.lasts, read);
  MutexLock lock(mutex_);
  state_.OnWatchEnded(said.ok() ? ended : said, pacer_.Now());
}

void Informer::Tell() {
  std::vector<ObjectChange> changes;
  absl::Status health;
  bool synced = false;
  {
    MutexLock lock(mutex_);
    changes = state_.TakeChanges();
    health = state_.health();
    synced = state_.synced();
  }
  if (health.code() != told_.health) {
    told_.health = health.code();
    listener_.OnHealth(health);
  }
  if (!changes.empty()) listener_.OnChanges(changes);
  if (synced && !std::exchange(told_.synced, true)) listener_.OnSynced();
}

}  // namespace siding::kubernetes
