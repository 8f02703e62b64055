#include "controller/api/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr size_t kBytesAtOnce = 1 << 20;

// What is sent has no name any more: nothing is left behind, whatever happens.
absl::StatusOr<UniqueFd> Unnamed(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  unlink(path.c_str());
  if (!file.valid()) return ErrnoError(error, absl::StrCat("open ", path));
  return file;
}

}  // namespace

absl::Status JournalBackup::Send(const Reader& reader) {
  if (!one_.TryLock()) return absl::ResourceExhaustedError("another backup is being made; try again later");
  const MutexLock lock(one_, std::adopt_lock);
  SIDING_RETURN_IF_ERROR(journal_.Copy(copy_, [&](int64_t, int64_t) { return reader.wants(); }));
  SIDING_ASSIGN_OR_RETURN(const UniqueFd file, Unnamed(copy_));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoError(errno, "stat the backup");
  std::string bytes(kBytesAtOnce, '\0');
  for (;;) {
    const ssize_t got = read(file.get(), bytes.data(), kBytesAtOnce);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read the backup");
    if (got == 0) return absl::OkStatus();
    bytes.resize(static_cast<size_t>(got));
    if (!reader.take(info.st_size, bytes)) return absl::CancelledError("the reader has gone");
    bytes.resize(kBytesAtOnce);
  }
}

}  // namespace siding
