#include "agent/memory/captured_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/memory/page_layers.h"
#include "agent/memory/process_pages.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr uint64_t kBytesAtOnce = 4 << 20;

}  // namespace

std::atomic<uint64_t> CapturedPages::taken_{0};

void CapturedPages::Unmap::operator()(char* memory) const {
  munmap(memory, size);
  taken_ -= size;
}

absl::StatusOr<CapturedPages> CapturedPages::Make(uint64_t room, UniqueFd file) {
  // Two that ask at once may both get it.
  const uint64_t taken = taken_, left = taken < kMostRoomOfAll ? kMostRoomOfAll - taken : 0;
  room = std::clamp(std::min(room, left), kBytesAtOnce, kMostRoom);
  void* const memory =
      mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return ErrnoError(errno, "take memory for pages");
  // Else the first store to each page after a fork of this process, whoever forks, would copy it.
  madvise(memory, room, MADV_DONTFORK);
  taken_ += room;
  return CapturedPages(static_cast<char*>(memory), room, std::move(file));
}

absl::Status CapturedPages::Take(pid_t pid, const std::vector<PageRun>& runs,
                                 const std::function<bool()>& stop, std::vector<PageRun>* unread) {
  ProcessPages reader(pid, unread);
  std::string beside;  // what there is no room for
  std::vector<iovec> some;
  uint64_t size = 0;
  const auto copy = [&]() -> absl::Status {
    if (some.empty()) return absl::OkStatus();
    if (stop()) return absl::CancelledError("called off");
    const bool has_room = in_file_ == 0 && in_memory_ + size <= room_;
    if (!has_room) beside.resize(size);
    SIDING_RETURN_IF_ERROR(
        reader.Read(std::move(some), has_room ? memory_.get() + in_memory_ : beside.data()));
    if (!has_room) SIDING_RETURN_IF_ERROR(WriteAll(file_, beside, "captured pages"));
    (has_room ? in_memory_ : in_file_) += size;
    some.clear();
    size = 0;
    return absl::OkStatus();
  };
  for (const PageRun& run : runs) {
    for (uint64_t at = run.address; at < run.end();) {
      const uint64_t bytes = std::min(run.end() - at, kBytesAtOnce - size);
      some.push_back({reinterpret_cast<void*>(at), bytes});
      size += bytes;
      at += bytes;
      if (size == kBytesAtOnce || some.size() == ProcessPages::kMostAtOnce) SIDING_RETURN_IF_ERROR(copy());
    }
  }
  return copy();
}

absl::Status CapturedPages::CheckFile() const {
  // Of what is on its way there anyway, and of all since the file was made.
  if (sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) == 0) return absl::OkStatus();
  return ErrnoError(errno, "captured pages");
}

absl::Status CapturedPages::Read(uint64_t offset, uint64_t bytes, char* to) const {
  const uint64_t here = offset < in_memory_ ? std::min(bytes, in_memory_ - offset) : 0;
  memcpy(to, memory_.get() + offset, here);
  return here == bytes ? absl::OkStatus()
                       : ReadPages(file_.get(), offset + here - in_memory_, bytes - here, to + here);
}

}  // namespace siding
