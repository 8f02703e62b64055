// What a new image shares of its base, of one memory: the base's files become files of its draft, as its
// parents' (store/parents.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/memory/page_layers.h"
#include "store/store.h"

namespace siding {

struct SharingLimits {
  // Asked all the time: true calls it off.
  std::function<bool()> stop = [] { return false; };
  // What has not been compared by then is written whole.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  // What would be scattered over more pieces is written whole: no image is made that could not be united.
  size_t most_runs = kMostPageRuns;

  // kCancelled: it is called off. kFailedPrecondition: there is no time.
  absl::Status MayGoOn() const;
};

// What the parents hold and what is new, against all that there is, in bytes: the rest is of no use to
// anybody.
bool HoldsTooMuch(uint64_t stored, uint64_t all);
// At least a quarter of the pages must be shared, or the links are not worth it.
bool IsTooMuchNew(uint64_t fresh, uint64_t all);

// Not thread-safe. The draft outlives it.
class ParentPages {
 public:
  // `name`: of the memory's pagemap.
  ParentPages(ImageDraft& draft, std::string name) : draft_(&draft), name_(std::move(name)) {}

  // For a memory of `all` bytes. Reads the pagemaps only. kFailedPrecondition: the base's files are not to be
  // shared; kDataLoss: they are damaged. Whatever it returns, GiveUp() may be called.
  absl::Status Link(uint64_t all);
  // After Link(): reads the base's pages, and compares them with their checksums, so that damage to an
  // earlier image does not become damage to this one. As MayGoOn(); kDataLoss: they are damaged.
  absl::Status Verify(const SharingLimits& limits) const;
  // Removes what has been added to the draft.
  absl::Status GiveUp();
  // So does GiveUp() with this file of the draft.
  void Added(std::string name) { added_.push_back(std::move(name)); }

  const PageLayers& layers() const { return layers_; }
  const std::vector<PagePiece>& pieces() const { return pieces_; }  // all that they have, by address
  bool Has(uint64_t address, uint64_t pages) const;                 // all of these
  // Pages that they have.
  absl::Status Read(uint64_t address, uint64_t bytes, char* to) const;
  size_t runs() const { return std::max(layers_.runs(), pieces_.size()); }
  uint64_t stored() const { return stored_; }  // bytes of pages in their files

 private:
  const ImageFileEntry* InBase(int up, const std::string& name) const;
  absl::Status Share(const ImageFileEntry& entry, int up, const std::string& name);
  absl::StatusOr<UniqueFd> SharePagesOf(const Pagemap& pagemap, int up, uint64_t all);
  std::vector<PagePiece>::const_iterator PieceAt(uint64_t address) const;  // or behind it

  ImageDraft* draft_;
  std::string name_;
  uint64_t stored_ = 0;
  PageLayers layers_;
  std::vector<PagePiece> pieces_;
  std::vector<std::string> added_;
  std::vector<ImageFileEntry> files_;  // of pages, as they are in the draft
};

}  // namespace siding
