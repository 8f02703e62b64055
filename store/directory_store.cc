#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/status.h"
#include "store/follower.h"
#include "store/manifest.h"
#include "store/store.h"

namespace siding {
namespace {

namespace fs = std::filesystem;

std::string RankFolder(const std::string& root, const ImageKey& key) {
  return absl::StrCat(root, "/images/", key.checkpoint.value(), "/", key.rank);
}

// Checkpoint ids become folder names, and come from messages.
absl::Status CheckKey(const ImageKey& key) {
  const std::string& id = key.checkpoint.value();
  const bool good = !id.empty() && id[0] != '.' && key.rank >= 0 &&
                    id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") == std::string::npos;
  return good ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("'", id, "' is no checkpoint id"));
}

class DirectoryDraft final : public ImageDraft {
 public:
  DirectoryDraft(std::string root, ImageKey key, std::string path, UniqueFd lock)
      : root_(std::move(root)),
        key_(std::move(key)),
        path_(std::move(path)),
        lock_(std::move(lock)),
        follower_(std::make_unique<Follower>(path_)) {}

  ~DirectoryDraft() override {
    follower_.reset();
    std::error_code ignored;
    if (!committed_) fs::remove_all(path_, ignored);
    unlink((path_ + ".lock").c_str());
  }

  const std::string& path() const override { return path_; }
  Bytes BytesSoFar() const override { return follower_->BytesSoFar(); }

  absl::StatusOr<Manifest> Seal(std::map<std::string, std::string> metadata) override {
    auto files = follower_->Finish();
    if (!files.ok()) return Explain(files.status());
    if (files->empty()) return absl::FailedPreconditionError("the image has no files");
    Manifest manifest{key_, SystemClock().Now(), *std::move(files), std::move(metadata)};
    const absl::Status written = WriteFileDurably(path_ + "/manifest.json", EncodeManifest(manifest), 0600);
    if (!written.ok()) return Explain(written);
    sealed_ = true;
    return manifest;
  }

  absl::Status Commit() override {
    if (!sealed_) return absl::FailedPreconditionError("the image is not sealed");
    const std::string target = RankFolder(root_, key_);
    const std::string parent = fs::path(target).parent_path();
    SIDING_RETURN_IF_ERROR(MakeDirectories(parent, 0700));
    if (access(target.c_str(), F_OK) == 0) return absl::AlreadyExistsError(absl::StrCat(target, " is there already"));
    if (rename(path_.c_str(), target.c_str()) != 0) {
      return errno == EEXIST || errno == ENOTEMPTY ? absl::AlreadyExistsError(absl::StrCat(target, " is there already"))
                                                   : ErrnoError(errno, absl::StrCat("rename to ", target));
    }
    committed_ = true;
    SIDING_RETURN_IF_ERROR(SyncDirectory(parent));
    return SyncDirectory(root_ + "/images");
  }

 private:
  absl::Status Explain(const absl::Status& status) const {
    return absl::IsResourceExhausted(status) ? absl::ResourceExhaustedError(absl::StrCat(root_, " is full: ", status.message()))
                                             : status;
  }

  const std::string root_;
  const ImageKey key_;
  const std::string path_;
  const UniqueFd lock_;  // says to other processes that this draft has a living writer
  std::unique_ptr<Follower> follower_;
  bool sealed_ = false;
  bool committed_ = false;
};

class DirectoryStore final : public ImageStore {
 public:
  explicit DirectoryStore(std::string root) : root_(std::move(root)) {}

  absl::Status Open() {
    SIDING_RETURN_IF_ERROR(MakeDirectories(root_));
    SIDING_RETURN_IF_ERROR(MakeDirectories(root_ + "/images", 0755));
    SIDING_RETURN_IF_ERROR(MakeDirectories(root_ + "/staging", 0755));
    RemoveAbandonedDrafts();
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    static std::atomic<unsigned> counter{0};
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    const std::string path = absl::StrCat(root_, "/staging/", key.checkpoint.value(), ".", key.rank, ".", host, "-",
                                          getpid(), "-", counter++);
    // The lock before the folder: whoever sees the folder can tell whether its writer lives.
    UniqueFd lock(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.valid()) return ErrnoError(errno, absl::StrCat("create ", path, ".lock"));
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return ErrnoError(errno, absl::StrCat("lock ", path, ".lock"));
    if (mkdir(path.c_str(), 0700) != 0) {
      const absl::Status status = ErrnoError(errno, absl::StrCat("mkdir ", path));
      unlink((path + ".lock").c_str());
      return status;
    }
    return std::make_unique<DirectoryDraft>(root_, key, path, std::move(lock));
  }

  absl::StatusOr<Manifest> Read(const ImageKey& key) const override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string path = RankFolder(root_, key) + "/manifest.json";
    auto text = ReadFile(path);
    if (absl::IsNotFound(text.status())) {
      return absl::NotFoundError(absl::StrCat("no image of checkpoint ", key.checkpoint.value(), " rank ", key.rank, " in ", root_));
    }
    if (!text.ok()) return text.status();
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, DecodeManifest(*text, path));
    if (manifest.key != key) return absl::DataLossError(absl::StrCat(path, ": describes another image"));
    return manifest;
  }

  absl::StatusOr<Manifest> Verify(const ImageKey& key, const std::function<void(Bytes)>& progress) const override {
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, Read(key));
    SIDING_RETURN_IF_ERROR(VerifyFiles(RankFolder(root_, key), manifest, progress));
    return manifest;
  }

  absl::StatusOr<std::string> Path(const ImageKey& key) const override {
    SIDING_RETURN_IF_ERROR(Read(key).status());
    return RankFolder(root_, key);
  }

  absl::StatusOr<std::vector<ImageKey>> List() const override {
    std::vector<ImageKey> keys;
    std::error_code error;
    for (const auto& checkpoint : fs::directory_iterator(root_ + "/images", error)) {
      for (const auto& rank : fs::directory_iterator(checkpoint.path(), error)) {
        int number = 0;
        if (!absl::SimpleAtoi(rank.path().filename().string(), &number)) continue;
        if (!fs::exists(rank.path() / "manifest.json", error)) continue;
        keys.push_back({CheckpointId(checkpoint.path().filename().string()), number});
      }
    }
    if (error) return absl::InternalError(absl::StrCat(root_, ": ", error.message()));
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  absl::Status Delete(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string folder = RankFolder(root_, key);
    static std::atomic<unsigned> counter{0};
    const std::string trash = absl::StrCat(root_, "/staging/deleted-", getpid(), "-", counter++);
    // Out of sight in one step: a half deleted image must not look like an image.
    if (rename(folder.c_str(), trash.c_str()) != 0) {
      return errno == ENOENT ? absl::OkStatus() : ErrnoError(errno, absl::StrCat("rename ", folder));
    }
    std::error_code error;
    fs::remove_all(trash, error);
    rmdir(fs::path(folder).parent_path().c_str());  // fails while other ranks are there
    return error ? absl::InternalError(absl::StrCat("remove ", trash, ": ", error.message())) : absl::OkStatus();
  }

  absl::StatusOr<Bytes> FreeSpace() const override {
    struct statvfs info {};
    if (statvfs(root_.c_str(), &info) != 0) return ErrnoError(errno, absl::StrCat("statvfs ", root_));
    return Bytes{static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize)};
  }

 private:
  void RemoveAbandonedDrafts() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(root_ + "/staging", ignored)) {
      if (entry.path().extension() != ".lock") {
        // Deleted images whose deleter died, and folders without a lock, have nobody.
        if (!fs::exists(entry.path().string() + ".lock", ignored)) fs::remove_all(entry.path(), ignored);
        continue;
      }
      UniqueFd lock(open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
      if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      fs::path draft = entry.path();
      fs::remove_all(draft.replace_extension(), ignored);
      unlink(entry.path().c_str());
    }
  }

  const std::string root_;
};

}  // namespace

Bytes Manifest::TotalSize() const {
  Bytes total;
  for (const ImageFileEntry& file : files) total += file.size;
  return total;
}

absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root) {
  auto store = std::make_unique<DirectoryStore>(root);
  SIDING_RETURN_IF_ERROR(store->Open());
  return store;
}

}  // namespace siding
