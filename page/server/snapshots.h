// What was answered a moment ago, for all that ask the same: it is made and encoded once, however many pages
// are open.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding::page {

struct Snapshot {
  std::shared_ptr<const std::string> body;
  std::shared_ptr<const std::string> packed;  // by Gzip(); nullptr: it is too short for that, or it failed
  Time since{};                               // it was asked for then: nothing in it is older
  std::string tag;  // of this body, as HTTP's ETag has it; weak, for it is packed or not
};

Snapshot MakeSnapshot(std::string body);

// Thread-safe.
class Snapshots {
 public:
  // Of bodies, packed and not, that are kept, or that somebody has.
  using Bytes = std::shared_ptr<std::atomic<size_t>>;

  // One is good for `moment` after it was made, and for kShare times as long as that took. Beyond
  // `most_unread` bytes in bodies that somebody still has, none is made; `bytes`: those of others count as
  // well, but of these alone there are no more than `most_own`. `clock` must outlive this.
  Snapshots(const Clock& clock, Duration moment, size_t most_unread,
            Bytes bytes = std::make_shared<std::atomic<size_t>>(0),
            size_t most_own = std::numeric_limits<size_t>::max())
      : clock_(clock),
        moment_(moment),
        most_unread_(most_unread),
        most_own_(most_own),
        bytes_(std::move(bytes)) {}

  // Of `key`; `make` is called if there is none, and others wait meanwhile. Errors are not kept.
  // kResourceExhausted: too much is unread.
  absl::StatusOr<Snapshot> Of(const std::string& key,
                              const std::function<absl::StatusOr<std::string>()>& make);
  // For one reader alone: it is not kept, and counts while he reads it.
  absl::StatusOr<Snapshot> Once(const std::function<std::string()>& make);

  // Until when what was begun to be made then, and is made now, is good.
  Time Until(Time began) const;

  // Those that are not good any more take no memory. To be called again and again.
  void Forget();

  // So much more time than in making answers to one question goes by between them.
  static constexpr int kShare = 4;

 private:
  static absl::Status CheckUnread(size_t bytes, size_t most, const char* whose);
  absl::Status CheckUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Kept {
    Time until;
    Snapshot snapshot;
  };
  // Bounds what clients that ask for many different things make it keep.
  static constexpr size_t kMost = 32;

  const Clock& clock_;
  const Duration moment_;
  const size_t most_unread_, most_own_;
  // Bodies may outlive this.
  const Bytes bytes_, own_bytes_ = std::make_shared<std::atomic<size_t>>(0);
  Mutex mutex_;
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::page
