#include "store/follower.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/files.h"

namespace siding::store {
namespace {

constexpr auto kScanInterval = std::chrono::milliseconds(10);
// Smaller files are hashed when the draft is sealed, which costs less than following them.
constexpr int64_t kMinimumSize = 1 << 20;
// Hashed in one go before looking at the folder, and whether to stop, again.
constexpr int64_t kTurn = 32 << 20;
// Write-back is started in whole pieces of this size, well away from the page that is being appended to: a
// writer has to wait for a page under write-back.
constexpr int64_t kWriteBack = 8 << 20;

bool IsPagesFile(const std::string& name) {
  return absl::StartsWith(name, "pages-") && absl::EndsWith(name, ".img");
}

}  // namespace

Follower::Follower(std::string folder, bool only_count)
    : folder_(std::move(folder)), only_count_(only_count), thread_([this] { Run(); }) {}

Follower::~Follower() { Stop(); }

std::map<std::string, PartialHash> Follower::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  std::map<std::string, PartialHash> result;
  for (auto& [name, file] : files_) {
    if (!file.given_up) result.emplace(name, std::move(file.partial));
  }
  files_.clear();
  return result;
}

void Follower::Run() {
  bool more = false;
  MutexLock lock(mutex_);
  while (!stop_.WaitFor(mutex_, more ? std::chrono::milliseconds(0) : kScanInterval,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
    lock.Unlock();
    more = Scan();
    lock.Lock();
  }
}

bool Follower::Scan() {
  // Opened again each time: a descriptor per followed file would be one per process of the job.
  const UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(dup(folder.get())), closedir);
  if (entries == nullptr) return false;
  int64_t total = 0;
  std::vector<std::string> pages;
  while (const dirent* entry = readdir(entries.get())) {
    struct stat info = {};
    if (fstatat(folder.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
      continue;
    if (info.st_nlink > 1) continue;  // it is shared: nothing of it is written
    total += info.st_size;
    if (!only_count_ && info.st_size >= kMinimumSize && IsPagesFile(entry->d_name))
      pages.emplace_back(entry->d_name);
  }
  // A followed file that has become small was rewritten.
  for (auto& [name, file] : files_) {
    if (std::find(pages.begin(), pages.end(), name) == pages.end()) file.given_up = true;
  }
  bool more = false;
  for (const std::string& name : pages) {
    Followed& file = files_[name];
    if (!file.given_up) file.given_up = !Follow(folder.get(), name, file, more);
  }
  seen_ = total;
  return more;
}

bool Follower::Follow(int folder, const std::string& name, Followed& file, bool& more) {
  PartialHash& partial = file.partial;
  const UniqueFd fd(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return false;
  if (partial.inode == 0) partial.inode = info.st_ino;
  if (partial.inode != info.st_ino || info.st_size < partial.hashed) return false;
  const int64_t end = std::min<int64_t>(info.st_size, partial.hashed + kTurn);
  if (!HashRange(fd.get(), partial.hashed, end, partial.hash).ok()) return false;
  hashed_ += end - partial.hashed;
  partial.hashed = end;
  more |= end < info.st_size;
  const int64_t whole = end / kWriteBack * kWriteBack;
  if (whole > file.written_back) {
    // Only a head start: errors show up in the fdatasync of the sealing.
    (void)sync_file_range(fd.get(), file.written_back, whole - file.written_back, SYNC_FILE_RANGE_WRITE);
    file.written_back = whole;
  }
  return true;
}

}  // namespace siding::store
