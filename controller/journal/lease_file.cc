#include "controller/journal/lease_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/directory.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr size_t kSize = 1024;  // always the same, so that one write replaces it

}  // namespace

absl::StatusOr<LeaseFile> LeaseFile::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open ", path));
  return LeaseFile(path, std::move(fd));
}

absl::StatusOr<LeaseRecord> LeaseFile::Read() const {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(path_));
  auto record = DecodeLease(text);
  return record.ok() ? record : Annotate(record.status(), path_);
}

absl::Status LeaseFile::Write(const LeaseRecord& record) {
  std::string text = EncodeLease(record);
  if (text.size() >= kSize) return absl::InvalidArgumentError(absl::StrCat(path_, ": too long: ", text));
  text.resize(kSize - 1, ' ');
  text += '\n';
  if (pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoError(errno, absl::StrCat("write ", path_));
  }
  // For other hosts: after a power cut it is not needed.
  if (record.shared && fdatasync(fd_.get()) != 0) return ErrnoError(errno, absl::StrCat("fsync ", path_));
  return absl::OkStatus();
}

// Of the open file and not of the process: a second lease within a process counts as another one's.
int LeaseFile::SetLock(int command, int64_t epoch, short& type) const {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = epoch;
  lock.l_len = 1;
  const int result = fcntl(fd_.get(), command, &lock);
  type = lock.l_type;
  return result;
}

absl::Status LeaseFile::Lock(int64_t epoch) {
  short type = F_WRLCK;
  if (SetLock(F_OFD_SETLK, epoch, type) == 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == EACCES) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": epoch ", epoch, " is another controller's"));
  }
  return ErrnoError(errno, absl::StrCat("lock ", path_));
}

void LeaseFile::Unlock(int64_t epoch) {
  short type = F_UNLCK;
  SetLock(F_OFD_SETLK, epoch, type);
}

bool LeaseFile::IsLocked(int64_t epoch) const {
  short type = F_WRLCK;
  return SetLock(F_OFD_GETLK, epoch, type) != 0 || type != F_UNLCK;
}

bool LeaseFile::IsOpenIn(int pid) const {
  const std::string folder = absl::StrCat("/proc/", pid, "/fd");
  const auto fds = ListFolder(folder);
  return fds.ok() && std::any_of(fds->begin(), fds->end(), [&](const std::string& fd) {
           std::error_code gone;
           return std::filesystem::equivalent(absl::StrCat(folder, "/", fd), path_, gone);
         });
}

}  // namespace siding
