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
#include "spdlog/spdlog.h"
#include "store/parents.h"

namespace siding {
namespace {

// Far from what a manifest takes.
constexpr size_t kMostFiles = 100'000;

absl::Status StaysWhole(const std::string& why) { return absl::FailedPreconditionError(why); }

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
    SIDING_RETURN_IF_ERROR(parents_.Link(all_));
    SIDING_RETURN_IF_ERROR(parents_.Verify(limits_));
    rest_.emplace(folder_, name_, own_);
    for (const std::string& name : rest_->unfinished()) parents_.Added(name);
    SIDING_RETURN_IF_ERROR(Compare(*rest_));
    return rest_->Finish();
  }

  absl::Status Replace() const { return rest_->Replace(); }
  absl::Status GiveUp() { return parents_.GiveUp(); }
  // Bytes of the parents' pages that are not shared.
  uint64_t unused() const { return parents_.stored() - (all_ - rest_->bytes()); }

 private:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  absl::Status Compare(NewPages& rest) {
    const std::string path = PathOf(rest.pages_name());
    const UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info = {};
    if (!pages.valid() || fstat(pages.get(), &info) != 0) return ErrnoError(errno, path);
    if (static_cast<uint64_t>(info.st_size) != all_)
      return absl::DataLossError(path + " has another size than its pagemap");
    SIDING_RETURN_IF_ERROR(rest.Open());
    own_bytes_.resize(kPagesAtOnce * PageSize());
    base_bytes_.resize(kPagesAtOnce * PageSize());
    uint64_t offset = 0;
    auto piece = parents_.pieces().cbegin();
    for (const PageRun& run : own_.runs) {
      if (!run.present()) {
        rest.Keep(run);
        continue;
      }
      rest.BeginRun();
      for (uint64_t done = 0; done < run.pages; done += kPagesAtOnce) {
        SIDING_RETURN_IF_ERROR(limits_.MayGoOn());
        const uint64_t count = std::min(kPagesAtOnce, run.pages - done);
        SIDING_RETURN_IF_ERROR(ReadPages(pages.get(), offset, count * PageSize(), own_bytes_.data()));
        offset += count * PageSize();
        const PageRun part{run.address + done * PageSize(), count, run.flags};
        SIDING_RETURN_IF_ERROR(ComparePart(part, piece, rest));
        // As soon as that is known: what is written here is written once more if it stays whole.
        if (IsTooMuchNew(rest.bytes(), all_)) return StaysWhole("most of its pages have changed");
        if (HoldsTooMuch(parents_.stored() + rest.bytes(), all_))
          return StaysWhole("its parents hold too much that has changed since");
        if (rest.pagemap().runs.size() + parents_.runs() > limits_.most_runs)
          return StaysWhole("what has changed is scattered");
      }
    }
    return absl::OkStatus();
  }

  // `piece`: the first that ends behind the beginning of `part`, or one before.
  absl::Status ComparePart(const PageRun& part, std::vector<PagePiece>::const_iterator& piece,
                           NewPages& rest) {
    const uint64_t size = PageSize();
    const auto end = parents_.pieces().cend();
    const auto own = [&](uint64_t address) { return own_bytes_.data() + (address - part.address); };
    for (uint64_t at = part.address; at < part.end();) {
      while (piece != end && piece->end <= at) ++piece;
      const bool known = piece != end && piece->address <= at;
      uint64_t until = part.end();
      if (piece != end) until = std::min(until, known ? piece->end : piece->address);
      if (known) SIDING_RETURN_IF_ERROR(parents_.layers().Read(*piece, at, until - at, base_bytes_.data()));
      for (const uint64_t begin = at; at < until; at += size) {
        if (known && memcmp(own(at), base_bytes_.data() + (at - begin), size) == 0)
          rest.AddShared(at, 1);
        else
          SIDING_RETURN_IF_ERROR(rest.AddNew(at, 1, part.flags, own(at)));
      }
    }
    return absl::OkStatus();
  }

  const std::string folder_, name_;  // the latter of its pagemap
  const SharingLimits& limits_;
  ParentPages parents_;
  Pagemap own_;
  uint64_t all_ = 0;  // bytes of its pages
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
