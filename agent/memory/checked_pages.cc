#include "agent/memory/checked_pages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/memory/process_pages.h"
#include "common/status.h"
#include "xxhash.h"

namespace siding {
namespace {

constexpr uint64_t kReadAtOnce = 4 << 20;
constexpr std::ptrdiff_t kMostAtOnce = 256;  // pages of the last image

// Those of the run that are in groups whose turn it is, in pieces of a group at most.
void AddInTurn(const PageRun& run, uint64_t every, uint64_t turn, std::vector<PageRun>& chosen) {
  const uint64_t group = CheckedPages::kGroup * PageSize();
  for (uint64_t at = run.address; at < run.end();) {
    const uint64_t until = std::min(run.end(), (at / group + 1) * group);
    if (at / group % every == turn % every) chosen.push_back({at, (until - at) / PageSize(), run.flags});
    at = until;
  }
}

}  // namespace

absl::Status CheckedPages::Take(pid_t pid, const std::vector<PageRun>& clean, uint64_t every, uint64_t turn,
                                const std::function<bool()>& stop) {
  std::vector<PageRun> chosen, unread;
  for (const PageRun& run : clean) AddInTurn(run, every, turn, chosen);
  ProcessPages process(pid, &unread);
  std::string bytes;
  for (auto run = chosen.begin(); run != chosen.end();) {
    if (stop()) return absl::CancelledError("called off");
    const auto first = run;
    std::vector<iovec> some;
    uint64_t size = 0;
    for (; run != chosen.end() && some.size() < ProcessPages::kMostAtOnce && size < kReadAtOnce; ++run) {
      some.push_back({reinterpret_cast<void*>(run->address), run->pages * PageSize()});
      size += run->pages * PageSize();
    }
    bytes.resize(size);
    unread.clear();
    SIDING_RETURN_IF_ERROR(process.Read(std::move(some), bytes.data()));
    const char* page = bytes.data();
    for (auto i = first; i != run; ++i) {
      for (uint64_t at = i->address; at < i->end(); at += PageSize(), page += PageSize()) {
        const bool is_read = std::none_of(unread.begin(), unread.end(),
                                          [&](const PageRun& r) { return r.address <= at && at < r.end(); });
        if (is_read && !IsOfZeros(page)) pages_.push_back({at, XXH3_64bits(page, PageSize())});
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> CheckedPages::FindChanged(
    const std::vector<SourcedPages>& pages,
    const std::function<absl::Status(uint64_t address, uint64_t bytes, char* to)>& read) const {
  std::string bytes;
  auto where = pages.begin();
  for (auto page = pages_.begin(); page != pages_.end();) {
    while (where != pages.end() && where->end() <= page->address) ++where;
    if (where == pages.end()) break;
    if (where->address > page->address || where->source != PageSource::kBase) {
      ++page;
      continue;
    }
    // Those that follow on one another are read at once.
    const auto first = page++;
    uint64_t end = first->address + PageSize();
    for (; page != pages_.end() && page->address == end && end < where->end() && page - first < kMostAtOnce;
         ++page)
      end += PageSize();
    bytes.resize(end - first->address);
    SIDING_RETURN_IF_ERROR(read(first->address, bytes.size(), bytes.data()));
    const char* then = bytes.data();
    for (auto i = first; i != page; ++i, then += PageSize())
      if (XXH3_64bits(then, PageSize()) != i->hash) return i->address;
  }
  return std::nullopt;
}

}  // namespace siding
