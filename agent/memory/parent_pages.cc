#include "agent/memory/parent_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"
#include "store/parents.h"

namespace siding {
namespace {

absl::Status StaysWhole(const std::string& why) { return absl::FailedPreconditionError(why); }

}  // namespace

bool HoldsTooMuch(uint64_t stored, uint64_t all) { return stored * 2 > all * 3; }
bool IsTooMuchNew(uint64_t fresh, uint64_t all) { return fresh * 4 > all * 3; }

absl::Status SharingLimits::MayGoOn() const {
  if (stop()) return absl::CancelledError("called off");
  return std::chrono::steady_clock::now() < until ? absl::OkStatus()
                                                  : StaysWhole("there is no time to compare it");
}

absl::Status ParentPages::Link(uint64_t all) {
  for (int up = 0; const ImageFileEntry* const entry = InBase(up, name_); ++up) {
    SIDING_RETURN_IF_ERROR(Share(*entry, up, name_));
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(draft_->path() + "/" + added_.back()));
    if (store::ChecksumOf(text) != entry->checksum) return absl::DataLossError(entry->name + " is damaged");
    SIDING_ASSIGN_OR_RETURN(Pagemap pagemap, ParsePagemap(text));
    SIDING_ASSIGN_OR_RETURN(UniqueFd pages, SharePagesOf(pagemap, up, all));
    SIDING_RETURN_IF_ERROR(layers_.Add(std::move(pagemap), std::move(pages)));
  }
  if (layers_.empty()) return StaysWhole("it is not in the base");
  SIDING_ASSIGN_OR_RETURN(pieces_, layers_.Resolve());
  return absl::OkStatus();
}

absl::Status ParentPages::Verify(const SharingLimits& limits) const {
  for (const ImageFileEntry& file : files_) {
    const std::string path = draft_->path() + "/" + file.name;
    const UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!pages.valid()) return ErrnoError(errno, path);
    store::StreamHash hash;
    absl::Status going;
    const absl::Status read = store::HashRange(pages.get(), 0, file.size.value, hash,
                                               [&](int64_t) { return (going = limits.MayGoOn()).ok(); });
    SIDING_RETURN_IF_ERROR(going);
    SIDING_RETURN_IF_ERROR(read);
    if (hash.Checksum() != file.checksum) return absl::DataLossError(file.name + " is damaged");
  }
  return absl::OkStatus();
}

absl::Status ParentPages::GiveUp() {
  // Closed first: over a network a file that is open gets another name instead of being removed, and would be
  // taken for one of the draft's.
  layers_ = {};
  pieces_.clear();
  files_.clear();
  for (const std::string& name : added_) {
    const std::string path = draft_->path() + "/" + name;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
  }
  added_.clear();
  return absl::OkStatus();
}

std::vector<PagePiece>::const_iterator ParentPages::PieceAt(uint64_t address) const {
  return std::partition_point(pieces_.begin(), pieces_.end(),
                              [&](const PagePiece& piece) { return piece.end <= address; });
}

bool ParentPages::Has(uint64_t address, uint64_t pages) const {
  const uint64_t end = address + pages * PageSize();
  auto piece = PieceAt(address);
  for (; address < end && piece != pieces_.end() && piece->address <= address; ++piece) address = piece->end;
  return address >= end;
}

absl::Status ParentPages::Read(uint64_t address, uint64_t bytes, char* to) const {
  for (auto piece = PieceAt(address); bytes > 0; ++piece) {
    const uint64_t some = std::min(bytes, piece->end - address);
    SIDING_RETURN_IF_ERROR(layers_.Read(*piece, address, some, to));
    address += some;
    bytes -= some;
    to += some;
  }
  return absl::OkStatus();
}

const ImageFileEntry* ParentPages::InBase(int up, const std::string& name) const {
  return draft_->base()->Find(store::NameOf({up, name}));
}

// The same file, one step further up.
absl::Status ParentPages::Share(const ImageFileEntry& entry, int up, const std::string& name) {
  std::string to = store::NameOf({up + 1, name});
  SIDING_RETURN_IF_ERROR(draft_->Share(entry, to));
  added_.push_back(std::move(to));
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> ParentPages::SharePagesOf(const Pagemap& pagemap, int up, uint64_t all) {
  const std::string name = absl::StrCat("pages-", pagemap.pages_id, ".img");
  const ImageFileEntry* const entry = InBase(up, name);
  if (entry == nullptr) return absl::DataLossError(store::NameOf({up, name}) + " is not in the base");
  stored_ += static_cast<uint64_t>(entry->size.value);
  if (HoldsTooMuch(stored_, all)) return StaysWhole("its parents hold too much that has changed since");
  SIDING_RETURN_IF_ERROR(Share(*entry, up, name));
  const std::string path = draft_->path() + "/" + added_.back();
  UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!pages.valid()) return ErrnoError(errno, path);
  files_.push_back({added_.back(), entry->size, entry->checksum, true});
  return pages;
}

}  // namespace siding
