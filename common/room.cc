#include "common/room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// What has blocks; a file that was cut before has some, too, behind its end.
size_t SizeOf(const struct stat& file) { return static_cast<size_t>(file.st_blocks) * 512; }

}  // namespace

absl::Status TakeRoom(const std::string& room, size_t bytes, int mode) {
  const UniqueFd fd(open(room.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode));
  if (!fd.valid()) return ErrnoError(errno, "create " + room);
  const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "take room for " + room);
}

absl::Status WriteInRoom(const std::string& room, const std::string& path, absl::string_view content) {
  const UniqueFd fd(open(room.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + room);
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return ErrnoError(errno, "stat " + room);
  if (content.size() > SizeOf(file)) return absl::OutOfRangeError(room + " is too small");
  // Over the blocks that are there: a file that is cut before has none.
  SIDING_RETURN_IF_ERROR(WriteAll(fd, content, room));
  if (ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0 || fsync(fd.get()) != 0)
    return ErrnoError(errno, "write " + room);
  if (rename(room.c_str(), path.c_str()) != 0) return ErrnoError(errno, "rename " + room + " to " + path);
  return SyncDirectory(std::filesystem::path(path).parent_path());
}

}  // namespace siding
