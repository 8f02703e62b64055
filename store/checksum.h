// Checksums of files: XXH3 with 128 bits, written "xxh3:" and the 32 digits that `xxh128sum` prints.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace siding::store {

// A hash that is fed piece by piece. Movable, not thread-safe.
class StreamHash {
 public:
  StreamHash();
  void Update(const void* data, size_t size);
  // Of everything fed so far; more may be fed afterwards.
  std::string Checksum() const;

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

std::string ChecksumOf(absl::string_view data);

// Feeds the bytes [begin, end) of `fd` to `hash`; `done` (may be empty) gets the size of each piece read, and
// ends it with kCancelled by false. A file that ends before `end` is kDataLoss, a failing read an errno
// status; both without the file's name, which the caller knows.
absl::Status HashRange(int fd, int64_t begin, int64_t end, StreamHash& hash,
                       const std::function<bool(int64_t)>& done = {});

// Calls work(0) ... work(count - 1) from at most `threads` threads, the caller's among them. Returns when all
// have returned.
void RunInParallel(size_t count, size_t threads, const std::function<void(size_t)>& work);

}  // namespace siding::store
