#include "agent/memory/process_pages.h"

#include <fcntl.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "agent/memory/page_layers.h"

namespace siding {

absl::Status ProcessPages::Read(std::vector<iovec> runs, char* to) {
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
    if (read == 0) {
      const absl::Status forced =
          ReadForced(reinterpret_cast<uint64_t>(run->iov_base), read = PageSize(), to);
      if (!forced.ok()) return forced;
    }
    to += read;
    while (run != runs.end() && read >= run->iov_len) read -= (run++)->iov_len;
    if (read == 0) continue;
    run->iov_base = static_cast<char*>(run->iov_base) + read;
    run->iov_len -= read;
  }
  return absl::OkStatus();
}

absl::Status ProcessPages::ReadForced(uint64_t address, uint64_t bytes, char* to) {
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

}  // namespace siding
