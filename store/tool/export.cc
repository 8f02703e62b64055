#include "store/tool/export.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/memory/share_pages.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/status.h"
#include "store/disk.h"
#include "store/layout.h"
#include "store/secret_key.h"
#include "store/tool/held_bytes.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;

// Without it criu takes a folder for no image, so it comes last.
constexpr char kInventory[] = "inventory.img";

// Of a folder: without what makes no other of it, but has a link at its end followed.
std::string Stripped(std::string path) {
  for (;;) {
    if (path.size() > 1 && path.back() == '/')
      path.pop_back();
    else if (path.size() > 2 && absl::EndsWith(path, "/."))
      path.resize(path.size() - 1);
    else
      return path;
  }
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The folder's parent, and all that are above it, without links.
std::vector<std::string> FoldersAbove(const std::string& path) {
  std::vector<std::string> above;
  std::error_code error;
  fs::path folder = fs::weakly_canonical(ParentOf(path), error);
  if (error) return {ParentOf(path)};
  for (;; folder = folder.parent_path()) {
    above.push_back(folder.string());
    if (folder == folder.parent_path()) return above;
  }
}

// Who may rename what is in there could put another folder in the place of that which is exported to.
absl::Status CheckAbove(const std::string& path) {
  for (const std::string& folder : FoldersAbove(path)) {
    struct stat info = {};
    if (lstat(folder.c_str(), &info) != 0) continue;  // that is said when it is to be used
    if (info.st_uid != 0 && info.st_uid != geteuid())
      return absl::FailedPreconditionError(absl::StrCat(
          folder, " belongs to uid ", info.st_uid, ", who could put another folder in the place of ", path,
          "; expected ", geteuid(), geteuid() == 0 ? "" : " or 0"));
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
      return absl::FailedPreconditionError(
          absl::StrCat(folder, " can be written by others, who could put another folder in the place of ",
                       path, "; expected mode 0755 or the sticky bit"));
  }
  return absl::OkStatus();
}

// The folder that is exported to. As long as nothing was finished, it becomes again what it was.
class Target {
 public:
  static absl::StatusOr<std::unique_ptr<Target>> Make(const std::string& given);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const std::string& path() const { return path_; }
  // For files that are not whole yet; on the same file system, which may be mounted right there.
  std::string Incomplete() const { return path_ + "/incomplete"; }
  // Makes the files of a folder in Incomplete() the target's, durably.
  absl::Status Finish(const std::string& folder, const std::function<bool()>& stop);

 private:
  // `mode`: of a folder that was there; none: it was made.
  Target(std::string path, std::optional<mode_t> mode) : path_(std::move(path)), mode_(mode) {}

  const std::string path_;
  const std::optional<mode_t> mode_;
  std::vector<std::string> moved_;
  bool finished_ = false;
};

absl::StatusOr<std::unique_ptr<Target>> Target::Make(const std::string& given) {
  // The folders that are looked at are those that are used, whatever a link says later.
  std::error_code error;
  const fs::path parent = fs::canonical(ParentOf(given), error);
  if (error) return absl::NotFoundError(absl::StrCat(ParentOf(given), ": ", error.message()));
  const std::string path = (parent / fs::path(given).filename()).string();
  SIDING_RETURN_IF_ERROR(CheckAbove(path));
  if (mkdir(path.c_str(), 0700) == 0) return std::unique_ptr<Target>(new Target(path, std::nullopt));
  if (errno != EEXIST) return ErrnoError(errno, "mkdir " + path);
  const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() && (errno == ENOTDIR || errno == ELOOP))
    return absl::AlreadyExistsError(path + " is not a folder");
  struct stat info = {};
  if (!folder.valid() || fstat(folder.get(), &info) != 0) return ErrnoError(errno, "open " + path);
  if (info.st_uid != geteuid())
    return absl::FailedPreconditionError(
        absl::StrCat(path, " belongs to uid ", info.st_uid,
                     ", who could read the memory that is exported; expected ", geteuid()));
  // Before it is looked at: then nobody else puts anything there.
  if (fchmod(folder.get(), 0700) != 0) return ErrnoError(errno, "chmod " + path);
  const auto names = ListFolder(path);
  if (names.ok() && names->empty()) return std::unique_ptr<Target>(new Target(path, info.st_mode & 07777));
  (void)fchmod(folder.get(), info.st_mode & 07777);
  SIDING_RETURN_IF_ERROR(names.status());
  return absl::AlreadyExistsError(path + " is not empty; expected a folder that is empty or does not exist");
}

Target::~Target() {
  (void)RemoveTree(RealDisk(), Incomplete());
  if (finished_) return;
  for (const std::string& name : moved_) unlink((path_ + "/" + name).c_str());
  (void)(mode_.has_value() ? chmod(path_.c_str(), *mode_) : rmdir(path_.c_str()));
}

absl::Status Target::Finish(const std::string& folder, const std::function<bool()>& stop) {
  SIDING_ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kInventory; });
  for (const std::string& name : names) {
    if (stop()) return absl::CancelledError("called off");
    SIDING_ASSIGN_OR_RETURN(const UniqueFd file, OpenRegular(folder + "/" + name));
    // Some file systems say only here that they are full.
    if (RealDisk().SyncFile(file.get()) != 0) return ErrnoError(errno, "fdatasync " + folder + "/" + name);
  }
  for (const std::string& name : names) {
    const std::string to = path_ + "/" + name;
    // After a power cut it must not be there without the others.
    if (name == kInventory) SIDING_RETURN_IF_ERROR(SyncFolder(RealDisk(), path_));
    if (rename((folder + "/" + name).c_str(), to.c_str()) != 0) return ErrnoError(errno, "rename " + to);
    moved_.push_back(name);
  }
  SIDING_RETURN_IF_ERROR(RemoveTree(RealDisk(), Incomplete()));
  SIDING_RETURN_IF_ERROR(SyncFolder(RealDisk(), path_));
  // A folder that may not be read, and in which an administrator has made this one, is as durable as it was.
  const absl::Status synced = SyncFolder(RealDisk(), ParentOf(path_));
  finished_ = synced.ok() || (mode_.has_value() && absl::IsPermissionDenied(synced));
  return finished_ ? absl::OkStatus() : synced;
}

// There it would look like a part of the tier.
absl::Status CheckOutside(const std::string& path, const std::string& tier) {
  struct stat outer = {}, inner = {};
  if (stat(tier.c_str(), &outer) != 0) return ErrnoError(errno, "stat " + tier);
  for (const std::string& folder : FoldersAbove(path)) {
    if (stat(folder.c_str(), &inner) == 0 && inner.st_dev == outer.st_dev && inner.st_ino == outer.st_ino)
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is in the tier ", tier, "; expected a folder elsewhere"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const KeyRing>> LoadKeys(const std::string& file) {
  if (file.empty()) return nullptr;
  auto keys = KeyRing::Load(file);
  if (!keys.ok()) return Annotate(keys.status(), "--key-file");
  return std::make_shared<const KeyRing>(*std::move(keys));
}

// Before all of the image is read.
absl::Status CheckKeys(const Manifest& manifest, const KeyRing* keys) {
  if (manifest.encryption_key.empty()) return absl::OkStatus();
  const std::string what =
      absl::StrCat("image ", Describe(manifest.key), " is encrypted with key ", manifest.encryption_key);
  if (keys == nullptr) return absl::FailedPreconditionError(what + "; expected --key-file");
  if (!keys->Find(manifest.encryption_key).ok())
    return absl::FailedPreconditionError(what +
                                         ", which is neither in --key-file nor in a *.image-key beside it");
  return absl::OkStatus();
}

// Else it would fill the disk before it fails, and others could not write to it.
absl::Status CheckRoom(const Bytes needed, const std::string& folder) {
  SIDING_ASSIGN_OR_RETURN(const Bytes free, FreeSpace(Layout{folder}));
  if (free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(folder, " has ", FormatBytes(free), " free, and ", FormatBytes(needed), " are needed"));
}

absl::StatusOr<Manifest> FindImage(const ImageStore& store, const ExportOptions& options) {
  auto manifest = store.Read(options.key);
  if (!absl::IsNotFound(manifest.status())) return manifest;
  SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> all, store.List());
  std::vector<int> ranks;
  for (const ImageKey& key : all)
    if (key.checkpoint == options.key.checkpoint) ranks.push_back(key.rank);
  return absl::NotFoundError(absl::StrCat(
      "there is no image ", Describe(options.key), " in ", options.folder,
      ranks.empty() ? "" : absl::StrCat("; of this checkpoint there is rank ", absl::StrJoin(ranks, ", "))));
}

// `held`: the image's folder from before its manifest was read.
absl::Status Write(const ImageStore& store, const Manifest& manifest, const UniqueFd& held, Target& target,
                   bool progress, const Terminal& terminal) {
  const ImageKey& key = manifest.key;
  const bool encrypted = !manifest.encryption_key.empty();
  SIDING_RETURN_IF_ERROR(CheckRoom(encrypted ? manifest.TotalSize() : UsedSize(manifest), target.path()));
  SIDING_RETURN_IF_ERROR(VerifyShown(store, key, {.digest = manifest.digest}, progress, terminal).status());
  ProgressLine line(terminal.err, progress);
  const std::function<bool()> stop = [&] {
    line.Show([&] {
      return absl::StrCat(Describe(key), ": ", FormatBytes(HeldBytes().Add(target.path())), " of ",
                          FormatBytes(UsedSize(manifest)), " written");
    });
    return terminal.stop();
  };
  const std::string decrypted = target.Incomplete() + "/decrypted", whole = target.Incomplete() + "/whole";
  SIDING_ASSIGN_OR_RETURN(const std::string plain, store.Decrypt(key, decrypted, stop));
  // Who changes what was exported must not change the tier.
  const OtherFiles others = plain == decrypted ? OtherFiles::kMoved : OtherFiles::kCopied;
  SIDING_RETURN_IF_ERROR(UnitePages(manifest, plain, whole, stop, others));
  // Files of another one may be among those that were read.
  if (const auto now = store.Read(key); !absl::IsNotFound(now.status()))
    if (!now.ok() || now->digest != manifest.digest || !IsStillThere(store, key, held))
      return absl::AbortedError("it was replaced while it was read");
  return target.Finish(whole, stop);
}

}  // namespace

absl::StatusOr<ToolExit> Export(const ExportOptions& options, const Terminal& terminal) {
  const std::string to = Stripped(options.to);
  SIDING_ASSIGN_OR_RETURN(const auto keys, LoadKeys(options.key_file));
  SIDING_ASSIGN_OR_RETURN(const auto store, InspectDirectoryStore(options.folder, keys));
  SIDING_RETURN_IF_ERROR(CheckKey(options.key));
  SIDING_ASSIGN_OR_RETURN(const UniqueFd held, store->Hold(options.key));
  const auto found = FindImage(*store, options);
  if (absl::IsDataLoss(found.status())) {
    Complain(terminal, std::string(found.status().message()));
    return kNotGood;
  }
  SIDING_RETURN_IF_ERROR(found.status());
  const Manifest& manifest = *found;
  SIDING_RETURN_IF_ERROR(CheckKeys(manifest, keys.get()));
  SIDING_RETURN_IF_ERROR(CheckOutside(to, options.folder));
  SIDING_ASSIGN_OR_RETURN(auto target, Target::Make(to));
  const absl::Status written = Write(*store, manifest, held, *target, options.progress, terminal);
  target.reset();
  if (absl::IsCancelled(written)) return kStopped;
  if (!written.ok()) {
    Complain(terminal, absl::StrCat(Describe(options.key), " was not exported, and nothing is left in ", to,
                                    ": ", std::string(written.message())));
    return kNotGood;
  }
  Say(terminal, absl::StrCat(Describe(options.key), ": ", FormatBytes(HeldBytes().Add(to)), " in ", to));
  return kGood;
}

}  // namespace siding::store
