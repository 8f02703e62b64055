#include "store/disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/status.h"

namespace siding::store {
namespace {

class SystemDisk final : public Disk {
 public:
  int Create(const std::string& path) override {
    return open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  ssize_t Write(int fd, const void* data, size_t size) override { return write(fd, data, size); }
  int SyncFile(int fd) override { return fdatasync(fd); }
  int SyncFolder(const std::string& path) override {
    const UniqueFd fd(open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd.valid() ? fsync(fd.get()) : -1;
  }
  int MakeFolder(const std::string& path) override { return mkdir(path.c_str(), 0700); }
  int Rename(const std::string& from, const std::string& to) override {
    return rename(from.c_str(), to.c_str());
  }
  int Exchange(const std::string& one, const std::string& other) override {
    return renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  }
  int Link(const std::string& file, const std::string& name) override {
    return link(file.c_str(), name.c_str());
  }
  int RemoveFile(const std::string& path) override { return unlink(path.c_str()); }
  int RemoveFolder(const std::string& path) override { return rmdir(path.c_str()); }
  int64_t FreeSpace(const std::string& path) override {
    struct statvfs info = {};
    if (statvfs(path.c_str(), &info) != 0) return -1;
    if ((info.f_flag & ST_RDONLY) != 0) return 0;
    return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  }
};

// Of linux/magic.h, but for these.
constexpr unsigned long kXfs = 0x58465342, kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e;

// 0: not known.
unsigned long TypeOf(const std::string& folder) {
  struct statfs info = {};
  return statfs(folder.c_str(), &info) == 0 ? static_cast<unsigned long>(info.f_type) : 0;
}

std::string ParentOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace

bool Disk::IsNear(const std::string& folder) const { return IsOnThisMachine(folder); }

Disk& RealDisk() {
  static SystemDisk disk;
  return disk;
}

bool IsOnDisk(const std::string& folder) {
  switch (TypeOf(folder)) {
    case EXT4_SUPER_MAGIC:  // ext2 and ext3 have the same
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case kXfs:
    case kZfs:
    case kBcachefs:
      return true;
    default:
      return false;
  }
}

bool IsInMemory(const std::string& folder) {
  std::string there = folder;  // or what it will be made in
  while (TypeOf(there) == 0 && ParentOf(there) != there) there = ParentOf(there);
  const unsigned long type = TypeOf(there);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC;
}

Bytes SizeInMemory(const std::string& folder) {
  struct statvfs info = {};
  if (!IsInMemory(folder) || statvfs(folder.c_str(), &info) != 0) return Bytes{0};
  return Bytes{static_cast<int64_t>(info.f_blocks * info.f_frsize)};
}

bool IsOnThisMachine(const std::string& folder) {
  const unsigned long type = TypeOf(folder);
  // The upper layer of an overlay, where files are made, is never a network's.
  return type == TMPFS_MAGIC || type == OVERLAYFS_SUPER_MAGIC || IsOnDisk(folder);
}

int HoldFolder(const std::string& path) {
  return open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

absl::StatusOr<UniqueFd> OpenRegular(const std::string& path) {
  // Opened as a path first: opening a device uses it, and opening a pipe waits for its writer.
  const UniqueFd named(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!named.valid() && errno == ENOENT) return absl::NotFoundError(path + " is missing");
  struct stat info = {};
  if (!named.valid() || fstat(named.get(), &info) != 0)
    return absl::InternalError(absl::StrCat("open ", path, ": ", strerror(errno)));
  if (!S_ISREG(info.st_mode)) return absl::DataLossError(path + " is not a regular file");
  UniqueFd fd(open(absl::StrCat("/proc/self/fd/", named.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::InternalError(absl::StrCat("open ", path, ": ", strerror(errno)));
  return fd;
}

absl::Status WriteAll(Disk& disk, int fd, absl::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = disk.Write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write " + path);
    data.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status WriteNewFile(Disk& disk, const std::string& path, absl::string_view content) {
  const UniqueFd fd(disk.Create(path));
  if (!fd.valid()) return ErrnoError(errno, "create " + path);
  absl::Status status = WriteAll(disk, fd.get(), content, path);
  if (status.ok() && disk.SyncFile(fd.get()) != 0) status = ErrnoError(errno, "fdatasync " + path);
  if (!status.ok()) disk.RemoveFile(path);
  return status;
}

absl::Status SyncFolder(Disk& disk, const std::string& path) {
  if (disk.SyncFolder(path) != 0) return ErrnoError(errno, "fsync folder " + path);
  return absl::OkStatus();
}

absl::Status MakeFolders(Disk& disk, const std::string& path) {
  bool made = disk.MakeFolder(path) == 0;
  if (!made && errno == ENOENT && ParentOf(path) != path) {
    SIDING_RETURN_IF_ERROR(MakeFolders(disk, ParentOf(path)));
    made = disk.MakeFolder(path) == 0;
  }
  if (!made && errno != EEXIST) return ErrnoError(errno, "mkdir " + path);
  if (!IsFolder(path)) return absl::FailedPreconditionError(path + " is not a folder");
  // Also if it was there: the process that made it may have died before this. If an administrator made it in
  // a folder that may not be read, it is taken to be durable.
  const absl::Status synced = SyncFolder(disk, ParentOf(path));
  return !made && absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

absl::Status RemoveTree(Disk& disk, const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoError(errno, "stat " + path);
  }
  if (!S_ISDIR(info.st_mode)) {
    if (disk.RemoveFile(path) == 0 || errno == ENOENT) return absl::OkStatus();
    return ErrnoError(errno, "remove " + path);
  }
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(path, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    SIDING_RETURN_IF_ERROR(RemoveTree(disk, it->path().string()));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return absl::InternalError(absl::StrCat("list ", path, ": ", error.message()));
  if (disk.RemoveFolder(path) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoError(errno, "remove " + path);
}

}  // namespace siding::store
