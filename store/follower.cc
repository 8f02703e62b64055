#include "store/follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>

#include "common/files.h"
#include "common/status.h"
#include "store/manifest.h"

namespace siding {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(10);
constexpr size_t kReadSize = 1 << 20;

bool IsAppendOnly(const std::string& name) { return name.rfind("pages-", 0) == 0; }

}  // namespace

Follower::Follower(std::string folder) : folder_(std::move(folder)), buffer_(kReadSize, '\0') {
  thread_ = std::thread([this] { Run(); });
}

Follower::~Follower() { StopThread(); }

void Follower::StopThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Follower::Run() {
  for (;;) {
    Look();
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kInterval, [this] { return stopping_; })) return;
  }
}

void Follower::Look() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (IsAppendOnly(name)) files_.try_emplace(name);
  }
  int64_t total = 0;
  for (auto& [name, file] : files_) {
    CatchUp(name, file);
    total += file.hashed;
    bytes_ = std::max(bytes_.load(), total);
  }
}

bool Follower::CatchUp(const std::string& name, Followed& file) {
  if (!file.fd.valid()) file.fd.Reset(open((folder_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.fd.valid()) return false;
  const int64_t before = file.hashed;
  for (;;) {
    const ssize_t n = pread(file.fd.get(), buffer_.data(), buffer_.size(), file.hashed);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    file.checksum.Update(buffer_.data(), static_cast<size_t>(n));
    file.hashed += n;
  }
  // The disk may begin with what is here; the sync at the end waits for less then.
  if (file.hashed > before) sync_file_range(file.fd.get(), before, file.hashed - before, SYNC_FILE_RANGE_WRITE);
  return true;
}

absl::StatusOr<std::vector<ImageFileEntry>> Follower::Finish() {
  StopThread();
  std::vector<ImageFileEntry> entries;
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (!entry.is_regular_file()) return absl::InternalError(entry.path().string() + " is no regular file");
    names.insert(entry.path().filename().string());
  }
  if (error) return absl::InternalError(folder_ + ": " + error.message());
  for (const std::string& name : names) {
    const std::string path = folder_ + "/" + name;
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid()) return ErrnoError(errno, "open " + path);
    if (fdatasync(fd.get()) != 0) return ErrnoError(errno, "fsync " + path);
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, "stat " + path);
    auto followed = files_.find(name);
    if (followed != files_.end() && CatchUp(name, followed->second) && followed->second.hashed == info.st_size) {
      entries.push_back({name, Bytes{info.st_size}, followed->second.checksum.Digest()});
      continue;
    }
    SIDING_ASSIGN_OR_RETURN(ImageFileEntry entry, HashFile(folder_, name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace siding
