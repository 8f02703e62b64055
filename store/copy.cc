#include "store/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"
#include "store/staging.h"

namespace siding::store {
namespace {

constexpr int64_t kCopied = 1 << 20;
// So much is written and not yet on its way to the disk, at most: else one large image fills the memory that
// the kernel has for such pages, and all who write wait.
constexpr int64_t kMostDirty = 64 << 20;

// One image on its way.
class ImageCopy {
 public:
  ImageCopy(const Layout& layout, const CopySource& source, const CopyOptions& options,
            std::unique_ptr<StagingFolder> folder)
      : layout_(layout), source_(source), options_(options), folder_(std::move(folder)) {}

  absl::StatusOr<Bytes> Make(const std::function<absl::Status(StagingFolder&)>& commit) {
    // First what is linked: then it is known how much is to be written.
    std::vector<const ImageFileEntry*> to_copy;
    for (const ImageFileEntry& file : source_.manifest.files) {
      SIDING_ASSIGN_OR_RETURN(const bool linked, LinkToAny(file));
      if (!linked) to_copy.push_back(&file);
    }
    for (const ImageFileEntry* file : to_copy) all_ += file->size;
    for (const ImageFileEntry* file : to_copy) SIDING_RETURN_IF_ERROR(Copy(*file));
    SIDING_RETURN_IF_ERROR(
        IoError(layout_, WriteNewFile(*layout_.disk, PathOf(kManifestName), source_.manifest_text)));
    SIDING_RETURN_IF_ERROR(IoError(layout_, SyncFolder(*layout_.disk, folder_->path())));
    SIDING_RETURN_IF_ERROR(FaultAt<"store.copied: an image of another tier is in a draft">());
    SIDING_RETURN_IF_ERROR(commit(*folder_));
    return written_;
  }

 private:
  std::string PathOf(const std::string& name) const { return absl::StrCat(folder_->path(), "/", name); }

  bool GoesOn() const { return !options_.progress || options_.progress(written_, all_); }

  // False: no base has such a file, or it cannot be shared, so it is to be copied.
  absl::StatusOr<bool> LinkToAny(const ImageFileEntry& file) {
    // An encrypted file is bound to its image.
    if (!source_.manifest.encryption_key.empty()) return false;
    for (const Manifest* const base : options_.bases) {
      SIDING_ASSIGN_OR_RETURN(const bool linked, LinkTo(*base, file));
      if (linked) return true;
    }
    return false;
  }

  absl::StatusOr<bool> LinkTo(const Manifest& base, const ImageFileEntry& file) {
    const auto& files = base.files;
    const auto same = std::find_if(files.begin(), files.end(), [&](const ImageFileEntry& other) {
      return other.checksum == file.checksum && other.size == file.size;
    });
    if (same == files.end() || file.size == Bytes{0}) return false;
    const std::string from = absl::StrCat(layout_.ImageFolder(base.key), "/", same->name);
    const std::string to = PathOf(file.name);
    if (layout_.disk->Link(from, to) != 0) return false;
    SIDING_ASSIGN_OR_RETURN(const bool good, IsWhatItWas(to, file));
    if (good) return true;
    if (layout_.disk->RemoveFile(to) != 0) return IoError(layout_, errno, "remove " + to);
    return false;
  }

  // Of a file that was linked.
  absl::StatusOr<bool> IsWhatItWas(const std::string& path, const ImageFileEntry& file) {
    const auto fd = OpenRegular(path);
    struct stat info = {};
    if (!fd.ok() || fstat(fd->get(), &info) != 0 || info.st_size != file.size.value) return false;
    if (!options_.reads_bases && !layout_.disk->IsNear(layout_.root)) return true;
    // Several bases may have the very same file.
    const auto inode = std::make_pair(info.st_dev, info.st_ino);
    if (bad_.count(inode) > 0) return false;
    StreamHash hash;
    const absl::Status read =
        HashRange(fd->get(), 0, file.size.value, hash, [&](int64_t) { return GoesOn(); });
    if (absl::IsCancelled(read)) return read;
    const bool good = read.ok() && hash.Checksum() == file.checksum;
    if (!good) bad_.insert(inode);
    return good;
  }

  absl::Status Copy(const ImageFileEntry& file) {
    const std::string from = absl::StrCat(source_.folder, "/", file.name), to = PathOf(file.name);
    SIDING_ASSIGN_OR_RETURN(const UniqueFd in, OpenSource(from));
    const UniqueFd out(layout_.disk->Create(to));
    if (!out.valid()) return IoError(layout_, errno, "create " + to);
    (void)posix_fadvise(in.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    StreamHash hash;
    std::vector<char> piece(std::min(kCopied, file.size.value + 1));
    int64_t at = 0;
    for (;;) {
      SIDING_RETURN_IF_ERROR(
          FaultAt<"store.copying: a piece of an image of another tier is about to be copied">());
      const ssize_t got = read(in.get(), piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoError(errno, "read " + from);
      if (got == 0) break;
      hash.Update(piece.data(), static_cast<size_t>(got));
      SIDING_RETURN_IF_ERROR(
          IoError(layout_, WriteAll(*layout_.disk, out.get(), {piece.data(), static_cast<size_t>(got)}, to)));
      SendToDisk(out.get(), at, got);
      at += got;
      // Of a file that grows all the same its checksum tells.
      if (at > file.size.value) break;
      written_ += Bytes{got};
      if (!GoesOn()) return absl::CancelledError("the copy was called off");
    }
    if (at != file.size.value || hash.Checksum() != file.checksum)
      return absl::DataLossError(absl::StrCat(from, " is damaged: ", at, " bytes with checksum ",
                                              hash.Checksum(), ", expected ", file.size.value, " with ",
                                              file.checksum));
    if (layout_.disk->SyncFile(out.get()) != 0) return IoError(layout_, errno, "fdatasync " + to);
    return absl::OkStatus();
  }

  static absl::StatusOr<UniqueFd> OpenSource(const std::string& path) {
    auto file = OpenRegular(path);
    if (absl::IsNotFound(file.status())) return absl::DataLossError(path + " is missing");
    return file;
  }

  // When so much more has been written, it waits for what was written before that.
  static void SendToDisk(int fd, int64_t at, int64_t size) {
    const int64_t window = (at + size) / kMostDirty;
    if (window == at / kMostDirty) return;
    (void)sync_file_range(fd, (window - 1) * kMostDirty, kMostDirty, SYNC_FILE_RANGE_WRITE);
    if (window < 2) return;
    (void)sync_file_range(fd, (window - 2) * kMostDirty, kMostDirty,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }

  const Layout& layout_;
  const CopySource& source_;
  const CopyOptions& options_;
  const std::unique_ptr<StagingFolder> folder_;
  Bytes written_, all_;
  std::set<std::pair<dev_t, ino_t>> bad_;  // files of bases that are not what they were
};

}  // namespace

absl::StatusOr<Bytes> CopyImage(const Layout& layout, const CopySource& source, const CopyOptions& options,
                                const std::function<absl::Status(StagingFolder&)>& commit) {
  SIDING_ASSIGN_OR_RETURN(auto folder, StagingFolder::Make(layout, source.manifest.key));
  SIDING_RETURN_IF_ERROR(FaultAt<"store.draft: a draft is made">());
  return ImageCopy(layout, source, options, std::move(folder)).Make(commit);
}

}  // namespace siding::store
