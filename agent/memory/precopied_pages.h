// Where the pages of one process are, of which some were copied while it ran (pre-copy): of a dump to which a
// WriteTracker says what has been written. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/memory/pagemap.h"

namespace siding {

enum class PageSource {
  kBase,       // not written since the last image
  kPrecopied,  // not written since it was copied
  kProcess,    // to be copied while it is stopped for the dump
};

// Pages that follow on one another, in memory and where they are.
struct SourcedPages {
  uint64_t address = 0;
  uint64_t pages = 0;
  PageSource source = PageSource::kBase;
  uint64_t offset = 0;  // of kPrecopied

  uint64_t end() const;
  // So many pages of them.
  SourcedPages Part(uint64_t from, uint64_t count) const;
  bool operator==(const SourcedPages&) const = default;
};

class PrecopiedPages {
 public:
  // They have been written since the last lap: of what was copied before they are not any more. By address.
  void Written(const std::vector<PageRun>& runs);
  // All that were told by the last Written() are copied, one behind the other from `offset` on.
  void Copied(const std::vector<PageRun>& runs, uint64_t offset);
  // The copies are gone.
  void LoseCopies();
  // What has been written is not known any more.
  void Distrust() { distrusted_ = true; }
  bool distrusted() const { return distrusted_; }

  // What has been written and was not copied, of what it knows.
  std::vector<PageRun> ToCopy() const;
  // Of the pages of the last lap, before they are copied.
  std::vector<SourcedPages> Sources(const std::vector<PageRun>& lap) const;

 private:
  void Replace(const std::vector<SourcedPages>& newer);

  bool distrusted_ = false;
  std::vector<SourcedPages> pages_;  // by address; all others are kBase
};

}  // namespace siding
