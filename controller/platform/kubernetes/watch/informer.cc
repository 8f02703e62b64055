#include "controller/platform/kubernetes/watch/informer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace siding::kubernetes {

InformerTurns::InformerTurns(Transport& transport, Pacer& pacer, InformerListener& listener,
                             Resource resource, Selection selection, InformerRules rules)
    : transport_(transport),
      pacer_(pacer),
      listener_(listener),
      resource_(std::move(resource)),
      selection_(std::move(selection)),
      rules_(rules),
      state_(rules) {}

Objects InformerTurns::Snapshot() const {
  MutexLock lock(mutex_);
  return state_.objects();
}

Time InformerTurns::NotBefore() const {
  MutexLock lock(mutex_);
  return state_.Next().not_before;
}

void InformerTurns::Take(const std::stop_token& stop) {
  InformerState::Step step;
  {
    MutexLock lock(mutex_);
    step = state_.Next();
  }
  // The state decides when something is tried again.
  ApiClient client(transport_, pacer_, stop, {.attempts = 1});
  step.list ? List(client, step) : Watch(client, step);
  if (!stop.stop_requested()) Tell();
}

void InformerTurns::List(ApiClient& client, const InformerState::Step& step) {
  absl::StatusOr<ListPage> page = client.GetPage(resource_, selection_, step.limit, step.token);
  MutexLock lock(mutex_);
  if (page.ok()) {
    state_.OnPage(*std::move(page));
  } else {
    state_.OnListFailed(page.status(), pacer_.Now());
  }
}

void InformerTurns::Watch(ApiClient& client, const InformerState::Step& step) {
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
  absl::Status ended = client.Watch(resource_, selection_, step.version, rules_.lasts, read);
  // Where nothing changes there is nothing to tell, and servers need not send bookmarks. Whether this one is
  // still there it is asked.
  if (said.ok() && absl::IsDeadlineExceeded(ended))
    ended = client.GetPage(resource_, selection_, 1, "").status();
  MutexLock lock(mutex_);
  state_.OnWatchEnded(said.ok() ? ended : said, pacer_.Now());
}

void InformerTurns::Tell() {
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

Informer::Informer(Transport& transport, Pacer& pacer, InformerListener& listener, Resource resource,
                   Selection selection, InformerRules rules)
    : turns_(transport, pacer, listener, std::move(resource), std::move(selection), rules),
      thread_([this, &pacer](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          const Duration pause = turns_.NotBefore() - pacer.Now();
          if (pause > Duration(0) && !pacer.Pause(pause, stop)) return;
          turns_.Take(stop);
        }
      }) {}

Informer::~Informer() {
  thread_.request_stop();
  thread_.join();
}

}  // namespace siding::kubernetes
