// What a new image shares of its base, of one memory: the base's files become files of its draft, as its
// parents' (store/parents.h).
//
// They are layers: the base's own pages, those of its parent, and so on. Which of them stay is known when it
// is known which pages are shared (model/compaction.h); what is used of the others the image has itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
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

// That of a memory whose pages are not shared, and nothing is wrong with it.
absl::Status StaysWhole(const std::string& why);
// Not thread-safe. The draft outlives it.
class ParentPages {
 public:
  // `name`: of the memory's pagemap.
  ParentPages(ImageDraft& draft, std::string name) : draft_(&draft), name_(std::move(name)) {}

  // Reads the pagemaps only. kFailedPrecondition: the base has no such memory; kDataLoss: its files are
  // damaged. Whatever it returns, GiveUp() may be called.
  absl::Status Link();
  // Decides which layers stay: of an image that has `shared`, by address, as the base has them, and so many
  // bytes more. `may_stay`: else none does. Once.
  void Choose(const std::vector<PageRun>& shared, uint64_t fresh, bool may_stay = true);
  bool has_any() const;  // that stays; before Choose() all do
  // Calls `found` with these pages of the base, in pieces; `stays`: they are shared. kInternal: the base does
  // not have them all.
  absl::Status ForEach(
      uint64_t address, uint64_t pages,
      const std::function<absl::Status(uint64_t address, uint64_t pages, bool stays)>& found) const;
  // Reads files of pages, all or those of which pages are written again, and compares them with their
  // checksums, so that damage to an earlier image does not become damage to this one. As MayGoOn();
  // kDataLoss: they are damaged.
  absl::Status Verify(const SharingLimits& limits, bool all) const;
  // Removes what does not stay from the draft. No pages can be read any more.
  absl::Status Settle();
  // Removes all that has been added to the draft.
  absl::Status GiveUp();
  // So does GiveUp() with this file of the draft.
  void Added(std::string name) { added_.push_back(std::move(name)); }

  const PageLayers& pages() const { return pages_; }
  const std::vector<PagePiece>& pieces() const { return pieces_; }  // all that they have, by address
  // kInternal as ForEach().
  absl::Status Read(uint64_t address, uint64_t bytes, char* to) const;
  size_t runs() const;  // of layers that stay
  // Bytes of pages that are in files that stay, and are not shared.
  uint64_t unused() const;

 private:
  struct Layer {
    ImageFileEntry pages;                  // as in the base
    std::string pagemap_name, pages_name;  // in the draft
    std::string plain_pages_name;          // in the image that had them first
    uint64_t stored = 0, used = 0;         // bytes of pages
    size_t runs = 0;
    bool stays = true;
  };

  const ImageFileEntry* InBase(int up, const std::string& name) const;
  absl::StatusOr<std::string> Share(const ImageFileEntry& entry, int up, const std::string& name);
  absl::StatusOr<UniqueFd> Open(const std::string& name) const;
  bool AreNamesFree() const;
  absl::Status Remove(const std::string& name);
  absl::Status Rename(std::string& name, const std::string& to);
  std::vector<PagePiece>::const_iterator PieceAt(uint64_t address) const;  // or behind it

  ImageDraft* draft_;
  std::string name_;
  PageLayers pages_;
  std::vector<PagePiece> pieces_;
  std::vector<Layer> layers_;  // as those of pages_
  std::vector<std::string> added_;
};

}  // namespace siding
