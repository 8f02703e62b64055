#include "agent/memory/captured_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agent/memory/page_layers.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr size_t kRunsAtOnce = 1024;  // what process_vm_readv() takes
constexpr uint64_t kBytesAtOnce = 4 << 20;

// The pages of one process.
class Reader {
 public:
  // `unread` as of Take().
  Reader(pid_t pid, std::vector<PageRun>* unread) : pid_(pid), unread_(unread) {}

  absl::Status Read(std::vector<iovec> runs, char* to) {
    auto run = runs.begin();
    while (run != runs.end()) {
      uint64_t left = 0;
      for (auto i = run; i != runs.end(); ++i) left += i->iov_len;
      const iovec local{to, left};
      const ssize_t n =
          process_vm_readv(pid_, &local, 1, &*run, static_cast<unsigned long>(runs.end() - run), 0);
      if (n < 0 && errno == ESRCH) return absl::AbortedError(absl::StrCat("process ", pid_, " has ended"));
      uint64_t read = n < 0 ? 0 : static_cast<uint64_t>(n);
      // What the process may not read itself (PROT_NONE).
      if (read == 0)
        SIDING_RETURN_IF_ERROR(ReadForced(reinterpret_cast<uint64_t>(run->iov_base), read = PageSize(), to));
      to += read;
      while (run != runs.end() && read >= run->iov_len) read -= (run++)->iov_len;
      if (read == 0) continue;
      run->iov_base = static_cast<char*>(run->iov_base) + read;
      run->iov_len -= read;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadForced(uint64_t address, uint64_t bytes, char* to) {
    if (!memory_.valid())
      memory_ = UniqueFd(open(absl::StrCat("/proc/", pid_, "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    const absl::Status status = ReadPages(memory_.get(), address, bytes, to);
    if (status.ok()) return status;
    if (unread_ != nullptr) {
      Append({address, 1, kPagePresent}, *unread_);
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("a page of process ", pid_, " at ", absl::Hex(address),
                                            " cannot be read: ", std::string(status.message())));
  }

  const pid_t pid_;
  std::vector<PageRun>* const unread_;
  UniqueFd memory_;
};

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
  Reader reader(pid, unread);
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
      if (size == kBytesAtOnce || some.size() == kRunsAtOnce) SIDING_RETURN_IF_ERROR(copy());
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
