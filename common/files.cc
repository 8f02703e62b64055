#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>

#include "common/directory.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding {
namespace {

absl::Status ReplaceFile(const std::string& path, absl::string_view content, int mode, bool durable) {
  // Unique within the machine: the process id and a counter, so that two threads never share a name.
  static std::atomic<unsigned> counter{0};
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid(), ".", counter++);
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("create ", temporary));
  absl::Status status = WriteAll(fd, content, temporary);
  if (status.ok() && durable && fsync(fd.get()) != 0) {
    status = ErrnoError(errno, absl::StrCat("fsync ", temporary));
  }
  if (status.ok()) status = FaultAt<"file.written: a file's new content lies beside the old">();
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoError(errno, absl::StrCat("rename ", temporary, " to ", path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return durable ? SyncDirectory(std::filesystem::path(path).parent_path()) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open ", path));
  return ReadAll(fd, path);
}

absl::StatusOr<std::string> ReadAll(const UniqueFd& fd, const std::string& path, size_t most) {
  std::string content;
  char buffer[16384];
  while (content.size() < most) {
    const ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, most - content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    content.append(buffer, static_cast<size_t>(n));
  }
  return content;
}

absl::Status WriteAll(const UniqueFd& fd, absl::string_view data, const std::string& path) {
  while (!data.empty()) {
    ssize_t n = write(fd.get(), data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, absl::StrCat("write ", path));
    data.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view content, int mode) {
  return ReplaceFile(path, content, mode, /*durable=*/true);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, int mode) {
  return ReplaceFile(path, content, mode, /*durable=*/false);
}

absl::Status SyncDirectory(const std::string& path) {
  UniqueFd fd(open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open folder ", path));
  if (fsync(fd.get()) != 0) return ErrnoError(errno, absl::StrCat("fsync folder ", path));
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  const std::filesystem::path target(path);
  std::filesystem::path partial;
  for (const auto& part : target) {
    partial /= part;
    if (mkdir(partial.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST) {
      return ErrnoError(errno, absl::StrCat("mkdir ", partial.string()));
    }
  }
  return IsFolder(path) ? absl::OkStatus() : absl::FailedPreconditionError(path + " is not a folder");
}

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

}  // namespace siding
