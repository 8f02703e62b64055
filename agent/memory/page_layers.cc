#include "agent/memory/page_layers.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace siding {
namespace {

absl::Status TooScattered() { return absl::OutOfRangeError("its pages are scattered over too many pieces"); }

}  // namespace

bool IsPagemap(absl::string_view name) {
  uint64_t number = 0;
  if (!absl::ConsumePrefix(&name, "pagemap-") || !absl::ConsumeSuffix(&name, ".img")) return false;
  absl::ConsumePrefix(&name, "shmem-");
  return absl::SimpleAtoi(name, &number);
}

absl::Status PageLayers::Add(Pagemap pagemap, UniqueFd pages) {
  runs_ += pagemap.runs.size();
  if (runs_ > kMostPageRuns) return TooScattered();
  Layer layer{std::move(pagemap), {}, std::move(pages)};
  uint64_t offset = 0;
  for (const PageRun& run : layer.pagemap.runs) {
    layer.offsets.push_back(offset);
    if (run.present()) offset += run.pages * PageSize();
  }
  layers_.push_back(std::move(layer));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PagePiece>> PageLayers::Resolve() const {
  std::vector<PagePiece> pieces;
  for (const PageRun& run : layers_.front().pagemap.runs)
    SIDING_RETURN_IF_ERROR(Find(0, run.address, run.end(), pieces));
  return pieces;
}

absl::Status PageLayers::Find(size_t at, uint64_t begin, uint64_t end, std::vector<PagePiece>& pieces) const {
  const Layer& layer = layers_[at];
  const auto& runs = layer.pagemap.runs;
  auto run =
      std::partition_point(runs.begin(), runs.end(), [&](const PageRun& r) { return r.end() <= begin; });
  uint64_t reached = begin;
  for (; run != runs.end() && run->address < end; ++run) {
    const uint64_t from = std::max(begin, run->address), to = std::min(end, run->end());
    if (at > 0 && (from != reached || !(run->present() || run->in_parent()))) break;
    reached = to;
    if (run->in_parent()) {
      if (at + 1 == layers_.size())
        return absl::DataLossError("a page is said to be in a parent, of which there is none");
      SIDING_RETURN_IF_ERROR(Find(at + 1, from, to, pieces));
    }
    if (!run->present()) continue;
    const uint64_t offset = layer.offsets[static_cast<size_t>(run - runs.begin())] + (from - run->address);
    pieces.push_back({from, to, at, offset});
    if (pieces.size() > kMostPageRuns) return TooScattered();
  }
  // What is looked for in a parent must all be there.
  if (at > 0 && reached != end) return absl::DataLossError("a page is said to be in a parent, and is not");
  return absl::OkStatus();
}

absl::Status PageLayers::Read(const PagePiece& piece, uint64_t address, uint64_t bytes, char* to) const {
  return ReadPages(layers_[piece.layer].pages.get(), piece.offset + (address - piece.address), bytes, to);
}

absl::Status ReadPages(int fd, uint64_t offset, uint64_t bytes, char* to) {
  while (bytes > 0) {
    const ssize_t n = pread(fd, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read pages");
    if (n == 0) return absl::DataLossError("a file of pages is shorter than its pagemap says");
    to += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace siding
