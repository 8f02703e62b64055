#include "agent/checkpoint/file_contents.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <ctime>
#include <functional>

#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"

namespace siding {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kMostKnown = 100'000;  // about 20 MiB

// Who answers for it may be one of the processes that are frozen.
bool MayBlock(int fd) {
  struct statfs fs {};
  return fstatfs(fd, &fs) != 0 || fs.f_type == FUSE_SUPER_MAGIC;
}

absl::StatusOr<std::string> Read(int fd, int64_t size, const std::function<bool(int64_t)>& go_on = {}) {
  store::StreamHash hash;
  SIDING_RETURN_IF_ERROR(store::HashRange(fd, 0, size, hash, go_on));
  return hash.Checksum();
}

}  // namespace

absl::StatusOr<std::string> ContentOf(const std::string& path, int64_t size) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, path);
  return Read(fd.get(), size);
}

std::string FileContents::Of(const std::string& link, const struct stat& info, ReadBudget& budget) {
  const int64_t modified = Nanoseconds(info.st_mtim), changed = Nanoseconds(info.st_ctim);
  const std::pair id(info.st_dev, info.st_ino);
  {
    MutexLock lock(mutex_);
    const auto it = known_.find(id);
    if (it != known_.end() && it->second.size == info.st_size && it->second.modified_ns == modified &&
        it->second.changed_ns == changed)
      return it->second.checksum;
  }
  if (info.st_size > budget.bytes.value) return "";
  const UniqueFd path(open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!path.valid() || MayBlock(path.get())) return "";
  const UniqueFd fd(open(link.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return "";
  budget.bytes -= Bytes{info.st_size};
  auto checksum =
      Read(fd.get(), info.st_size, [&](int64_t) { return std::chrono::steady_clock::now() < budget.until; });
  if (!checksum.ok()) return "";
  // What was changed this moment may be changed once more within the same tick of the file system's clock.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (Nanoseconds(now) - changed > kSecond) {
    MutexLock lock(mutex_);
    if (known_.size() >= kMostKnown) known_.clear();
    known_[id] = {info.st_size, modified, changed, *checksum};
  }
  return *std::move(checksum);
}

}  // namespace siding
