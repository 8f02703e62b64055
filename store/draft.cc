#include "store/draft.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"
#include "store/cipher.h"
#include "store/commit.h"
#include "store/manifest.h"

namespace siding::store {
namespace {

// More than there are cores to hash on, because most of a worker's time is the wait for the disk, and a
// journaling file system settles several fdatasync calls with one commit.
constexpr size_t kSealThreads = 4;

// A file system over a network gives such names to files that were removed while they were open, and removes
// them soon after that.
bool IsHidden(const std::string& name) { return name[0] == '.'; }
constexpr Duration kHiddenPatience = std::chrono::seconds(2);

void AwaitNoneHidden(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + kHiddenPatience;
  for (;;) {
    const auto names = ListFolder(folder);
    if (!names.ok() || std::none_of(names->begin(), names->end(), IsHidden)) return;
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Some file systems make no hard links, or none between folders.
absl::StatusOr<bool> CanLink(const Layout& layout, const ImageKey& base, const std::string& draft) {
  const std::string name = draft + "/linked";
  const std::string file = absl::StrCat(layout.ImageFolder(base), "/", kManifestName);
  if (layout.disk->Link(file, name) != 0) return false;
  if (layout.disk->RemoveFile(name) != 0) return IoError(layout, errno, "remove " + name);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDraft>> DirectoryDraft::Begin(const Layout& layout,
                                                                  const Encryption& encryption,
                                                                  const ImageKey& key, const Manifest* base) {
  SIDING_RETURN_IF_ERROR(CheckKey(key));
  SIDING_ASSIGN_OR_RETURN(auto folder, StagingFolder::Make(layout, key));
  SIDING_RETURN_IF_ERROR(FaultAt<"store.draft: a draft is made">());
  std::unique_ptr<StagingFolder> plain;
  if (encryption.keys) {
    SIDING_ASSIGN_OR_RETURN(plain, StagingFolder::Make(encryption.plain, key));
  }
  // An encrypted file is bound to its image.
  bool shares = base != nullptr && !plain && base->encryption_key.empty();
  const bool near = layout.disk->IsNear(layout.root);
  if (shares && !near) {
    SIDING_ASSIGN_OR_RETURN(shares, CanLink(layout, base->key, folder->path()));
  }
  return std::unique_ptr<ImageDraft>(new DirectoryDraft(layout, encryption.keys, key, std::move(folder),
                                                        std::move(plain),
                                                        shares ? std::optional(*base) : std::nullopt, near));
}

absl::Status DirectoryDraft::Share(const ImageFileEntry& file, const std::string& name) {
  if (phase_ != kWriting || !base_)
    return absl::FailedPreconditionError("image " + Describe(key_) + " cannot share files");
  const std::string from = layout_.ImageFolder(base_->key) + "/" + file.name;
  const std::string to = path() + "/" + name;
  if (layout_.disk->Link(from, to) != 0) return IoError(layout_, errno, "link " + from);
  struct stat info = {};
  if (lstat(to.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == file.size.value) {
    shared_[name] = {{name, file.size, file.checksum, /*shared=*/true}, info.st_ino};
    return absl::OkStatus();
  }
  layout_.disk->RemoveFile(to);
  return absl::DataLossError(
      absl::StrCat(from, " is not the file of ", file.size.value, " bytes that the manifest names"));
}

absl::Status DirectoryDraft::RenameShared(const std::string& from, const std::string& to) {
  const auto shared = shared_.find(from);
  if (phase_ != kWriting || shared == shared_.end())
    return absl::FailedPreconditionError(from + " is not shared by image " + Describe(key_));
  const std::string before = path() + "/" + from, now = path() + "/" + to;
  struct stat info = {};
  if (lstat(now.c_str(), &info) == 0) return absl::AlreadyExistsError(now + " is there already");
  if (layout_.disk->Rename(before, now) != 0)
    return IoError(layout_, errno, "rename " + before + " to " + now);
  Shared moved = std::move(shared->second);
  moved.file.name = to;
  shared_.erase(shared);
  shared_[to] = std::move(moved);
  return absl::OkStatus();
}

absl::Status DirectoryDraft::CheckShared(const std::string& name) const {
  struct stat info = {};
  const std::string file = path() + "/" + name;
  if (lstat(file.c_str(), &info) != 0) return IoError(layout_, errno, "stat " + file);
  const Shared& shared = shared_.at(name);
  if (info.st_ino == shared.inode && info.st_size == shared.file.size.value) return absl::OkStatus();
  return absl::InternalError(file + " was shared, and another file is in its place");
}

absl::StatusOr<std::vector<ImageFileEntry>> DirectoryDraft::ListFiles() const {
  std::vector<ImageFileEntry> files;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(path(), error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename();
    if (IsHidden(name)) return absl::InternalError(it->path().string() + " is no file of an image");
    struct stat info = {};
    if (lstat(it->path().c_str(), &info) != 0) return IoError(layout_, errno, "stat " + it->path().string());
    if (!S_ISREG(info.st_mode)) {
      return absl::InternalError(
          absl::StrCat(it->path().string(), " is not a regular file; an image has only those"));
    }
    if (name == kManifestName)
      return absl::InternalError(it->path().string() + " was not written by the store");
    files.push_back({name, Bytes{info.st_size}, ""});
  }
  if (error) return absl::InternalError(absl::StrCat("list ", path(), ": ", error.message()));
  if (files.empty()) return absl::InternalError("image " + Describe(key_) + " has no files");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

absl::Status DirectoryDraft::FinishFile(ImageFileEntry& file, PartialHash* known,
                                        const std::function<bool()>& stop) const {
  const std::string name = path() + "/" + file.name;
  const UniqueFd fd(open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return IoError(layout_, errno, "open " + name);
  // Only root may read what a job had in memory, whatever the umask of the process that wrote it.
  if ((info.st_mode & 07777) != 0600 && fchmod(fd.get(), 0600) != 0)
    return IoError(layout_, errno, "chmod " + name);
  // The disk writes while the checksums are computed.
  (void)sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  PartialHash fresh;
  const bool goes_on = known != nullptr && known->inode == info.st_ino && known->hashed <= info.st_size;
  PartialHash& partial = goes_on ? *known : fresh;
  const absl::Status read =
      HashRange(fd.get(), partial.hashed, info.st_size, partial.hash, [&](int64_t) { return !stop(); });
  if (absl::IsCancelled(read)) return read;
  if (!read.ok()) return absl::InternalError(absl::StrCat(name, ": ", std::string(read.message())));
  if (layout_.disk->SyncFile(fd.get()) != 0) return IoError(layout_, errno, "fdatasync " + name);
  file.size = Bytes{info.st_size};
  file.checksum = partial.hash.Checksum();
  return absl::OkStatus();
}

absl::Status DirectoryDraft::EncryptFile(ImageFileEntry& file) const {
  const auto encrypted = store::EncryptFile(*layout_.disk, absl::StrCat(plain_->path(), "/", file.name),
                                            absl::StrCat(folder_->path(), "/", file.name),
                                            BoundName(key_, file.name), keys_->current());
  if (!encrypted.ok()) return IoError(layout_, encrypted.status());
  file.size = Bytes{encrypted->size};
  file.checksum = encrypted->checksum;
  return absl::OkStatus();
}

absl::StatusOr<Manifest> DirectoryDraft::Seal(std::map<std::string, std::string> metadata,
                                              const std::function<bool()>& stop) {
  if (phase_ != kWriting)
    return absl::FailedPreconditionError("image " + Describe(key_) + " cannot be sealed twice");
  // For good: the kernel tells once that a file could not be written, and a second try would succeed.
  phase_ = kUnsealable;
  std::map<std::string, PartialHash> followed = follower_.Stop();
  Manifest manifest{key_, keys_ ? keys_->current().Id() : "", SystemClock().Now(), {}, std::move(metadata),
                    {}};
  if (!near_) AwaitNoneHidden(path());
  SIDING_ASSIGN_OR_RETURN(manifest.files, ListFiles());

  // The largest first, so that no thread is left alone with it at the end.
  std::vector<size_t> order(manifest.files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return manifest.files[a].size > manifest.files[b].size; });
  std::vector<absl::Status> results(order.size());
  RunInParallel(order.size(), kSealThreads, [&](size_t i) {
    ImageFileEntry& file = manifest.files[order[i]];
    const auto known = followed.find(file.name);
    const auto shared = shared_.find(file.name);
    if (shared != shared_.end()) {
      file = shared->second.file;
      results[order[i]] = CheckShared(file.name);
      return;
    }
    results[order[i]] = stop()   ? absl::CancelledError("called off")
                        : plain_ ? EncryptFile(file)
                                 : FinishFile(file, known == followed.end() ? nullptr : &known->second, stop);
  });
  for (const absl::Status& result : results) SIDING_RETURN_IF_ERROR(result);

  SIDING_RETURN_IF_ERROR(FaultAt<"store.hashed: all files of a draft are hashed and synced">());
  sealed_size_ = manifest.TotalSize().value;
  SIDING_ASSIGN_OR_RETURN(const std::string text, ManifestToText(manifest));
  manifest.digest = DigestOf(text);
  SIDING_RETURN_IF_ERROR(
      IoError(layout_, WriteNewFile(*layout_.disk, absl::StrCat(folder_->path(), "/", kManifestName), text)));
  SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(*layout_.disk, folder_->path())));
  SIDING_RETURN_IF_ERROR(FaultAt<"store.sealed: the manifest of a draft is durable">());
  plain_.reset();
  phase_ = kSealed;
  return manifest;
}

absl::Status DirectoryDraft::Commit() {
  if (phase_ != kSealed) {
    return absl::FailedPreconditionError(absl::StrCat(
        "image ", Describe(key_), " is ", phase_ == kCommitted ? "committed already" : "not sealed"));
  }
  SIDING_RETURN_IF_ERROR(CommitImage(layout_, key_, *folder_));
  phase_ = kCommitted;
  return absl::OkStatus();
}

}  // namespace siding::store
