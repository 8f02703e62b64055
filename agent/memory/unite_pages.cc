#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/memory/page_layers.h"
#include "agent/memory/share_pages.h"
#include "common/files.h"
#include "common/status.h"
#include "store/disk.h"
#include "store/parents.h"

namespace siding {
namespace {

using store::NameOf;
using store::ParentFile;
using store::ParentFileOf;

// Several times that of as many runs as may be.
constexpr size_t kLongestPagemap = 256 << 20;

class Uniting {
 public:
  Uniting(const Manifest& manifest, const std::string& image, const std::string& folder,
          const std::function<bool()>& stop, OtherFiles others)
      : manifest_(manifest), image_(image), folder_(folder), stop_(stop), others_(others) {}

  absl::Status Run() {
    for (const ImageFileEntry& file : manifest_.files)
      if (IsPagemap(file.name)) SIDING_RETURN_IF_ERROR(Unite(file.name));
    for (const ImageFileEntry& file : manifest_.files)
      if (ParentFileOf(file.name).up == 0 && !made_.count(file.name)) SIDING_RETURN_IF_ERROR(Take(file.name));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Pagemap> Read(const ParentFile& file) const {
    const std::string path = image_ + "/" + NameOf(file);
    SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, store::OpenRegular(path));
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadAll(fd, path, kLongestPagemap));
    absl::StatusOr<Pagemap> pagemap = ParsePagemap(text);
    if (!pagemap.ok()) return Annotate(pagemap.status(), NameOf(file));
    return pagemap;
  }

  // A memory none of whose pages is in a parent is left as it is.
  absl::Status Unite(const std::string& name) {
    SIDING_ASSIGN_OR_RETURN(Pagemap own, Read({0, name}));
    if (std::none_of(own.runs.begin(), own.runs.end(), [](const PageRun& run) { return run.in_parent(); }))
      return absl::OkStatus();
    PageLayers layers;
    for (int up = 0; manifest_.Find(NameOf({up, name})) != nullptr; ++up) {
      SIDING_ASSIGN_OR_RETURN(Pagemap pagemap, Read({up, name}));
      const std::string path = image_ + "/" + NameOf({up, absl::StrCat("pages-", pagemap.pages_id, ".img")});
      SIDING_ASSIGN_OR_RETURN(UniqueFd pages, store::OpenRegular(path));
      SIDING_RETURN_IF_ERROR(layers.Add(std::move(pagemap), std::move(pages)));
    }
    SIDING_ASSIGN_OR_RETURN(const std::vector<PagePiece> pieces, layers.Resolve());
    const std::string pages = absl::StrCat("pages-", own.pages_id, ".img");
    SIDING_RETURN_IF_ERROR(WritePages(layers, pieces, pages));
    for (PageRun& run : own.runs)
      if (run.in_parent()) run.flags = kPagePresent;
    SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, Create(name));
    made_.insert(name);
    made_.insert(pages);
    return WriteAll(fd, PagemapText(own), folder_ + "/" + name);
  }

  absl::Status WritePages(const PageLayers& layers, const std::vector<PagePiece>& pieces,
                          const std::string& name) const {
    SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, Create(name));
    std::string buffer;
    for (const PagePiece& piece : pieces) {
      for (uint64_t at = piece.address; at < piece.end;) {
        const uint64_t bytes = std::min(kPagesAtOnce * PageSize() - buffer.size(), piece.end - at);
        const size_t before = buffer.size();
        buffer.resize(before + bytes);
        SIDING_RETURN_IF_ERROR(layers.Read(piece, at, bytes, buffer.data() + before));
        at += bytes;
        if (stop_()) return absl::CancelledError("called off");
        if (buffer.size() < kPagesAtOnce * PageSize()) continue;
        SIDING_RETURN_IF_ERROR(WriteAll(fd, buffer, folder_ + "/" + name));
        buffer.clear();
      }
    }
    return WriteAll(fd, buffer, folder_ + "/" + name);
  }

  absl::StatusOr<UniqueFd> Create(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoError(errno, path);
    return fd;
  }

  absl::Status Take(const std::string& name) const {
    if (others_ == OtherFiles::kCopied) return Copy(name);
    const std::string from = image_ + "/" + name, to = folder_ + "/" + name;
    if (others_ == OtherFiles::kMoved)
      return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus()
                                                   : ErrnoError(errno, "rename " + from + " to " + to);
    if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    const bool makes_none = errno == EXDEV || errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK;
    return makes_none ? Copy(name) : ErrnoError(errno, "link " + from + " to " + to);
  }

  absl::Status Copy(const std::string& name) const {
    SIDING_ASSIGN_OR_RETURN(const UniqueFd from, store::OpenRegular(image_ + "/" + name));
    SIDING_ASSIGN_OR_RETURN(const UniqueFd to, Create(name));
    std::string buffer(kPagesAtOnce * PageSize(), '\0');
    for (;;) {
      const ssize_t n = read(from.get(), buffer.data(), buffer.size());
      if (n < 0) return ErrnoError(errno, "read " + image_ + "/" + name);
      if (n == 0) return absl::OkStatus();
      SIDING_RETURN_IF_ERROR(WriteAll(to, buffer.substr(0, static_cast<size_t>(n)), folder_ + "/" + name));
      if (stop_()) return absl::CancelledError("called off");
    }
  }

  const Manifest& manifest_;
  const std::string& image_;
  const std::string& folder_;
  const std::function<bool()>& stop_;
  const OtherFiles others_;
  std::set<std::string> made_;
};

}  // namespace

Bytes UsedSize(const Manifest& manifest) {
  const auto found = manifest.metadata.find(kMetadataUnused);
  int64_t unused = 0;
  const bool said =
      found != manifest.metadata.end() && absl::SimpleAtoi(found->second, &unused) && unused >= 0;
  const Bytes most = manifest.TotalSize() - manifest.NewSize();
  return manifest.TotalSize() - (said ? std::min(Bytes{unused}, most) : Bytes{});
}

absl::Status UnitePages(const Manifest& manifest, const std::string& image, const std::string& folder,
                        const std::function<bool()>& stop, OtherFiles others) {
  SIDING_RETURN_IF_ERROR(store::RemoveTree(store::RealDisk(), folder));
  SIDING_RETURN_IF_ERROR(store::MakeFolders(store::RealDisk(), folder));
  const absl::Status united = Uniting(manifest, image, folder, stop, others).Run();
  if (!united.ok()) store::RemoveTree(store::RealDisk(), folder).IgnoreError();
  return united;
}

}  // namespace siding
