// Reads pages of another process.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "agent/memory/pagemap.h"
#include "common/files.h"

namespace siding {

// Not thread-safe.
class ProcessPages {
 public:
  static constexpr size_t kMostAtOnce = 1024;  // runs

  // Pages that cannot be read come to `unread`, and something takes their places; null: kInternal.
  ProcessPages(pid_t pid, std::vector<PageRun>* unread) : pid_(pid), unread_(unread) {}

  // Whole pages, one behind the other. It may run. kAborted: it has ended.
  absl::Status Read(std::vector<iovec> runs, char* to);

 private:
  absl::Status ReadForced(uint64_t address, uint64_t bytes, char* to);

  const pid_t pid_;
  std::vector<PageRun>* const unread_;
  UniqueFd memory_;
};

}  // namespace siding
