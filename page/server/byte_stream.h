// Bytes on their way from one thread to another that is never waited for: to a reader that may be slow, or
// gone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

#include "common/mutex.h"

namespace siding::page {

// Thread-safe.
class ByteStream {
 public:
  // A reader that has left more than `most` bytes unread is dropped.
  explicit ByteStream(size_t most) : most_(most) {}

  // ---- For the writer. ----
  // False: it has ended, or does so by this.
  bool Write(const std::string& bytes);
  // Bytes that have not been read.
  size_t Unread() const;
  bool HasEnded() const;

  // ---- For the reader. ----
  static constexpr ssize_t kNothingYet = 0;
  static constexpr ssize_t kEnd = -1;
  // Up to `most` bytes. kNothingYet: `pause` has been called, and `resume` will be when there are some, or
  // the end: once, and maybe before this returns. Both are called with the stream's lock held.
  ssize_t Read(char* to, size_t most, const std::function<void()>& pause, std::function<void()> resume);

  // ---- For both. ----
  // What is unread is dropped.
  void End();

 private:
  void EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  mutable Mutex mutex_;
  std::string unread_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> resume_ ABSL_GUARDED_BY(mutex_);  // of a reader that waits
};

}  // namespace siding::page
