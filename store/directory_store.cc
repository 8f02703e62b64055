#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "store/draft.h"
#include "store/layout.h"
#include "store/manifest.h"
#include "store/staging.h"
#include "store/store.h"
#include "store/verify.h"

namespace siding {
namespace store {
namespace {

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Names in a folder; none if it does not exist.
absl::StatusOr<std::vector<std::string>> Names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
    return absl::InternalError(absl::StrCat("list ", folder, ": ", error.message()));
  }
  return names;
}

// Has no state but its root; the file system's renames are what makes it thread-safe.
class DirectoryStore final : public ImageStore {
 public:
  explicit DirectoryStore(Layout layout) : layout_(std::move(layout)) {}

  absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const ImageKey& key) override {
    return DirectoryDraft::Begin(layout_, key);
  }

  absl::StatusOr<std::string> Path(const ImageKey& key) const override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string path = layout_.ImageFolder(key);
    if (!IsFolder(path)) return absl::NotFoundError("no image " + Describe(key) + " in " + layout_.root);
    return path;
  }

  absl::StatusOr<Manifest> Read(const ImageKey& key) const override {
    SIDING_ASSIGN_OR_RETURN(const std::string path, Path(key));
    const std::string file = absl::StrCat(path, "/", kManifestName);
    const auto text = ReadFile(file);
    if (absl::IsNotFound(text.status())) return absl::DataLossError(file + " is missing");
    if (!text.ok()) return absl::InternalError(std::string(text.status().message()));
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, Annotated(ParseManifest(*text), file));
    if (manifest.key != key) {
      return absl::DataLossError(absl::StrCat(file, " describes image ", Describe(manifest.key)));
    }
    return manifest;
  }

  absl::StatusOr<Manifest> Verify(const ImageKey& key,
                                  const std::function<void(Bytes)>& progress) const override {
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, Read(key));
    SIDING_RETURN_IF_ERROR(VerifyFolder(layout_.ImageFolder(key), manifest, progress));
    return manifest;
  }

  absl::StatusOr<std::vector<ImageKey>> List() const override {
    std::vector<ImageKey> keys;
    // It is made when the tier is opened: without it the tier is away, which is not the same as empty.
    if (!IsFolder(layout_.Images())) return absl::UnavailableError(layout_.Images() + " is not there");
    SIDING_ASSIGN_OR_RETURN(const auto checkpoints, Names(layout_.Images()));
    for (const std::string& checkpoint : checkpoints) {
      SIDING_ASSIGN_OR_RETURN(const auto ranks, Names(layout_.Images() + "/" + checkpoint));
      for (const std::string& rank : ranks) {
        const auto key = KeyOfFolders(checkpoint, rank);
        if (key.has_value() && IsFolder(layout_.ImageFolder(*key))) keys.push_back(*key);
      }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  absl::Status Delete(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string parent = layout_.CheckpointFolder(key.checkpoint);
    SIDING_RETURN_IF_ERROR(FaultAt<"store.delete: an image is about to be deleted">());
    const std::string trash = TrashPath(layout_);
    if (rename(layout_.ImageFolder(key).c_str(), trash.c_str()) != 0) {
      if (errno == ENOENT) return absl::OkStatus();
      return IoError(layout_, errno, "rename " + layout_.ImageFolder(key));
    }
    // Before the first file goes: after a power cut the image must be whole or gone.
    absl::Status synced =
        FaultAt<"store.unseen: a deleted image is out of sight, which may not be durable">();
    if (synced.ok()) synced = SyncRemovalFrom(parent);
    if (!synced.ok()) {
      // As it was before: it may be asked for again.
      mkdir(parent.c_str(), 0755);
      rename(trash.c_str(), layout_.ImageFolder(key).c_str());
      return IoError(layout_, synced);
    }
    FaultHere<"store.trashed: a deleted image is out of sight, its files are still there">();
    rmdir(parent.c_str());  // stays as long as other ranks are in it
    return RemoveTree(trash);
  }

  absl::Status SetAside(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    SIDING_RETURN_IF_ERROR(FaultAt<"store.set-aside: a damaged image is about to be set aside">());
    SIDING_RETURN_IF_ERROR(IoError(layout_, MakeDirectories(layout_.Damaged(), 0700)));
    if (rename(layout_.ImageFolder(key).c_str(), DamagedPath(layout_, key).c_str()) != 0 && errno != ENOENT)
      return IoError(layout_, errno, "rename " + layout_.ImageFolder(key));
    rmdir(layout_.CheckpointFolder(key.checkpoint).c_str());  // stays as long as other ranks are in it
    return absl::OkStatus();
  }

  absl::StatusOr<Bytes> FreeSpace() const override { return store::FreeSpace(layout_.root); }

 private:
  // `parent` is gone itself if another rank's image, which was the last in it, is deleted at the same time.
  absl::Status SyncRemovalFrom(const std::string& parent) const {
    const absl::Status synced = SyncDirectory(parent);
    if (!synced.ok() && !absl::IsNotFound(synced)) return synced;
    if (!synced.ok()) SIDING_RETURN_IF_ERROR(SyncDirectory(layout_.Images()));
    return SyncDirectory(layout_.Staging());
  }

  static absl::StatusOr<Manifest> Annotated(absl::StatusOr<Manifest> manifest, const std::string& file) {
    if (!manifest.ok()) return Annotate(manifest.status(), file);
    return manifest;
  }

  const Layout layout_;
};

}  // namespace
}  // namespace store

absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root) {
  if (root.empty()) return absl::InvalidArgumentError("a checkpoint store needs a folder");
  const store::Layout layout{root};
  for (const std::string& folder : {layout.Images(), layout.Staging()}) {
    const absl::Status made = MakeDirectories(folder);
    if (!made.ok()) return Annotate(store::IoError(layout, made), "checkpoint store " + root);
  }
  SIDING_RETURN_IF_ERROR(store::IoError(layout, SyncDirectory(root)));
  SIDING_RETURN_IF_ERROR(store::SweepStaging(layout));
  SIDING_RETURN_IF_ERROR(FaultAt<"store.opened: what dead writers have left is removed">());
  return std::unique_ptr<ImageStore>(std::make_unique<store::DirectoryStore>(layout));
}

}  // namespace siding
