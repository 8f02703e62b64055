#include "store/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <random>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding::store {
namespace {

constexpr char kLockSuffix[] = ".lock";
constexpr size_t kTagDigits = 16;

// This machine's name without characters that mean something in a file name here.
std::string HostTag() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string tag(name);
  std::replace_if(
      tag.begin(), tag.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  return tag.substr(0, 100);
}

std::string UniqueSuffix() {
  std::random_device random;
  const uint64_t number = (static_cast<uint64_t>(random()) << 32) | random();
  return absl::StrCat(".", HostTag(), "-", absl::Hex(number, absl::kZeroPad16));
}

bool IsOurs(const std::string& name) {
  const size_t dot = name.rfind('.');
  const std::string host = "." + HostTag() + "-";
  return dot != std::string::npos && name.compare(dot, host.size(), host) == 0 &&
         name.size() == dot + host.size() + kTagDigits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagingFolder>> StagingFolder::Make(const Layout& layout,
                                                                   const ImageKey& key) {
  return Make(layout, absl::StrCat(key.checkpoint.value(), ".", key.rank));
}

absl::StatusOr<std::unique_ptr<StagingFolder>> StagingFolder::Make(const Layout& layout,
                                                                   const std::string& stem) {
  for (;;) {
    const std::string path = absl::StrCat(layout.Staging(), "/", stem, UniqueSuffix());
    const std::string lock_path = path + kLockSuffix;
    UniqueFd lock(layout.disk->Create(lock_path));
    if (!lock.valid() && errno == EEXIST) continue;
    if (!lock.valid()) return IoError(layout, errno, "create " + lock_path);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error == EWOULDBLOCK) continue;
      layout.disk->RemoveFile(lock_path);
      return IoError(layout, error, "flock " + lock_path + " (must the file system be mounted with locks?)");
    }
    // The sweep may have removed the file between our open and our flock; then the lock protects nothing.
    if (!IsNamed(lock.get(), lock_path)) continue;
    FaultHere<"store.lock: the lock of a new draft is made, its folder is not">();
    if (layout.disk->MakeFolder(path) != 0) {
      const int error = errno;
      layout.disk->RemoveFile(lock_path);
      return IoError(layout, error, "mkdir " + path);
    }
    return std::unique_ptr<StagingFolder>(new StagingFolder(*layout.disk, path, std::move(lock)));
  }
}

StagingFolder::~StagingFolder() {
  // A folder that cannot be removed keeps its lock file out of the way: the next sweep tries again.
  if (!moved_away_) (void)RemoveTree(disk_, path_);
  disk_.RemoveFile(path_ + kLockSuffix);
}

std::string TrashPath(const Layout& layout) { return layout.Staging() + "/trash" + UniqueSuffix(); }

std::string DamagedPath(const Layout& layout, const ImageKey& key) {
  return absl::StrCat(layout.Damaged(), "/", key.checkpoint.value(), ".", key.rank, UniqueSuffix());
}

absl::Status SweepStaging(const Layout& layout) {
  std::error_code error;
  std::set<std::string> names;
  for (auto it = std::filesystem::directory_iterator(layout.Staging(), error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename();
    if (absl::EndsWith(name, kLockSuffix)) name.resize(name.size() - (sizeof kLockSuffix - 1));
    if (IsOurs(name)) names.insert(name);
  }
  if (error) return absl::InternalError(absl::StrCat("list ", layout.Staging(), ": ", error.message()));
  for (const std::string& name : names) {
    const std::string path = layout.Staging() + "/" + name;
    const std::string lock_path = path + kLockSuffix;
    const UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!lock.valid() && errno != ENOENT) return IoError(layout, errno, "open " + lock_path);
    if (lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;  // its writer lives
    SIDING_RETURN_IF_ERROR(IoError(layout, RemoveTree(*layout.disk, path)));
    if (lock.valid()) layout.disk->RemoveFile(lock_path);
  }
  return absl::OkStatus();
}

}  // namespace siding::store
