#include "agent/memory/parent_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "model/compaction.h"
#include "store/checksum.h"
#include "store/parents.h"

namespace siding {

absl::Status StaysWhole(const std::string& why) { return absl::FailedPreconditionError(why); }

namespace {

absl::Status NotInBase(uint64_t address) {
  return absl::InternalError(
      absl::StrCat("a page at ", absl::Hex(address), " is said to be as in the last image, which has none"));
}

}  // namespace

absl::Status SharingLimits::MayGoOn() const {
  if (stop()) return absl::CancelledError("called off");
  return std::chrono::steady_clock::now() < until ? absl::OkStatus()
                                                  : StaysWhole("there is no time to compare it");
}

absl::Status ParentPages::Link() {
  for (int up = 0; const ImageFileEntry* const entry = InBase(up, name_); ++up) {
    if (up > store::kMostParents) return absl::DataLossError(name_ + " has too many parents");
    Layer layer;
    SIDING_ASSIGN_OR_RETURN(layer.pagemap_name, Share(*entry, up, name_));
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(draft_->path() + "/" + layer.pagemap_name));
    if (store::ChecksumOf(text) != entry->checksum) return absl::DataLossError(entry->name + " is damaged");
    SIDING_ASSIGN_OR_RETURN(Pagemap pagemap, ParsePagemap(text));
    layer.plain_pages_name = absl::StrCat("pages-", pagemap.pages_id, ".img");
    const ImageFileEntry* const pages = InBase(up, layer.plain_pages_name);
    if (pages == nullptr)
      return absl::DataLossError(store::NameOf({up, layer.plain_pages_name}) + " is not in the base");
    layer.pages = *pages;
    layer.stored = static_cast<uint64_t>(pages->size.value);
    SIDING_ASSIGN_OR_RETURN(layer.pages_name, Share(*pages, up, layer.plain_pages_name));
    SIDING_ASSIGN_OR_RETURN(UniqueFd file, Open(layer.pages_name));
    layer.runs = pagemap.runs.size();
    SIDING_RETURN_IF_ERROR(pages_.Add(std::move(pagemap), std::move(file)));
    layers_.push_back(std::move(layer));
  }
  if (layers_.empty()) return StaysWhole("it is not in the base");
  SIDING_ASSIGN_OR_RETURN(pieces_, pages_.Resolve());
  return absl::OkStatus();
}

void ParentPages::Choose(const std::vector<PageRun>& shared, uint64_t fresh, bool may_stay) {
  for (const PageRun& run : shared) {
    for (auto piece = PieceAt(run.address); piece != pieces_.end() && piece->address < run.end(); ++piece)
      layers_[piece->layer].used += std::min(piece->end, run.end()) - std::max(piece->address, run.address);
  }
  std::vector<SharedLayer> layers;
  for (const Layer& layer : layers_)
    layers.push_back({static_cast<double>(layer.stored), static_cast<double>(layer.used)});
  for (const size_t i : LayersToWriteAgain(layers, static_cast<double>(fresh), store::kMostParents))
    layers_[i].stays = false;
  // All have the names that they were linked under, if these are not too far away.
  if (may_stay && AreNamesFree()) return;
  may_stay = may_stay && layers_.size() <= store::kMostParents;
  for (Layer& layer : layers_) layer.stays = may_stay;
}

bool ParentPages::has_any() const {
  return std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) { return layer.stays; });
}

size_t ParentPages::runs() const {
  size_t runs = 0;
  for (const Layer& layer : layers_) runs += layer.stays ? layer.runs : 0;
  return runs;
}

// Two memories may have had files of one number, each in another image. What comes nearer must not take the
// name of one that another memory has now, or will have when it is linked.
bool ParentPages::AreNamesFree() const {
  std::set<std::string> ours;
  for (const Layer& layer : layers_) ours.insert(layer.pages_name);
  int up = 0;
  for (const Layer& layer : layers_) {
    if (!layer.stays) continue;
    const std::string name = store::NameOf({++up, layer.plain_pages_name});
    if (ours.count(name) > 0) continue;
    if (InBase(up - 1, layer.plain_pages_name) != nullptr) return false;
    if (access((draft_->path() + "/" + name).c_str(), F_OK) == 0) return false;
  }
  return true;
}

absl::Status ParentPages::ForEach(
    uint64_t address, uint64_t pages,
    const std::function<absl::Status(uint64_t address, uint64_t pages, bool stays)>& found) const {
  const uint64_t end = address + pages * PageSize();
  for (auto piece = PieceAt(address); address < end; ++piece) {
    if (piece == pieces_.end() || piece->address > address) return NotInBase(address);
    const uint64_t until = std::min(end, piece->end);
    SIDING_RETURN_IF_ERROR(found(address, (until - address) / PageSize(), layers_[piece->layer].stays));
    address = until;
  }
  return absl::OkStatus();
}

absl::Status ParentPages::Verify(const SharingLimits& limits, bool all) const {
  for (const Layer& layer : layers_) {
    if (!all && (layer.stays || layer.used == 0)) continue;
    SIDING_ASSIGN_OR_RETURN(const UniqueFd pages, Open(layer.pages_name));
    store::StreamHash hash;
    absl::Status going;
    const absl::Status read = store::HashRange(pages.get(), 0, layer.pages.size.value, hash,
                                               [&](int64_t) { return (going = limits.MayGoOn()).ok(); });
    SIDING_RETURN_IF_ERROR(going);
    SIDING_RETURN_IF_ERROR(read);
    if (hash.Checksum() != layer.pages.checksum) return absl::DataLossError(layer.pages_name + " is damaged");
  }
  return absl::OkStatus();
}

absl::Status ParentPages::Settle() {
  // Closed first: over a network a file that is open gets another name instead of being removed, and would be
  // taken for one of the draft's.
  pages_ = {};
  pieces_.clear();
  int up = 0;
  // Each comes to a name that is free by then: of one that has gone, or that came nearer before.
  for (Layer& layer : layers_) {
    if (!layer.stays) {
      SIDING_RETURN_IF_ERROR(Remove(layer.pagemap_name));
      SIDING_RETURN_IF_ERROR(Remove(layer.pages_name));
      SIDING_RETURN_IF_ERROR(
          FaultAt<"agent.dump.compacting: a file of an earlier image is left out of the new one">());
      continue;
    }
    ++up;
    SIDING_RETURN_IF_ERROR(Rename(layer.pagemap_name, store::NameOf({up, name_})));
    SIDING_RETURN_IF_ERROR(Rename(layer.pages_name, store::NameOf({up, layer.plain_pages_name})));
  }
  return absl::OkStatus();
}

absl::Status ParentPages::GiveUp() {
  pages_ = {};  // as in Settle()
  pieces_.clear();
  layers_.clear();
  while (!added_.empty()) SIDING_RETURN_IF_ERROR(Remove(std::string(added_.back())));
  return absl::OkStatus();
}

uint64_t ParentPages::unused() const {
  uint64_t unused = 0;
  for (const Layer& layer : layers_) unused += layer.stays ? layer.stored - layer.used : 0;
  return unused;
}

std::vector<PagePiece>::const_iterator ParentPages::PieceAt(uint64_t address) const {
  return std::partition_point(pieces_.begin(), pieces_.end(),
                              [&](const PagePiece& piece) { return piece.end <= address; });
}

absl::Status ParentPages::Read(uint64_t address, uint64_t bytes, char* to) const {
  for (auto piece = PieceAt(address); bytes > 0; ++piece) {
    if (piece == pieces_.end() || piece->address > address) return NotInBase(address);
    const uint64_t some = std::min(bytes, piece->end - address);
    SIDING_RETURN_IF_ERROR(pages_.Read(*piece, address, some, to));
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
absl::StatusOr<std::string> ParentPages::Share(const ImageFileEntry& entry, int up, const std::string& name) {
  std::string to = store::NameOf({up + 1, name});
  SIDING_RETURN_IF_ERROR(draft_->Share(entry, to));
  added_.push_back(to);
  return to;
}

absl::StatusOr<UniqueFd> ParentPages::Open(const std::string& name) const {
  const std::string path = draft_->path() + "/" + name;
  UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, path);
  return file;
}

absl::Status ParentPages::Remove(const std::string& name) {
  const std::string path = draft_->path() + "/" + name;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
  std::erase(added_, name);
  return absl::OkStatus();
}

absl::Status ParentPages::Rename(std::string& name, const std::string& to) {
  if (to == name) return absl::OkStatus();
  SIDING_RETURN_IF_ERROR(draft_->RenameShared(name, to));
  std::replace(added_.begin(), added_.end(), std::exchange(name, to), to);
  return absl::OkStatus();
}

}  // namespace siding
