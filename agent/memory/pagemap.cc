#include "agent/memory/pagemap.h"

#include <endian.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "agent/criu/pagemap.pb.h"

namespace siding {
namespace {

// At the beginning: that it is an image, and which (criu/include/magic.h).
constexpr uint32_t kMagics[] = {0x54564319, 0x56084025};
// All numbers of one take far less.
constexpr uint32_t kLongestEntry = 1024;
// Beyond all that a process can have; sums of what is below do not overflow.
constexpr uint64_t kMostAddress = uint64_t{1} << 57;

void Put(uint32_t number, std::string& text) {
  const uint32_t bytes = htole32(number);
  text.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

bool Take(absl::string_view& text, uint32_t& number) {
  if (text.size() < sizeof number) return false;
  memcpy(&number, text.data(), sizeof number);
  number = le32toh(number);
  text.remove_prefix(sizeof number);
  return true;
}

// Messages, each after its size.
template <class Message>
bool Take(absl::string_view& text, Message& message) {
  uint32_t size = 0;
  if (!Take(text, size) || size > text.size() || size > kLongestEntry) return false;
  // A newer CRIU may say something there that would be lost.
  const bool good = message.ParseFromArray(text.data(), static_cast<int>(size)) &&
                    message.GetReflection()->GetUnknownFields(message).empty();
  text.remove_prefix(size);
  return good;
}

template <class Message>
void Put(const Message& message, std::string& text) {
  const std::string bytes = message.SerializeAsString();
  Put(static_cast<uint32_t>(bytes.size()), text);
  text += bytes;
}

PageRun RunOf(const criu::PagemapEntry& entry) {
  PageRun run{entry.vaddr(), entry.has_nr_pages() ? entry.nr_pages() : entry.compat_nr_pages(),
              entry.flags()};
  // As older ones say it.
  if (entry.in_parent())
    run.flags |= kPageInParent;
  else if (!entry.has_flags())
    run.flags = kPagePresent;
  return run;
}

bool Fits(const PageRun& run, uint64_t after) {
  const uint64_t most = (kMostAddress - after) / PageSize();
  return run.address >= after && run.address % PageSize() == 0 && run.address < kMostAddress &&
         run.pages > 0 && run.pages <= most && run.end() <= kMostAddress &&
         !(run.present() && run.in_parent());
}

}  // namespace

uint64_t PageSize() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

bool IsOfZeros(const char* page) { return page[0] == 0 && memcmp(page, page + 1, PageSize() - 1) == 0; }

uint64_t PageRun::end() const { return address + pages * PageSize(); }

void Append(const PageRun& run, std::vector<PageRun>& runs) {
  if (!runs.empty() && runs.back().flags == run.flags && runs.back().end() == run.address)
    runs.back().pages += run.pages;
  else
    runs.push_back(run);
}

uint64_t Pagemap::Present() const {
  uint64_t pages = 0;
  for (const PageRun& run : runs)
    if (run.present()) pages += run.pages;
  return pages;
}

absl::StatusOr<Pagemap> ParsePagemap(absl::string_view text) {
  for (const uint32_t magic : kMagics) {
    uint32_t found = 0;
    if (!Take(text, found) || found != magic) return absl::DataLossError("it is no pagemap of CRIU's");
  }
  criu::PagemapHead head;
  if (!Take(text, head)) return absl::DataLossError("its first entry does not name a file of pages");
  Pagemap pagemap{.pages_id = head.pages_id()};
  uint64_t after = 0;
  while (!text.empty()) {
    criu::PagemapEntry entry;
    const size_t number = pagemap.runs.size() + 1;
    if (!Take(text, entry))
      return absl::DataLossError(absl::StrCat("entry ", number, " is cut off, or none"));
    const PageRun run = RunOf(entry);
    if (!Fits(run, after))
      return absl::DataLossError(
          absl::StrCat("entry ", number, ": expected pages after those of the one before"));
    after = run.end();
    pagemap.has_64_bit_counts |= entry.has_nr_pages();
    pagemap.runs.push_back(run);
  }
  return pagemap;
}

std::string PagemapText(const Pagemap& pagemap) {
  std::string text;
  for (const uint32_t magic : kMagics) Put(magic, text);
  criu::PagemapHead head;
  head.set_pages_id(pagemap.pages_id);
  Put(head, text);
  criu::PagemapEntry entry;
  for (const PageRun& run : pagemap.runs) {
    entry.set_vaddr(run.address);
    entry.set_compat_nr_pages(pagemap.has_64_bit_counts ? 0 : static_cast<uint32_t>(run.pages));
    if (pagemap.has_64_bit_counts) entry.set_nr_pages(run.pages);
    entry.set_flags(run.flags);
    Put(entry, text);
  }
  return text;
}

}  // namespace siding
