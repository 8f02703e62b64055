#include "agent/memory/share_pages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/memory/new_pages.h"
#include "agent/memory/page_layers.h"
#include "agent/memory/pagemap.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "model/compaction.h"
#include "spdlog/spdlog.h"
#include "store/parents.h"

namespace siding {
namespace {

// Far from what a manifest takes.
constexpr size_t kMostFiles = 100'000;

// The memory of one process of a draft, or one that processes share (its addresses begin at 0). Nothing of
// the draft changes before Replace() but that files are added, which GiveUp() removes.
class MemoryPages {
 public:
  MemoryPages(ImageDraft& draft, std::string name, const SharingLimits& limits)
      : folder_(draft.path()), name_(std::move(name)), limits_(limits), parents_(draft, name_) {}

  absl::Status Prepare() {
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf(name_)));
    SIDING_ASSIGN_OR_RETURN(own_, ParsePagemap(text));
    all_ = own_.Present() * PageSize();
    if (Bytes{static_cast<int64_t>(all_)} < kLeastToShare) return StaysWhole("it is small");
    SIDING_RETURN_IF_ERROR(parents_.Link());
    SIDING_RETURN_IF_ERROR(parents_.Verify(limits_, /*all=*/true));
    rest_.emplace(folder_, name_, own_);
    for (const std::string& name : rest_->unfinished()) parents_.Added(name);
    SIDING_ASSIGN_OR_RETURN(const UniqueFd pages, OpenPages());
    SIDING_RETURN_IF_ERROR(Compare(pages.get()));
    parents_.Choose(same_, fresh_);
    if (!parents_.has_any()) return StaysWhole("little that stays would be shared");
    return Write(pages.get());
  }

  absl::Status Replace() {
    SIDING_RETURN_IF_ERROR(rest_->Replace());
    return parents_.Settle();
  }
  absl::Status GiveUp() { return parents_.GiveUp(); }
  // Bytes of the parents' pages that are not shared.
  uint64_t unused() const { return parents_.unused(); }

 private:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  absl::StatusOr<UniqueFd> OpenPages() const {
    const std::string path = PathOf(rest_->pages_name());
    UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!pages.valid() || fstat(pages.get(), &info) != 0) return ErrnoError(errno, path);
    if (static_cast<uint64_t>(info.st_size) != all_)
      return absl::DataLossError(path + " has another size than its pagemap");
    return pages;
  }

  // Finds the pages that are the same.
  absl::Status Compare(int pages) {
    own_bytes_.resize(kPagesAtOnce * PageSize());
    base_bytes_.resize(kPagesAtOnce * PageSize());
    uint64_t offset = 0;
    auto piece = parents_.pieces().cbegin();
    for (const PageRun& run : own_.runs) {
      for (uint64_t done = 0; run.present() && done < run.pages; done += kPagesAtOnce) {
        SIDING_RETURN_IF_ERROR(limits_.MayGoOn());
        const uint64_t count = std::min(kPagesAtOnce, run.pages - done);
        SIDING_RETURN_IF_ERROR(ReadPages(pages, offset, count * PageSize(), own_bytes_.data()));
        offset += count * PageSize();
        SIDING_RETURN_IF_ERROR(ComparePart({run.address + done * PageSize(), count, run.flags}, piece));
        if (IsTooMuchNew(static_cast<double>(fresh_), static_cast<double>(all_)))
          return StaysWhole("most of its pages have changed");
      }
    }
    return absl::OkStatus();
  }

  // `piece`: the first that ends behind the beginning of `part`, or one before.
  absl::Status ComparePart(const PageRun& part, std::vector<PagePiece>::const_iterator& piece) {
    const uint64_t size = PageSize();
    const auto end = parents_.pieces().cend();
    for (uint64_t at = part.address; at < part.end();) {
      while (piece != end && piece->end <= at) ++piece;
      const bool known = piece != end && piece->address <= at;
      uint64_t until = part.end();
      if (piece != end) until = std::min(until, known ? piece->end : piece->address);
      if (known) SIDING_RETURN_IF_ERROR(parents_.pages().Read(*piece, at, until - at, base_bytes_.data()));
      for (const uint64_t begin = at; at < until; at += size) {
        if (known &&
            memcmp(own_bytes_.data() + (at - part.address), base_bytes_.data() + (at - begin), size) == 0)
          Append({at, 1, kPageInParent}, same_);
        else
          fresh_ += size;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Write(int pages) {
    SIDING_RETURN_IF_ERROR(rest_->Open());
    uint64_t offset = 0;
    auto same = same_.cbegin();
    for (const PageRun& run : own_.runs) {
      if (!run.present()) {
        rest_->Keep(run);
        continue;
      }
      rest_->BeginRun();
      const auto add_new = [&](uint64_t address, uint64_t count) {
        return rest_->AddFrom(
            {address, count, run.flags}, [this] { return limits_.MayGoOn(); },
            [&](uint64_t from, uint64_t bytes, char* to) {
              return ReadPages(pages, offset + (address - run.address) + from, bytes, to);
            });
      };
      for (uint64_t at = run.address; at < run.end();) {
        while (same != same_.cend() && same->end() <= at) ++same;
        const bool is_same = same != same_.cend() && same->address <= at;
        uint64_t until = run.end();
        if (same != same_.cend()) until = std::min(until, is_same ? same->end() : same->address);
        const uint64_t count = (until - at) / PageSize();
        SIDING_RETURN_IF_ERROR(
            !is_same ? add_new(at, count)
                     : parents_.ForEach(at, count, [&](uint64_t address, uint64_t some, bool stays) {
                         if (!stays) return add_new(address, some);
                         rest_->AddShared(address, some);
                         return absl::OkStatus();
                       }));
        at = until;
      }
      offset += run.pages * PageSize();
      if (rest_->pagemap().runs.size() + parents_.runs() > limits_.most_runs)
        return StaysWhole("what has changed is scattered");
    }
    return rest_->Finish();
  }

  const std::string folder_, name_;  // the latter of its pagemap
  const SharingLimits& limits_;
  ParentPages parents_;
  Pagemap own_;
  uint64_t all_ = 0, fresh_ = 0;  // bytes of its pages, and of those that are not in the base
  std::vector<PageRun> same_;     // as in the base
  std::optional<NewPages> rest_;
  std::string own_bytes_, base_bytes_;
};

}  // namespace

absl::StatusOr<Bytes> SharePages(ImageDraft& draft, const SharingLimits& limits,
                                 const std::set<std::string>& without) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(draft.path()));
  Bytes unused;
  size_t files = names.size();
  for (const std::string& name : names) {
    if (!IsPagemap(name) || without.count(name) > 0) continue;
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
