#include "agent/memory/precopied_pages.h"

#include <algorithm>

namespace siding {

uint64_t SourcedPages::end() const { return address + pages * PageSize(); }

SourcedPages SourcedPages::Part(uint64_t from, uint64_t count) const {
  return {address + from * PageSize(), count, source, offset + from * PageSize()};
}

void PrecopiedPages::Written(const std::vector<PageRun>& runs) {
  std::vector<SourcedPages> newer;
  for (const PageRun& run : runs) newer.push_back({run.address, run.pages, PageSource::kProcess});
  Replace(newer);
}

void PrecopiedPages::Copied(const std::vector<PageRun>& runs, uint64_t offset) {
  std::vector<SourcedPages> newer;
  for (const PageRun& run : runs) {
    newer.push_back({run.address, run.pages, PageSource::kPrecopied, offset});
    offset += run.pages * PageSize();
  }
  Replace(newer);
}

void PrecopiedPages::LoseCopies() {
  for (SourcedPages& pages : pages_) pages.source = PageSource::kProcess;
}

void PrecopiedPages::Replace(const std::vector<SourcedPages>& newer) {
  std::vector<SourcedPages> all;
  auto next = newer.begin();
  for (SourcedPages old : pages_) {
    while (old.pages > 0) {
      for (; next != newer.end() && next->end() <= old.address; ++next) all.push_back(*next);
      const uint64_t begin = next == newer.end() ? old.end() : std::min(next->address, old.end());
      if (begin > old.address) all.push_back(old.Part(0, (begin - old.address) / PageSize()));
      // What is behind the newer ones.
      const uint64_t after = next == newer.end() ? old.end() : std::clamp(next->end(), begin, old.end());
      old = old.Part((after - old.address) / PageSize(), (old.end() - after) / PageSize());
    }
  }
  all.insert(all.end(), next, newer.end());
  pages_ = std::move(all);
}

std::vector<PageRun> PrecopiedPages::ToCopy() const {
  std::vector<PageRun> runs;
  for (const SourcedPages& pages : pages_)
    if (pages.source == PageSource::kProcess) Append({pages.address, pages.pages, kPagePresent}, runs);
  return runs;
}

std::vector<SourcedPages> PrecopiedPages::Sources(const std::vector<PageRun>& lap) const {
  std::vector<SourcedPages> sources;
  for (const PageRun& run : lap) {
    SourcedPages left{run.address, run.pages, PageSource::kBase};
    if (run.present() || distrusted_) {
      left.source = PageSource::kProcess;
      sources.push_back(left);
      continue;
    }
    auto known = std::partition_point(pages_.begin(), pages_.end(),
                                      [&](const SourcedPages& p) { return p.end() <= run.address; });
    for (; known != pages_.end() && known->address < left.end(); ++known) {
      const uint64_t begin = std::max(known->address, left.address), end = std::min(known->end(), left.end());
      if (begin > left.address) sources.push_back(left.Part(0, (begin - left.address) / PageSize()));
      sources.push_back(known->Part((begin - known->address) / PageSize(), (end - begin) / PageSize()));
      left = left.Part((end - left.address) / PageSize(), (left.end() - end) / PageSize());
    }
    if (left.pages > 0) sources.push_back(left);
  }
  return sources;
}

}  // namespace siding
