// The pages of one memory, of a process or shared by several, in an image and its parents: where each of them
// is.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/memory/pagemap.h"
#include "common/files.h"

namespace siding {

// What CRIU calls its file: "pagemap-7.img" for a process, "pagemap-shmem-7.img" for shared memory.
bool IsPagemap(absl::string_view name);

// Pages that follow on one another both in memory and in a file.
struct PagePiece {
  uint64_t address = 0;
  uint64_t end = 0;
  size_t layer = 0;
  uint64_t offset = 0;  // in the layer's file of pages
};

// Of a memory that is scattered over more pieces, all layers together, the bookkeeping costs more than
// sharing saves: some 200 MiB at most.
inline constexpr size_t kMostPageRuns = 1 << 21;

// Not thread-safe.
class PageLayers {
 public:
  // First the image's own, then its parent's, and so on. kOutOfRange: there are too many runs.
  absl::Status Add(Pagemap pagemap, UniqueFd pages);
  // Of all pages, by address. kDataLoss if one is said to be in a parent and is not; kOutOfRange.
  absl::StatusOr<std::vector<PagePiece>> Resolve() const;
  // Pages of a piece, from `address` on.
  absl::Status Read(const PagePiece& piece, uint64_t address, uint64_t bytes, char* to) const;

 private:
  struct Layer {
    Pagemap pagemap;
    std::vector<uint64_t> offsets;  // of its runs, in its file of pages; of those that are present
    UniqueFd pages;
  };
  absl::Status Find(size_t at, uint64_t begin, uint64_t end, std::vector<PagePiece>& pieces) const;

  std::vector<Layer> layers_;
  size_t runs_ = 0;
};

// As many are read or written at once.
inline constexpr uint64_t kPagesAtOnce = 256;

// So many bytes of a file, or an error that says how they cannot be read.
absl::Status ReadPages(int fd, uint64_t offset, uint64_t bytes, char* to);

}  // namespace siding
