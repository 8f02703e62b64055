// What every dump does, whoever writes the processes' part of the image.
#pragma once

#include <functional>
#include <thread>

#include "agent/checkpoint/dump.h"
#include "common/mutex.h"
#include "store/store.h"

namespace siding {

// Calls the observer five times a second for as long as it lives.
class ProgressTeller {
 public:
  ProgressTeller(const ImageDraft& draft, DumpObserver& observer);
  ~ProgressTeller();
  ProgressTeller(const ProgressTeller&) = delete;
  ProgressTeller& operator=(const ProgressTeller&) = delete;

 private:
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

// For how long a task that leaves is held for its commit. Where peers may have left, their images are of no
// use without this one; otherwise they, and a request, do not wait long. One that is to run on is not held.
Duration CommitPatience(bool peers_may_have_left, bool keep_running);

// That the image counts is remembered, and it is moved into its place; `remembered` is called in between. The
// task is held until that works, for `patience` and while `held` is OK: on a full disk there may be room
// soon.
absl::Status CommitPatiently(ImageDraft& draft, ImageStore& store, const ImageKey& key,
                             DumpObserver& observer, const std::function<absl::Status()>& remembered,
                             const StillHeld& held, Duration patience);

// One image is visible under the key already if this rank was dumped and committed before, and then ran on
// because its agent died before it could end the processes. The newer state replaces the older.
absl::Status CommitOver(ImageDraft& draft, ImageStore& store, const ImageKey& key);

}  // namespace siding
