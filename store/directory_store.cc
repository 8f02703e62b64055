#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"
#include "store/cipher.h"
#include "store/commit.h"
#include "store/copy.h"
#include "store/disk.h"
#include "store/draft.h"
#include "store/layout.h"
#include "store/manifest.h"
#include "store/set_aside.h"
#include "store/staging.h"
#include "store/store.h"
#include "store/tier.h"
#include "store/verify.h"

namespace siding {
namespace store {
namespace {

constexpr size_t kDecryptThreads = 4;

// Whether there is a folder of that name; kUnavailable if the disk does not say.
absl::StatusOr<bool> HasFolder(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0) return S_ISDIR(info.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return absl::UnavailableError(absl::StrCat("stat ", path, ": ", strerror(errno)));
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
  // `tier`: its id; empty: it is only looked at.
  explicit DirectoryStore(Layout layout, std::string tier = "", Encryption encryption = {})
      : layout_(std::move(layout)), tier_(std::move(tier)), encryption_(std::move(encryption)) {}

  using ImageStore::Begin;
  absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const ImageKey& key, const Manifest* base) override {
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    return DirectoryDraft::Begin(layout_, encryption_, key, base);
  }

  absl::StatusOr<Copied> CopyFrom(const ImageStore& source, const ImageKey& key,
                                  const CopyOptions& options) override {
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    SIDING_ASSIGN_OR_RETURN(const UniqueFd held, Hold(key));
    SIDING_ASSIGN_OR_RETURN(const Here here, WhatIsHere(key, options));
    if (here == Here::kGood) return Copied{Copied::kWasGood, {}};
    const bool damaged = here == Here::kDamaged, aside = damaged && CheckParent(key).ok();
    if (damaged != held.valid() || (options.only_replaces && !damaged))
      return absl::AbortedError(
          absl::StrCat("image ", Describe(key), " was replaced or deleted while it was read"));
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, source.Read(key));
    SIDING_ASSIGN_OR_RETURN(const std::string folder, source.Path(key));
    SIDING_RETURN_IF_ERROR(CheckDigest(manifest, options.digest, folder));
    if (encryption_.keys && manifest.encryption_key.empty())
      return absl::FailedPreconditionError("image " + Describe(key) +
                                           " was made before images were encrypted, and is not copied");
    const std::string file = absl::StrCat(folder, "/", kManifestName);
    SIDING_ASSIGN_OR_RETURN(const UniqueFd opened, OpenRegular(file));
    SIDING_ASSIGN_OR_RETURN(std::string text, ReadAll(opened, file, kLongestManifest + 1));
    if (DigestOf(text) != manifest.digest) return absl::UnavailableError(file + " has just been replaced");
    const auto commit = [&](StagingFolder& draft) {
      return damaged ? Replace(key, held, draft) : CommitImage(layout_, key, draft);
    };
    const auto written = CopyImage(layout_, {folder, std::move(text), std::move(manifest)}, options, commit);
    // A file that is missing because its tier is away is not lost.
    if (absl::IsDataLoss(written.status())) SIDING_RETURN_IF_ERROR(source.Read(key).status());
    SIDING_RETURN_IF_ERROR(written.status());
    return Copied{aside ? Copied::kReplaced : Copied::kNew, *written};
  }

  absl::StatusOr<std::string> Path(const ImageKey& key) const override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string path = layout_.ImageFolder(key);
    SIDING_RETURN_IF_ERROR(CheckParent(key));
    SIDING_ASSIGN_OR_RETURN(const bool there, HasFolder(path));
    if (there) return path;
    return ThoughTierIsThere(absl::NotFoundError("no image " + Describe(key) + " in " + layout_.root));
  }

  absl::StatusOr<Manifest> Read(const ImageKey& key) const override {
    SIDING_ASSIGN_OR_RETURN(const std::string path, Path(key));
    const std::string file = absl::StrCat(path, "/", kManifestName);
    const auto opened = OpenRegular(file);
    if (absl::IsNotFound(opened.status()))
      return ThoughTierIsThere(absl::DataLossError(file + " is missing"));
    if (!opened.ok()) return opened.status();
    // One byte more, by which it is refused.
    const auto text = ReadAll(*opened, file, kLongestManifest + 1);
    if (!text.ok()) return absl::InternalError(std::string(text.status().message()));
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, Annotated(ParseManifest(*text), file));
    if (manifest.key != key) {
      return absl::DataLossError(absl::StrCat(file, " describes image ", Describe(manifest.key)));
    }
    return manifest;
  }

  absl::StatusOr<Manifest> Verify(const ImageKey& key, const VerifyOptions& options) const override {
    SIDING_ASSIGN_OR_RETURN(Manifest manifest, Read(key));
    SIDING_RETURN_IF_ERROR(CheckDigest(manifest, options.digest, layout_.ImageFolder(key)));
    const absl::Status good = VerifyFolder(layout_.ImageFolder(key), manifest, options);
    if (!good.ok()) return ThoughTierIsThere(good);
    return manifest;
  }

  using ImageStore::Decrypt;
  absl::StatusOr<std::string> Decrypt(const ImageKey& key, const std::string& folder,
                                      const std::function<bool()>& stop) const override {
    SIDING_ASSIGN_OR_RETURN(const Manifest manifest, Read(key));
    if (manifest.encryption_key.empty()) return Path(key);
    const std::string what =
        absl::StrCat("image ", Describe(key), " is encrypted with key ", manifest.encryption_key, ", ");
    if (!encryption_.keys) return absl::FailedPreconditionError(what + "and no key is configured here");
    const auto secret = encryption_.keys->Find(manifest.encryption_key);
    if (!secret.ok())
      return absl::FailedPreconditionError(what + "which is not among those that are configured here");
    SIDING_RETURN_IF_ERROR(RemoveTree(disk(), folder));
    SIDING_RETURN_IF_ERROR(MakeFolders(disk(), folder));
    if (const absl::Status status = DecryptFiles(manifest, *secret, folder, stop); !status.ok()) {
      (void)RemoveTree(disk(), folder);
      return status;
    }
    return folder;
  }

  std::string RestoreFolder(const std::string& name) const override {
    return layout_.root + "/restore/" + name;
  }

  bool IsOnDisk() const override { return store::IsOnDisk(layout_.root); }

  bool IsInMemory() const override { return store::IsInMemory(layout_.root); }

  absl::StatusOr<UniqueFd> OpenScratch() const override {
    // In a folder that the next sweep removes if its maker dies, or the file system keeps the file there,
    // under another name, for as long as it is open.
    const std::string folder = TrashPath(layout_), path = folder + "/scratch";
    if (disk().MakeFolder(folder) != 0) return IoError(layout_, errno, "mkdir " + folder);
    UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid() || unlink(path.c_str()) != 0) return IoError(layout_, errno, "create " + path);
    disk().RemoveFolder(folder);
    return file;
  }

  absl::StatusOr<std::vector<ImageKey>> List() const override {
    std::vector<ImageKey> keys;
    SIDING_ASSIGN_OR_RETURN(const auto checkpoints, Names(layout_.Images()));
    for (const std::string& checkpoint : checkpoints) {
      if (!CheckParent({CheckpointId(checkpoint), 0}).ok()) continue;
      SIDING_ASSIGN_OR_RETURN(const auto ranks, Names(layout_.Images() + "/" + checkpoint));
      for (const std::string& rank : ranks) {
        const auto key = KeyOfFolders(checkpoint, rank);
        if (!key.has_value()) continue;
        SIDING_ASSIGN_OR_RETURN(const bool there, HasFolder(layout_.ImageFolder(*key)));
        if (there) keys.push_back(*key);
      }
    }
    // Afterwards: a tier that goes away meanwhile is not empty, nor is one that is away.
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  absl::Status Delete(const ImageKey& key) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    const std::string parent = layout_.CheckpointFolder(key.checkpoint);
    SIDING_RETURN_IF_ERROR(FaultAt<"store.delete: an image is about to be deleted">());
    if (!CheckParent(key).ok()) return IoError(layout_, RemoveTree(disk(), parent));
    const std::string trash = TrashPath(layout_);
    if (disk().Rename(layout_.ImageFolder(key), trash) != 0) {
      if (errno == ENOENT) {
        SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
        disk().RemoveFolder(parent);  // a process that deleted the last image in it may have died before this
        return absl::OkStatus();
      }
      return IoError(layout_, errno, "rename " + layout_.ImageFolder(key));
    }
    // Before the first file goes: after a power cut the image must be whole or gone.
    absl::Status synced =
        FaultAt<"store.unseen: a deleted image is out of sight, which may not be durable">();
    if (synced.ok()) synced = SyncRemovalFrom(parent);
    if (!synced.ok()) {
      // As it was before: it may be asked for again.
      disk().MakeFolder(parent);
      disk().Rename(trash, layout_.ImageFolder(key));
      return IoError(layout_, synced);
    }
    FaultHere<"store.trashed: a deleted image is out of sight, its files are still there">();
    disk().RemoveFolder(parent);  // stays as long as other ranks are in it
    return IoError(layout_, RemoveTree(disk(), trash));
  }

  absl::StatusOr<UniqueFd> Hold(const ImageKey& key) const override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    // Something else in place of the checkpoint's folder is what Quarantine() removes.
    const bool has_parent = CheckParent(key).ok();
    const std::string path = has_parent ? layout_.ImageFolder(key) : layout_.CheckpointFolder(key.checkpoint);
    UniqueFd held(has_parent ? HoldFolder(path) : open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (held.valid() || errno == ENOENT || errno == ENOTDIR) return held;
    return absl::UnavailableError(absl::StrCat("open ", path, ": ", strerror(errno)));
  }

  absl::Status Quarantine(const ImageKey& key, const UniqueFd& held) override {
    SIDING_RETURN_IF_ERROR(CheckKey(key));
    SIDING_RETURN_IF_ERROR(FaultAt<"store.set-aside: a damaged image is about to be set aside">());
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));  // before anything is made in an empty mount point
    if (!CheckParent(key).ok()) return RemoveParent(key, held);
    const absl::Status aside = SetAside(layout_, key, held);
    // What is not there because the tier is away is not gone.
    return absl::IsNotFound(aside) ? CheckTier(layout_, tier_) : aside;
  }

  absl::StatusOr<Bytes> FreeSpace() const override {
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    return store::FreeSpace(layout_);
  }

 private:
  static absl::Status CheckDigest(const Manifest& manifest, const std::string& expected,
                                  const std::string& folder) {
    if (expected.empty() || manifest.digest == expected) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("image ", Describe(manifest.key), " in ", folder,
                                            " has been replaced: the digest of its manifest is ",
                                            manifest.digest, ", expected ", expected));
  }

  enum class Here { kNothing, kDamaged, kGood };

  // If it is good it is durable as well: whoever put it in its place may have died before that was known.
  absl::StatusOr<Here> WhatIsHere(const ImageKey& key, const CopyOptions& options) {
    const auto going_on = [&](Bytes) { return !options.progress || options.progress(Bytes{0}, Bytes{0}); };
    const auto good = Verify(key, {.progress = going_on, .digest = options.digest});
    if (absl::IsNotFound(good.status())) return Here::kNothing;
    if (absl::IsDataLoss(good.status())) return Here::kDamaged;
    SIDING_RETURN_IF_ERROR(good.status());
    for (const std::string& folder :
         {layout_.CheckpointFolder(key.checkpoint), layout_.Images(), layout_.Staging()})
      SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(disk(), folder)));
    return Here::kGood;
  }

  absl::Status Replace(const ImageKey& key, const UniqueFd& damaged, StagingFolder& draft) {
    SIDING_RETURN_IF_ERROR(FaultAt<"store.set-aside: a damaged image is about to be set aside">());
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));  // before anything is made in an empty mount point
    if (!CheckParent(key).ok()) {
      SIDING_RETURN_IF_ERROR(RemoveParent(key, damaged));
      return CommitImage(layout_, key, draft);
    }
    const absl::Status replaced = ReplaceImage(layout_, key, damaged, draft);
    // What is not there because the tier is away is not gone.
    if (absl::IsAborted(replaced)) SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    return replaced;
  }

  // A link or the like in place of the checkpoint's folder, if that is what is held.
  absl::Status RemoveParent(const ImageKey& key, const UniqueFd& held) {
    const std::string parent = layout_.CheckpointFolder(key.checkpoint);
    if (!IsNamed(held.get(), parent))
      return absl::AbortedError(parent + " has been replaced since it was looked at");
    // No folder that has just taken its place is removed by that.
    if (disk().RemoveFile(parent) == 0 || errno == ENOENT) return absl::OkStatus();
    return IoError(layout_, errno, "remove " + parent);
  }

  // kDataLoss if something else lies where the checkpoint's folder belongs: a link would lead out of the
  // tier.
  absl::Status CheckParent(const ImageKey& key) const {
    const std::string parent = layout_.CheckpointFolder(key.checkpoint);
    struct stat info = {};
    if (lstat(parent.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return absl::OkStatus();
    return absl::DataLossError(parent + " is not a folder");
  }

  // An image that is missing because its tier is away is not lost: the error says that the tier is away.
  absl::Status ThoughTierIsThere(const absl::Status& missing) const {
    SIDING_RETURN_IF_ERROR(CheckTier(layout_, tier_));
    return missing;
  }

  // `parent` is gone itself if another rank's image, which was the last in it, is deleted at the same time.
  absl::Status SyncRemovalFrom(const std::string& parent) const {
    const absl::Status synced = SyncFolder(disk(), parent);
    if (!synced.ok() && !absl::IsNotFound(synced)) return synced;
    if (!synced.ok()) SIDING_RETURN_IF_ERROR(SyncFolder(disk(), layout_.Images()));
    return SyncFolder(disk(), layout_.Staging());
  }

  static absl::StatusOr<Manifest> Annotated(absl::StatusOr<Manifest> manifest, const std::string& file) {
    if (!manifest.ok()) return Annotate(manifest.status(), file);
    return manifest;
  }

  Disk& disk() const { return *layout_.disk; }

  absl::Status DecryptFiles(const Manifest& manifest, const SecretKey& key, const std::string& folder,
                            const std::function<bool()>& stop) const {
    std::vector<absl::Status> results(manifest.files.size());
    RunInParallel(results.size(), kDecryptThreads, [&](size_t i) {
      const std::string& name = manifest.files[i].name;
      results[i] = DecryptFile(disk(), layout_.ImageFolder(manifest.key) + "/" + name, folder + "/" + name,
                               BoundName(manifest.key, name), key, stop);
    });
    for (const absl::Status& result : results) SIDING_RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

  const Layout layout_;
  const std::string tier_;
  const Encryption encryption_;
};

absl::StatusOr<Layout> FindTier(const std::string& root) {
  const Layout layout{root};
  const absl::Status there = CheckTier(layout, "");
  if (there.ok()) return layout;
  return absl::NotFoundError(absl::StrCat(root, " is no checkpoint store: ", there.message()));
}

// Makes the folders.
absl::Status Prepare(const Layout& layout, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const absl::Status made = MakeFolders(*layout.disk, folder);
    if (!made.ok()) return Annotate(IoError(layout, made), "checkpoint store " + layout.root);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace store

absl::StatusOr<std::unique_ptr<const ImageStore>> InspectDirectoryStore(
    const std::string& root, std::shared_ptr<const store::KeyRing> keys) {
  SIDING_ASSIGN_OR_RETURN(const store::Layout layout, store::FindTier(root));
  return std::make_unique<const store::DirectoryStore>(layout, "", store::Encryption{std::move(keys), {}});
}

absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root,
                                                               const StoreOptions& options) {
  if (root.empty()) return absl::InvalidArgumentError("a checkpoint store needs a folder");
  if (options.visit) SIDING_RETURN_IF_ERROR(store::FindTier(root).status());
  const store::Layout layout{root, options.disk != nullptr ? options.disk : &store::RealDisk()};
  const store::RememberedTier remembered(options.remembered, options.boot);
  SIDING_RETURN_IF_ERROR(remembered.Check(layout));  // before anything is made in an empty mount point
  SIDING_RETURN_IF_ERROR(store::Prepare(layout, {root, layout.Images(), layout.Staging()}));
  if (!options.visit) SIDING_RETURN_IF_ERROR(store::SweepStaging(layout));
  SIDING_ASSIGN_OR_RETURN(const std::string tier, store::TierId(layout));
  SIDING_RETURN_IF_ERROR(remembered.Remember(layout, tier));
  store::Encryption encryption{options.keys, {options.plain_folder, layout.disk}};
  if (encryption.keys) {
    if (options.plain_folder.empty())
      return absl::InvalidArgumentError("encryption needs a folder for plain files");
    const store::Layout& plain = encryption.plain;
    SIDING_RETURN_IF_ERROR(store::Prepare(plain, {plain.root, plain.Staging()}));
    SIDING_RETURN_IF_ERROR(store::SweepStaging(plain));
  }
  SIDING_RETURN_IF_ERROR(FaultAt<"store.opened: what dead writers have left is removed">());
  return std::make_unique<store::DirectoryStore>(layout, tier, std::move(encryption));
}

}  // namespace siding
