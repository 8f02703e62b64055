#include "agent/checkpoint/share_pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/page_layers.h"
#include "agent/checkpoint/pagemap.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "spdlog/spdlog.h"
#include "store/checksum.h"
#include "store/parents.h"

namespace siding {
namespace {

using store::NameOf;
using store::ParentFile;

constexpr uint64_t kPagesAtOnce = 256;
constexpr char kUnfinished[] = ".new";
// Far from what a manifest takes.
constexpr size_t kMostFiles = 100'000;

// At least a quarter of the pages must be shared, or the links are not worth it.
bool IsTooMuchNew(uint64_t fresh, uint64_t all) { return fresh * 4 > all * 3; }
// What the parents hold and what is new, against all that there is: the rest is of no use.
bool HoldsTooMuch(uint64_t stored, uint64_t all) { return stored * 2 > all * 3; }

absl::Status StaysWhole(const std::string& why) { return absl::FailedPreconditionError(why); }

// The pages of one memory, without those that the base has.
class Remainder {
 public:
  Remainder(uint32_t pages_id, bool has_64_bit_counts, std::string file) : file_(std::move(file)) {
    pagemap_.pages_id = pages_id;
    pagemap_.has_64_bit_counts = has_64_bit_counts;
  }

  absl::Status Open() {
    fd_ = UniqueFd(open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return fd_.valid() ? absl::OkStatus() : ErrnoError(errno, file_);
  }
  // Pages that are added from now on are of a run of their own.
  void BeginRun() { new_run_ = true; }
  void Keep(const PageRun& run) { pagemap_.runs.push_back(run); }
  void AddShared(uint64_t address) { Add(address, kPageInParent); }
  absl::Status AddNew(uint64_t address, const char* page, uint32_t flags) {
    Add(address, flags);
    bytes_ += PageSize();
    buffer_.append(page, PageSize());
    return buffer_.size() < kPagesAtOnce * PageSize() ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    SIDING_RETURN_IF_ERROR(WriteAll(fd_, buffer_, file_));
    buffer_.clear();
    return absl::OkStatus();
  }
  uint64_t bytes() const { return bytes_; }
  size_t runs() const { return pagemap_.runs.size(); }
  Pagemap TakePagemap() { return std::move(pagemap_); }

 private:
  void Add(uint64_t address, uint32_t flags) {
    PageRun* const last = pagemap_.runs.empty() ? nullptr : &pagemap_.runs.back();
    if (!new_run_ && last != nullptr && last->flags == flags && last->end() == address) {
      ++last->pages;
      return;
    }
    pagemap_.runs.push_back({address, 1, flags});
    new_run_ = false;
  }

  const std::string file_;
  UniqueFd fd_;
  Pagemap pagemap_;
  std::string buffer_;
  uint64_t bytes_ = 0;
  bool new_run_ = true;
};

// The memory of one process of a draft, or one that processes share (its addresses begin at 0). Nothing of
// the draft changes before Replace() but that files are added, which GiveUp() removes.
class MemoryPages {
 public:
  MemoryPages(ImageDraft& draft, std::string name, const SharingLimits& limits)
      : draft_(draft), base_(*draft.base()), name_(std::move(name)), limits_(limits) {}

  absl::Status Prepare() {
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(name_)));
    SIDING_ASSIGN_OR_RETURN(own_, ParsePagemap(text));
    pages_ = absl::StrCat("pages-", own_.pages_id, ".img");
    all_ = own_.Present() * PageSize();
    if (Bytes{static_cast<int64_t>(all_)} < kLeastToShare) return StaysWhole("it is small");
    SIDING_RETURN_IF_ERROR(LinkParents());
    SIDING_ASSIGN_OR_RETURN(pieces_, layers_.Resolve());
    SIDING_RETURN_IF_ERROR(Compare());
    return Write(PathOf(name_) + kUnfinished);
  }

  absl::Status Replace() const {
    for (const std::string& name : {pages_, name_}) {
      const std::string file = PathOf(name);
      if (rename((file + kUnfinished).c_str(), file.c_str()) != 0) return ErrnoError(errno, "rename " + file);
    }
    return absl::OkStatus();
  }

  absl::Status GiveUp() const {
    for (const std::string& name : added_)
      if (unlink(PathOf(name).c_str()) != 0 && errno != ENOENT)
        return ErrnoError(errno, "remove " + PathOf(name));
    return absl::OkStatus();
  }

  // Bytes of the parents' pages that are not shared.
  uint64_t unused() const { return stored_ - (all_ - new_); }

 private:
  std::string PathOf(const std::string& name) const { return draft_.path() + "/" + name; }
  const ImageFileEntry* InBase(const ParentFile& file) const { return base_.Find(NameOf(file)); }
  absl::Status MayGoOn() const {
    if (limits_.stop()) return absl::CancelledError("called off");
    return std::chrono::steady_clock::now() < limits_.until ? absl::OkStatus()
                                                            : StaysWhole("there is no time to compare it");
  }

  // The same file, one step further up.
  absl::Status Link(const ImageFileEntry& entry, const ParentFile& file) {
    const std::string name = NameOf({file.up + 1, file.name});
    SIDING_RETURN_IF_ERROR(draft_.Share(entry, name));
    added_.push_back(name);
    return absl::OkStatus();
  }

  absl::Status LinkParents() {
    for (int up = 0; const ImageFileEntry* const entry = InBase({up, name_}); ++up) {
      SIDING_RETURN_IF_ERROR(Link(*entry, {up, name_}));
      SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(added_.back())));
      if (store::ChecksumOf(text) != entry->checksum) return absl::DataLossError(entry->name + " is damaged");
      SIDING_ASSIGN_OR_RETURN(Pagemap pagemap, ParsePagemap(text));
      SIDING_ASSIGN_OR_RETURN(UniqueFd pages,
                              LinkPages({up, absl::StrCat("pages-", pagemap.pages_id, ".img")}));
      SIDING_RETURN_IF_ERROR(layers_.Add(std::move(pagemap), std::move(pages)));
    }
    return layers_.empty() ? StaysWhole("it is not in the base") : absl::OkStatus();
  }

  absl::StatusOr<UniqueFd> LinkPages(const ParentFile& file) {
    const ImageFileEntry* const entry = InBase(file);
    if (entry == nullptr) return absl::DataLossError(NameOf(file) + " is not in the base");
    stored_ += static_cast<uint64_t>(entry->size.value);
    if (HoldsTooMuch(stored_, all_)) return StaysWhole("its parents hold too much that has changed since");
    SIDING_RETURN_IF_ERROR(Link(*entry, file));
    const std::string path = PathOf(added_.back());
    UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!pages.valid()) return ErrnoError(errno, path);
    store::StreamHash hash;
    absl::Status going;
    const absl::Status read = store::HashRange(pages.get(), 0, entry->size.value, hash,
                                               [&](int64_t) { return (going = MayGoOn()).ok(); });
    SIDING_RETURN_IF_ERROR(going);
    SIDING_RETURN_IF_ERROR(read);
    if (hash.Checksum() != entry->checksum) return absl::DataLossError(entry->name + " is damaged");
    return pages;
  }

  absl::Status Compare() {
    const std::string path = PathOf(pages_);
    const UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!pages.valid() || fstat(pages.get(), &info) != 0) return ErrnoError(errno, path);
    if (static_cast<uint64_t>(info.st_size) != all_)
      return absl::DataLossError(path + " has another size than its pagemap");
    added_.push_back(pages_ + kUnfinished);
    Remainder rest(own_.pages_id, own_.has_64_bit_counts, path + kUnfinished);
    SIDING_RETURN_IF_ERROR(rest.Open());
    uint64_t offset = 0;
    auto piece = pieces_.cbegin();
    for (const PageRun& run : own_.runs) {
      if (run.in_parent()) return StaysWhole("it has a parent already");
      if (!run.present()) {
        rest.Keep(run);
        continue;
      }
      rest.BeginRun();
      for (uint64_t done = 0; done < run.pages; done += kPagesAtOnce) {
        SIDING_RETURN_IF_ERROR(MayGoOn());
        const uint64_t count = std::min(kPagesAtOnce, run.pages - done);
        SIDING_RETURN_IF_ERROR(ReadPages(pages.get(), offset, count * PageSize(), own_bytes_.data()));
        offset += count * PageSize();
        const PageRun part{run.address + done * PageSize(), count, run.flags};
        SIDING_RETURN_IF_ERROR(ComparePart(part, piece, rest));
        // As soon as that is known: what is written here is written once more if it stays whole.
        if (IsTooMuchNew(rest.bytes(), all_)) return StaysWhole("most of its pages have changed");
        if (HoldsTooMuch(stored_ + rest.bytes(), all_))
          return StaysWhole("its parents hold too much that has changed since");
        if (rest.runs() + std::max(layers_.runs(), pieces_.size()) > limits_.most_runs)
          return StaysWhole("what has changed is scattered");
      }
    }
    SIDING_RETURN_IF_ERROR(rest.Flush());
    new_ = rest.bytes();
    rest_ = rest.TakePagemap();
    return absl::OkStatus();
  }

  // `piece`: the first that ends behind the beginning of `part`, or one before.
  absl::Status ComparePart(const PageRun& part, std::vector<PagePiece>::const_iterator& piece,
                           Remainder& rest) {
    const uint64_t size = PageSize();
    const auto own = [&](uint64_t address) { return own_bytes_.data() + (address - part.address); };
    for (uint64_t at = part.address; at < part.end();) {
      while (piece != pieces_.end() && piece->end <= at) ++piece;
      const bool known = piece != pieces_.end() && piece->address <= at;
      uint64_t until = part.end();
      if (piece != pieces_.end()) until = std::min(until, known ? piece->end : piece->address);
      if (known) SIDING_RETURN_IF_ERROR(layers_.Read(*piece, at, until - at, base_bytes_.data()));
      for (const uint64_t begin = at; at < until; at += size) {
        if (known && memcmp(own(at), base_bytes_.data() + (at - begin), size) == 0)
          rest.AddShared(at);
        else
          SIDING_RETURN_IF_ERROR(rest.AddNew(at, own(at), part.flags));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Write(const std::string& file) {
    added_.push_back(name_ + kUnfinished);
    const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoError(errno, file);
    return WriteAll(fd, PagemapText(rest_), file);
  }

  ImageDraft& draft_;
  const Manifest& base_;
  const std::string name_;  // of its pagemap
  const SharingLimits& limits_;
  std::string pages_;  // the name of its pages
  Pagemap own_, rest_;
  // Bytes: of all its pages, of those that its parents hold, of those that are new.
  uint64_t all_ = 0, stored_ = 0, new_ = 0;
  PageLayers layers_;
  std::vector<PagePiece> pieces_;
  std::vector<std::string> added_;
  std::string own_bytes_ = std::string(kPagesAtOnce * PageSize(), '\0'), base_bytes_ = own_bytes_;
};

}  // namespace

absl::StatusOr<Bytes> SharePages(ImageDraft& draft, const SharingLimits& limits) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(draft.path()));
  Bytes unused;
  size_t files = names.size();
  for (const std::string& name : names) {
    if (!IsPagemap(name)) continue;
    files += 2 * store::kMostParents;
    if (files > kMostFiles) break;
    MemoryPages memory(draft, name, limits);
    const absl::Status prepared = memory.Prepare();
    if (absl::IsCancelled(prepared)) return prepared;
    if (prepared.ok()) {
      SIDING_RETURN_IF_ERROR(memory.Replace());
      SIDING_RETURN_IF_ERROR(
          FaultAt<"agent.dump.sharing: pages of the new image are in files of earlier ones">());
      unused += Bytes{static_cast<int64_t>(memory.unused())};
      continue;
    }
    if (!absl::IsFailedPrecondition(prepared))
      spdlog::warn("{}/{} is written whole: {}", draft.path(), name, std::string(prepared.message()));
    SIDING_RETURN_IF_ERROR(memory.GiveUp());
  }
  return unused;
}

}  // namespace siding
