// Which pages of a process are written, as the kernel tells.
//
// Private anonymous memory is registered with a userfaultfd of the process, and protected from writing
// asynchronously (UFFD_FEATURE_WP_ASYNC, Linux 6.7): the first store to a page costs a page fault of about a
// microsecond, which takes its protection away, and nobody has to be woken. PAGEMAP_SCAN tells which pages
// have none. Huge pages are split by it. What else a process can notice: docs/admin/checkpoints.md.
//
// Written is the default: a page counts as unchanged only while it lies in memory that is registered, is in
// RAM, and is still protected. Whatever is mapped anew, moved, grown, forked or swapped out counts as
// written. Descriptors and protection go with this object, or with this process, however it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/pagemap.h"
#include "agent/memory/private_memory.h"
#include "common/files.h"

namespace siding {

// Not thread-safe.
class WriteTracker {
 public:
  // `userfaultfd`: that was made in that process, and is not in use. kUnimplemented: it is none, or the
  // kernel cannot track with it.
  static absl::StatusOr<WriteTracker> Make(pid_t pid, UniqueFd userfaultfd);

  struct Count {
    uint64_t present = 0, written = 0;  // pages
    size_t regions = 0;                 // in which they lie: as many runs a lap has at most
  };
  // Costs less than a millisecond for each GiB. It may run.
  absl::StatusOr<Count> CountPages() const;
  // Those that have not been written since the last lap, by address. The same.
  absl::StatusOr<std::vector<PageRun>> CleanPages() const;

  struct Lap {
    // All private anonymous memory, and the pages of it that there are, by address. Those that may have been
    // written since the last lap are kPagePresent, the others kPageInParent. Zero pages are none.
    std::vector<MemoryArea> areas;
    std::vector<PageRun> pages;
    // The process has a ring for asynchronous I/O: what the kernel still writes by it is not seen, so this
    // lap is the last.
    bool is_last = false;
  };
  // Takes all that has been written since the last one, and begins the next. All threads of the process are
  // stopped: to register a mapping that is being changed breaks the process. An error: what comes later is
  // not known either, and this is to be thrown away.
  absl::StatusOr<Lap> NextLap();
  // The same, of the pages only that may have been written, with no word of the others, and in less time
  // where these are few. An error as well if it has such a ring.
  absl::StatusOr<std::vector<PageRun>> NextWritten();
  // How many that would be. It may run.
  absl::StatusOr<uint64_t> CountWritten() const;
  // The next lap of one whose pages nobody wants to know. False: it is to be thrown away.
  bool SkipLap();

 private:
  WriteTracker(pid_t pid, UniqueFd userfaultfd) : pid_(pid), userfaultfd_(std::move(userfaultfd)) {}
  // False: it cannot be.
  bool Register(const MemoryArea& area) const;
  absl::Status Protect(const std::vector<MemoryArea>& areas, bool only_written,
                       const std::function<void(const PageRun&)>& found) const;

  pid_t pid_;
  UniqueFd userfaultfd_;
};

}  // namespace siding
