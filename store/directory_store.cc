#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

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
    struct stat info = {};
    if (lstat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return absl::DataLossError(file + " is not a regular file");
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
    const std::string trash = TrashPath(layout_);
    if (disk().Rename(layout_.ImageFolder(key), trash) != 0) {
      if (errno == ENOENT) return absl::OkStatus();
      return IoError(layout_, errno, "rename " + layout_.ImageFolder(key));
    }
    // Before the first file goes: after a power cut the image must be whole or gone.
    SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(disk(), parent)));
    SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(disk(), layout_.Staging())));
    disk().RemoveFolder(parent);  // stays as long as other ranks are in it
    return IoError(layout_, RemoveTree(disk(), trash));
  }

  absl::Status SetAside(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string parent = layout_.CheckpointFolder(key.checkpoint);
    SIDING_RETURN_IF_ERROR(IoError(layout_, MakeFolders(disk(), layout_.Damaged())));
    if (disk().Rename(layout_.ImageFolder(key), DamagedPath(layout_, key)) != 0) {
      if (errno == ENOENT) return absl::OkStatus();
      return IoError(layout_, errno, "rename " + layout_.ImageFolder(key));
    }
    // After a power cut it must not be back among those that count.
    SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(disk(), layout_.Damaged())));
    SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(disk(), parent)));
    disk().RemoveFolder(parent);  // stays as long as other ranks are in it
    return absl::OkStatus();
  }

  absl::StatusOr<Bytes> FreeSpace() const override { return store::FreeSpace(layout_); }

 private:
  static absl::StatusOr<Manifest> Annotated(absl::StatusOr<Manifest> manifest, const std::string& file) {
    if (!manifest.ok()) return Annotate(manifest.status(), file);
    return manifest;
  }

  Disk& disk() const { return *layout_.disk; }

  const Layout layout_;
};

}  // namespace
}  // namespace store

absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root) {
  return OpenDirectoryStore(root, store::RealDisk());
}

absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root, store::Disk& disk) {
  if (root.empty()) return absl::InvalidArgumentError("a checkpoint store needs a folder");
  const store::Layout layout{root, &disk};
  for (const std::string& folder : {root, layout.Images(), layout.Staging()}) {
    const absl::Status made = store::MakeFolders(disk, folder);
    if (!made.ok()) return Annotate(store::IoError(layout, made), "checkpoint store " + root);
  }
  SIDING_RETURN_IF_ERROR(store::SweepStaging(layout));
  return std::unique_ptr<ImageStore>(std::make_unique<store::DirectoryStore>(layout));
}

}  // namespace siding
