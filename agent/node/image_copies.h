// Images of this node's local tier on their way into the shared one, one after another: so they do not depend
// on this node any more.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/node/work_queue.h"
#include "common/mutex.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"
#include "store/store.h"

namespace siding {

// Thread-safe.
class ImageCopies {
 public:
  // As HostContext::Store(). A store that was returned outlives this object.
  using StoreOf = std::function<absl::StatusOr<ImageStore*>(v1::Tier)>;
  using Done = std::function<void(const absl::Status&)>;

  explicit ImageCopies(StoreOf store_of) : store_of_(std::move(store_of)) {}
  ~ImageCopies();  // ends the one that is under way
  ImageCopies(const ImageCopies&) = delete;
  ImageCopies& operator=(const ImageCopies&) = delete;

  // `done` is called once, from another thread, but not if this object is destroyed before. An order for an
  // image whose copy is under way takes the place of the earlier one: only its `done` is called. It may have
  // the copy pause, for two minutes if it is not said again, or go on. An order for a later checkpoint of
  // the same job and rank calls off what is under way of an earlier one.
  void Order(const v1::CopyCheckpoint& order, Done done);
  // Ends the copy of that image, if there is one: its `done` gets kCancelled. kUnavailable: it has not ended
  // yet, since the file system keeps it waiting; to be asked again.
  absl::Status CallOff(const ImageKey& key);
  // Those that have been ordered and are not done.
  std::vector<v1::ImageCopy> UnderWay() const;
  // What this object has written so far, by copies that were made.
  Bytes written() const { return Bytes{written_.load()}; }

 private:
  struct Copy {
    v1::CopyCheckpoint order;
    Done done;
    Bytes copied, total;
    bool begun = false, called_off = false;
    std::chrono::steady_clock::time_point pauses_until;  // in the past: it does not
  };

  void Run(const ImageKey& key);
  // Null: it was called off, or all of this ends. Valid while the mutex is held.
  Copy* AwaitTurn(const ImageKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CallOffOthers(const ImageKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Done End(const ImageKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Make(const ImageKey& key, const v1::CopyCheckpoint& order);
  // Of the copy under way: so much is there. Returns when it does not pause, which may be minutes later.
  // False: it is called off.
  bool Note(const ImageKey& key, Bytes copied, Bytes total);

  const StoreOf store_of_;
  mutable Mutex mutex_;
  CondVar changed_;  // one has ended, or does not pause any more
  std::map<ImageKey, Copy> copies_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> written_{0};
  WorkQueue queue_;  // last: it uses the others
};

}  // namespace siding
