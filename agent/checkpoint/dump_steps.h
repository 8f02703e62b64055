// What every dump does, whoever writes the processes' part of the image.
#pragma once

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

// One image is visible under the key already if this rank was dumped and committed before, and then ran on
// because its agent died before it could end the processes. The newer state replaces the older.
absl::Status CommitOver(ImageDraft& draft, ImageStore& store, const ImageKey& key);

}  // namespace siding
