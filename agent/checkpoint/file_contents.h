// What is in files, as checksums: two files of different times are the same if these are.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// Since 1970, of a file's times.
inline int64_t Nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000LL + t.tv_nsec; }

// Of the file's first `size` bytes (store/checksum.h). kDataLoss if it is shorter. Follows no link in the
// last place.
absl::StatusOr<std::string> ContentOf(const std::string& path, int64_t size);

// What reading may cost together, of one dump: the processes wait for it.
struct ReadBudget {
  Bytes bytes;
  std::chrono::steady_clock::time_point until;
};

// Remembers them as long as a file's times and length say that nothing has changed, so that a file that is
// dumped again is not read again. Thread-safe.
class FileContents {
 public:
  // Of the file to which a link in /proc leads; `info` is the file's. Empty if it is not known, and either is
  // beyond the budget, which becomes smaller by what was read, or cannot be read, or a process might have to
  // answer for it (FUSE).
  std::string Of(const std::string& link, const struct stat& info, ReadBudget& budget);

 private:
  struct Known {
    int64_t size, modified_ns, changed_ns;
    std::string checksum;
  };
  Mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
