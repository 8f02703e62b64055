#include "agent/checkpoint/recreated_names.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kSocket[] = "socket:[";
constexpr char kDeleted[] = " (deleted)";

// Where the kernel keeps memory that is shared without a file: CRIU makes it again without a name.
dev_t DeviceOfSharedMemory() {
  const UniqueFd probe(memfd_create("siding", MFD_CLOEXEC));
  struct stat info {};
  return probe.valid() && fstat(probe.get(), &info) == 0 ? info.st_dev : 0;
}

// Not such memory, nor what other kernel objects pretend: only root removes files from the root folder.
bool WasAFile(const std::string& target, const struct stat& info, int fd, dev_t shared_memory) {
  if (info.st_dev == shared_memory || absl::StartsWith(target, "/memfd:") || target.rfind('/') == 0)
    return false;
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC;
}

// A socket that has been closed meanwhile, or with its process, listens nowhere; any other error is one of
// ours.
absl::StatusOr<std::string> NotAsked(int error) {
  if (error == ESRCH || error == EBADF || error == ENOENT) return "";
  return ErrnoError(error, "it cannot be asked where it listens");
}

// The path at which a socket listens; empty: at none. The socket itself is asked: a table such as
// /proc/net/unix contains the bytes that any user names sockets with, and so forged lines.
absl::StatusOr<std::string> ListensAt(const Held& held) {
  int number = 0;
  if (!absl::SimpleAtoi(held.link.substr(held.link.rfind('/') + 1), &number)) return "";
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, held.pid, 0)));
  if (!process.valid()) return NotAsked(errno);
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
  if (!fd.valid()) return NotAsked(errno);
  int domain = 0, listens = 0;
  socklen_t size = sizeof domain;
  // Another file by now, which has that number.
  if (getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) return "";
  size = sizeof listens;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return "";
  sockaddr_un address = {};
  size = sizeof address;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return ErrnoError(errno, "getsockname");
  const size_t begin = offsetof(sockaddr_un, sun_path);
  if (size <= begin || address.sun_path[0] != '/') return "";
  // With a zero at the end or, where it fills its place, without.
  return std::string(address.sun_path,
                     strnlen(address.sun_path, std::min<size_t>(size, sizeof address) - begin));
}

// In the folder that it was in, or where that is gone in the next above it.
bool MayMakeFileIn(std::string folder) {
  while (!folder.empty()) {
    if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return true;
    if (errno != ENOENT) return false;
    folder.erase(folder.rfind('/'));
  }
  return false;
}

class RecreatedNamesCheck {
 public:
  explicit RecreatedNamesCheck(const Account& user) : user_(user) {}

  void Check(const Held& held) {
    if (!problem_.ok()) return;
    const std::string target = TargetOf(held.link);
    if (absl::StartsWith(target, kSocket)) {
      CheckSocket(held);
    } else if (absl::EndsWith(target, kDeleted)) {
      CheckDeleted(held, std::string(absl::StripSuffix(target, kDeleted)));
    } else if (target == "anon_inode:[fanotify]") {
      Refuse(held, "uses fanotify, whose marks CRIU would set as root");
    } else if (!target.empty() && target[0] == '/') {
      CheckPipe(held, target);
    }
  }
  const absl::Status& problem() const { return problem_; }

 private:
  void Refuse(const Held& held, const std::string& what) {
    problem_ = absl::PermissionDeniedError(absl::StrCat(NameOf(held.pid), " ", what));
  }

  void CheckSocket(const Held& held) {
    const absl::StatusOr<std::string> path = ListensAt(held);
    if (!path.ok())
      return Refuse(held, absl::StrCat("has a socket open: ", std::string(path.status().message())));
    if (path->empty()) return;
    const FilesAsUser as_user(user_);
    if (!as_user.ok() || !MayMakeFileIn(path->substr(0, path->rfind('/'))))
      Refuse(held, absl::StrCat("listens at ", *path, ", which its user could not do again"));
  }

  // With another name in another folder CRIU would link it to a third one, as root.
  void CheckDeleted(const Held& held, const std::string& name) {
    const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    if (!file.valid() || fstat(file.get(), &info) != 0) return;
    if (!WasAFile(name, info, file.get(), shared_memory_)) return;
    // One that has another name is opened by that, if its user may: see CheckHeldFiles().
    const UniqueFd root(open(absl::StrCat("/proc/", held.pid, "/root").c_str(), O_PATH | O_CLOEXEC));
    if (LivingName(root.get(), name + kDeleted, info) != name + kDeleted) return;
    const FilesAsUser as_user(user_);
    if (as_user.ok() && info.st_nlink == 0 && IsUsers(info) && MayMakeFileIn(name.substr(0, name.rfind('/'))))
      return;
    Refuse(held, absl::StrCat("has ", name, " as its ", held.how,
                              ", which was removed, and which its user could not put there again"));
  }
  bool IsUsers(const struct stat& info) const {
    const bool kind =
        S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISLNK(info.st_mode);
    return kind && info.st_uid == user_.uid &&
           std::find(user_.groups.begin(), user_.groups.end(), info.st_gid) != user_.groups.end();
  }

  // CRIU opens both its ends.
  void CheckPipe(const Held& held, const std::string& name) {
    struct stat info {};
    if (stat(held.link.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode) || info.st_uid == user_.uid) return;
    const FilesAsUser as_user(user_);
    if (!as_user.ok() || faccessat(AT_FDCWD, name.c_str(), R_OK | W_OK, AT_EACCESS) != 0)
      Refuse(held, absl::StrCat("has the pipe ", name, " as its ", held.how,
                                ", which its user may not both read and write"));
  }

  const Account& user_;
  const dev_t shared_memory_ = DeviceOfSharedMemory();
  absl::Status problem_;
};

}  // namespace

absl::Status CheckRecreatedNames(pid_t init, const Account& user) {
  if (user.uid == 0) return absl::OkStatus();
  RecreatedNamesCheck checker(user);
  ForEachHeld(init, [&](const Held& held) { checker.Check(held); });
  return checker.problem();
}

}  // namespace siding
