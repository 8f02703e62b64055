#include "agent/memory/new_pages.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/memory/page_layers.h"
#include "common/status.h"

namespace siding {
namespace {

absl::StatusOr<UniqueFd> Create(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, path);
  return fd;
}

}  // namespace

NewPages::NewPages(std::string folder, std::string name, const Pagemap& old)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      pages_(absl::StrCat("pages-", old.pages_id, ".img")) {
  pagemap_.pages_id = old.pages_id;
  pagemap_.has_64_bit_counts = old.has_64_bit_counts;
}

std::string NewPages::Unfinished(const std::string& name) const {
  return absl::StrCat(folder_, "/", name, ".new");
}

std::vector<std::string> NewPages::unfinished() const { return {pages_ + ".new", name_ + ".new"}; }

absl::Status NewPages::Open() {
  SIDING_ASSIGN_OR_RETURN(fd_, Create(Unfinished(pages_)));
  return absl::OkStatus();
}

absl::Status NewPages::AddNew(uint64_t address, uint64_t pages, uint32_t flags, const char* bytes) {
  Add(address, pages, flags);
  bytes_ += pages * PageSize();
  buffer_.append(bytes, pages * PageSize());
  return buffer_.size() < kPagesAtOnce * PageSize() ? absl::OkStatus() : Flush();
}

absl::Status NewPages::AddFrom(
    const PageRun& run, const std::function<absl::Status()>& may_go_on,
    const std::function<absl::Status(uint64_t from, uint64_t bytes, char* to)>& read) {
  std::string bytes;
  for (uint64_t done = 0; done < run.pages; done += kPagesAtOnce) {
    SIDING_RETURN_IF_ERROR(may_go_on());
    const uint64_t count = std::min(kPagesAtOnce, run.pages - done);
    bytes.resize(count * PageSize());
    SIDING_RETURN_IF_ERROR(read(done * PageSize(), bytes.size(), bytes.data()));
    SIDING_RETURN_IF_ERROR(AddNew(run.address + done * PageSize(), count, run.flags, bytes.data()));
  }
  return absl::OkStatus();
}

absl::Status NewPages::Finish() {
  SIDING_RETURN_IF_ERROR(Flush());
  // Whatever we have been told: an image that nobody could unite must not come to count.
  uint64_t after = 0;
  for (const PageRun& run : pagemap_.runs) {
    if (run.address < after)
      return absl::InternalError(absl::StrCat("pages at ", absl::Hex(run.address), " are there twice"));
    after = run.end();
  }
  const std::string path = Unfinished(name_);
  SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, Create(path));
  return WriteAll(fd, PagemapText(pagemap_), path);
}

absl::Status NewPages::Replace() const {
  for (const std::string& name : {pages_, name_}) {
    const std::string path = folder_ + "/" + name;
    if (rename(Unfinished(name).c_str(), path.c_str()) != 0) return ErrnoError(errno, "rename " + path);
  }
  return absl::OkStatus();
}

void NewPages::Add(uint64_t address, uint64_t pages, uint32_t flags) {
  const PageRun run{address, pages, flags};
  if (new_run_)
    pagemap_.runs.push_back(run);
  else
    Append(run, pagemap_.runs);
  new_run_ = false;
}

absl::Status NewPages::Flush() {
  SIDING_RETURN_IF_ERROR(WriteAll(fd_, buffer_, Unfinished(pages_)));
  buffer_.clear();
  return absl::OkStatus();
}

}  // namespace siding
