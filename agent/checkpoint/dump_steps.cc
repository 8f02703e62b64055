#include "agent/checkpoint/dump_steps.h"

#include <chrono>

#include "common/status.h"

namespace siding {
namespace {
constexpr auto kProgressInterval = std::chrono::milliseconds(200);
constexpr Duration kGangPatience = std::chrono::minutes(1);
constexpr Duration kLonePatience = std::chrono::seconds(5);
constexpr auto kCommitPause = std::chrono::milliseconds(200);
}  // namespace

ProgressTeller::ProgressTeller(const ImageDraft& draft, DumpObserver& observer)
    : thread_([this, &draft, &observer] {
        MutexLock lock(mutex_);
        while (!stop_.WaitFor(mutex_, kProgressInterval,
                              [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
          observer.OnProgress(draft.BytesSoFar());
        }
      }) {}

ProgressTeller::~ProgressTeller() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

Duration CommitPatience(bool peers_may_have_left, bool keep_running) {
  if (keep_running) return Duration(0);
  return peers_may_have_left ? kGangPatience : kLonePatience;
}

absl::Status CommitPatiently(ImageDraft& draft, ImageStore& store, const ImageKey& key,
                             DumpObserver& observer, const std::function<absl::Status()>& remembered,
                             const StillHeld& held, Duration patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    absl::Status status = observer.OnCommitting();
    if (status.ok()) {
      SIDING_RETURN_IF_ERROR(remembered());
      status = CommitOver(draft, store, key);
    }
    const bool again = !status.ok() && !absl::IsAborted(status);
    if (!again || std::chrono::steady_clock::now() >= end) return status;
    std::this_thread::sleep_for(kCommitPause);
    SIDING_RETURN_IF_ERROR(held());
  }
}

absl::Status CommitOver(ImageDraft& draft, ImageStore& store, const ImageKey& key) {
  absl::Status status = draft.Commit();
  if (!absl::IsAlreadyExists(status)) return status;
  SIDING_RETURN_IF_ERROR(store.Delete(key));
  return draft.Commit();
}

}  // namespace siding
