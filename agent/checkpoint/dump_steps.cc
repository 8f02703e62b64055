#include "agent/checkpoint/dump_steps.h"

#include <chrono>

#include "common/status.h"

namespace siding {
namespace {
constexpr auto kProgressInterval = std::chrono::milliseconds(200);
}

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

absl::Status CommitOver(ImageDraft& draft, ImageStore& store, const ImageKey& key) {
  absl::Status status = draft.Commit();
  if (!absl::IsAlreadyExists(status)) return status;
  SIDING_RETURN_IF_ERROR(store.Delete(key));
  return draft.Commit();
}

}  // namespace siding
