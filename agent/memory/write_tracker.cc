#include "agent/memory/write_tracker.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace siding {
namespace {

// Of linux/userfaultfd.h and linux/fs.h from 6.7 on; the headers of Debian 12 are older.
constexpr uint64_t kWriteProtectUnpopulated = 1 << 13, kWriteProtectAsynchronously = 1 << 15;
enum Category : uint64_t {
  kTracked = 1,
  kWritten = 2,
  kPresent = 8,
  kSwapped = 16,
  kZero = 32,
  kGuard = 256
};
enum ScanFlag : uint64_t { kProtect = 1, kOnlyTracked = 2 };

struct Region {
  uint64_t begin = 0, end = 0, categories = 0;
};

struct ScanRequest {
  uint64_t size = sizeof(ScanRequest), flags = 0, begin = 0, end = 0, reached = 0, regions = 0,
           most_regions = 0, most_pages = 0, inverted = 0, all_of = 0, any_of = 0, told = 0;
};
#define SIDING_PAGEMAP_SCAN _IOWR('f', 16, ScanRequest)

constexpr size_t kRegionsAtOnce = 16384;

absl::StatusOr<UniqueFd> OpenPagemap(pid_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/pagemap");
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, path);
  return fd;
}

// One area of a process at a time.
class Scan {
 public:
  Scan(UniqueFd pagemap, bool only_written)
      : pagemap_(std::move(pagemap)),
        all_of_(only_written ? kZero | kWritten : kZero),
        regions_(kRegionsAtOnce) {}

  // Calls `found` with each region of pages that there are. Returns an errno: EPERM of kOnlyTracked says that
  // the area is not registered, and that nothing has been done.
  int operator()(const MemoryArea& area, uint64_t flags, const std::function<void(const Region&)>& found) {
    for (uint64_t at = area.begin;;) {
      ScanRequest request;
      request.flags = flags;
      request.begin = at;
      request.end = area.end;
      request.regions = reinterpret_cast<uint64_t>(regions_.data());
      request.most_regions = regions_.size();
      request.inverted = kZero;
      request.all_of = all_of_;
      // Without this, empty places are protected as well, and look like swapped pages.
      request.any_of = kPresent | kSwapped;
      request.told = kTracked | kWritten | kSwapped | guard_;
      const int n = ioctl(pagemap_.get(), SIDING_PAGEMAP_SCAN, &request);
      if (n < 0 && errno == EINVAL && guard_ != 0) {
        guard_ = 0;  // before Linux 6.15; there they look like swapped pages, which cannot be read
        continue;
      }
      if (n < 0) return errno;
      for (int i = 0; i < n; ++i) {
        // Guards (MADV_GUARD_INSTALL) are no pages: CRIU makes them again.
        if (const Region& region = regions_[static_cast<size_t>(i)]; (region.categories & kGuard) == 0)
          found(region);
      }
      // What the kernel says it has reached may be where it was before: it fills a buffer of its own, of 512
      // regions, again and again, and leaves what it has noted when that was full. Whoever went on from there
      // would hear of pages a second time, which are protected by then, that they are unchanged.
      if (n < static_cast<int>(regions_.size())) return 0;
      at = regions_.back().end;
    }
  }

 private:
  const UniqueFd pagemap_;
  const uint64_t all_of_;
  std::vector<Region> regions_;
  uint64_t guard_ = kGuard;
};

// Protection alone says nothing: where registering has failed there may be some that is left over.
bool IsClean(const Region& region) {
  return (region.categories & (kTracked | kWritten | kSwapped)) == kTracked;
}

PageRun RunOf(const Region& region) {
  return {region.begin, (region.end - region.begin) / PageSize(),
          IsClean(region) ? kPageInParent : kPagePresent};
}

bool IsUserfaultfd(int fd) {
  char target[64];
  const ssize_t n = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), target, sizeof target);
  return n > 0 && absl::string_view(target, static_cast<size_t>(n)) == "anon_inode:[userfaultfd]";
}

}  // namespace

absl::StatusOr<WriteTracker> WriteTracker::Make(pid_t pid, UniqueFd userfaultfd) {
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = kWriteProtectAsynchronously | kWriteProtectUnpopulated;
  if (!IsUserfaultfd(userfaultfd.get()) || ioctl(userfaultfd.get(), UFFDIO_API, &api) != 0)
    return absl::UnimplementedError("the kernel does not track what processes write");
  return WriteTracker(pid, std::move(userfaultfd));
}

absl::StatusOr<WriteTracker::Count> WriteTracker::CountPages() const {
  SIDING_ASSIGN_OR_RETURN(const ProcessMaps maps, ReadMaps(pid_));
  SIDING_ASSIGN_OR_RETURN(UniqueFd pagemap, OpenPagemap(pid_));
  Scan scan(std::move(pagemap), false);
  Count count;
  for (const MemoryArea& area : maps.areas) {
    // It may have gone meanwhile.
    scan(area, 0, [&](const Region& region) {
      const uint64_t pages = (region.end - region.begin) / PageSize();
      count.present += pages;
      if (!IsClean(region)) count.written += pages;
      ++count.regions;
    });
  }
  return count;
}

absl::StatusOr<std::vector<PageRun>> WriteTracker::CleanPages() const {
  SIDING_ASSIGN_OR_RETURN(const ProcessMaps maps, ReadMaps(pid_));
  SIDING_ASSIGN_OR_RETURN(UniqueFd pagemap, OpenPagemap(pid_));
  Scan scan(std::move(pagemap), false);
  std::vector<PageRun> clean;
  for (const MemoryArea& area : maps.areas) {
    scan(area, 0, [&](const Region& region) {
      if (IsClean(region)) Append(RunOf(region), clean);
    });
  }
  return clean;
}

bool WriteTracker::Register(const MemoryArea& area) const {
  const uffdio_range range{area.begin, area.end - area.begin};
  uffdio_register request = {};
  request.range = range;
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(userfaultfd_.get(), UFFDIO_REGISTER, &request) != 0) return false;
  // What mremap() has merged with a neighbour is not registered any more, but has its protection still, which
  // would hide what was written meanwhile.
  uffdio_writeprotect unprotect = {};
  unprotect.range = range;
  if (ioctl(userfaultfd_.get(), UFFDIO_WRITEPROTECT, &unprotect) == 0) return true;
  uffdio_range again = range;
  ioctl(userfaultfd_.get(), UFFDIO_UNREGISTER, &again);
  return false;
}

absl::Status WriteTracker::Protect(const std::vector<MemoryArea>& areas, bool only_written,
                                   const std::function<void(const PageRun&)>& found) const {
  SIDING_ASSIGN_OR_RETURN(UniqueFd pagemap, OpenPagemap(pid_));
  Scan scan(std::move(pagemap), only_written);
  const auto tell = [&](const Region& region) { found(RunOf(region)); };
  for (const MemoryArea& area : areas) {
    int error = scan(area, kProtect | kOnlyTracked, tell);
    if (error == EPERM) error = scan(area, Register(area) ? kProtect | kOnlyTracked : 0, tell);
    if (error != 0) return ErrnoError(error, absl::StrCat("look at the memory of process ", pid_));
  }
  return absl::OkStatus();
}

absl::StatusOr<WriteTracker::Lap> WriteTracker::NextLap() {
  SIDING_ASSIGN_OR_RETURN(ProcessMaps maps, ReadMaps(pid_));
  Lap lap{std::move(maps.areas), {}, maps.has_ring};
  SIDING_RETURN_IF_ERROR(Protect(lap.areas, false, [&](const PageRun& run) { Append(run, lap.pages); }));
  return lap;
}

absl::StatusOr<std::vector<PageRun>> WriteTracker::NextWritten() {
  SIDING_ASSIGN_OR_RETURN(const ProcessMaps maps, ReadMaps(pid_));
  if (maps.has_ring) return absl::UnimplementedError("what the kernel writes by a ring is not seen");
  std::vector<PageRun> written;
  SIDING_RETURN_IF_ERROR(Protect(maps.areas, true, [&](const PageRun& run) { Append(run, written); }));
  return written;
}

absl::StatusOr<uint64_t> WriteTracker::CountWritten() const {
  SIDING_ASSIGN_OR_RETURN(const ProcessMaps maps, ReadMaps(pid_));
  SIDING_ASSIGN_OR_RETURN(UniqueFd pagemap, OpenPagemap(pid_));
  Scan scan(std::move(pagemap), true);
  uint64_t pages = 0;
  for (const MemoryArea& area : maps.areas)
    scan(area, 0, [&](const Region& region) { pages += RunOf(region).pages; });
  return pages;
}

bool WriteTracker::SkipLap() {
  const auto maps = ReadMaps(pid_);
  return maps.ok() && !maps->has_ring && Protect(maps->areas, false, [](const PageRun&) {}).ok();
}

}  // namespace siding
