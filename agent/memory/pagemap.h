// CRIU's pagemap-*.img: which pages of a process's memory are in its pages-*.img, which follow on one another
// there, and which are in the image's parent. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

// What CRIU says of a run (PE_* in its pagemap.h).
inline constexpr uint32_t kPageInParent = 1, kPageLazy = 2, kPagePresent = 4;

// Pages that follow on one another in memory.
struct PageRun {
  uint64_t address = 0;
  uint64_t pages = 0;
  uint32_t flags = 0;

  uint64_t end() const;
  bool present() const { return (flags & kPagePresent) != 0; }
  bool in_parent() const { return (flags & kPageInParent) != 0; }
  bool operator==(const PageRun&) const = default;
};

// As one more, or as more of the last one.
void Append(const PageRun& run, std::vector<PageRun>& runs);

struct Pagemap {
  uint32_t pages_id = 0;           // of pages-<id>.img, which has the present ones
  bool has_64_bit_counts = false;  // written by a CRIU from 4.2 on: counts of pages have 64 bits
  std::vector<PageRun> runs;       // by address, none over another

  uint64_t Present() const;  // pages
  bool operator==(const Pagemap&) const = default;
};

// Of this machine, in bytes.
uint64_t PageSize();

bool IsOfZeros(const char* page);

// kDataLoss says what is wrong with the text.
absl::StatusOr<Pagemap> ParsePagemap(absl::string_view text);
std::string PagemapText(const Pagemap& pagemap);

}  // namespace siding
