// The kernel's word that a page of a process has not been written is tested: some of these are read while it
// runs, and compared with the last image.
//
// They are taken by groups that follow on one another, some in each image in turn. So each area of more than
// a few groups is looked at each time, and each page in one image of so many. Who writes to one meanwhile is
// seen by the kernel as well: it is not said to be unchanged any more when the process is stopped, and is not
// compared then.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/pagemap.h"
#include "agent/memory/precopied_pages.h"

namespace siding {

// Of one process, for one image. Not thread-safe.
class CheckedPages {
 public:
  static constexpr uint64_t kGroup = 16;  // pages

  // Of groups of `clean` pages, which are by address, each `every`-th: in `every` images with as many turns
  // all of them are read. It may run. What cannot be read is left out. kCancelled if `stop`, which is asked
  // all the time, says true; kAborted: it has ended.
  absl::Status Take(pid_t pid, const std::vector<PageRun>& clean, uint64_t every, uint64_t turn,
                    const std::function<bool()>& stop);
  size_t size() const { return pages_.size(); }

  // Compares those that are kBase still, of `pages` by address. `read` gets some of the last image. Returns
  // the address of one that has changed. Pages of zeros count as unchanged: the process had given them away
  // (MADV_FREE), and the kernel has taken them.
  absl::StatusOr<std::optional<uint64_t>> FindChanged(
      const std::vector<SourcedPages>& pages,
      const std::function<absl::Status(uint64_t address, uint64_t bytes, char* to)>& read) const;

 private:
  struct Page {
    uint64_t address = 0, hash = 0;
  };
  std::vector<Page> pages_;  // by address; none is of zeros
};

}  // namespace siding
