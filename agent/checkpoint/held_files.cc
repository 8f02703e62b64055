#include "agent/checkpoint/held_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// A file by its name; pipes and sockets without one, and deleted files, cannot be reached by a link.
bool HasName(const struct stat& info, const std::string& target) {
  return !target.empty() && target[0] == '/' && info.st_nlink > 0 && !S_ISSOCK(info.st_mode);
}

unsigned long KindOfFileSystem(int fd) {
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 ? static_cast<unsigned long>(fs.f_type) : 0;
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// With the user's rights: whether this name leads to this file, without any link on the way.
bool Reaches(int root, const std::string& target, const struct stat& file) {
  const std::string name = target == "/" ? "." : target.substr(1);
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const UniqueFd fd(static_cast<int>(syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
  struct stat info {};
  return fd.valid() && fstat(fd.get(), &info) == 0 && IsSame(info, file);
}

bool MayOpen(int fd, const struct stat& file, int access, uid_t uid) {
  // Owners can give themselves any right.
  if (file.st_uid == uid || access == F_OK) return true;
  constexpr int kEffective = 0x200, kEmptyPath = 0x1000;  // AT_EACCESS, AT_EMPTY_PATH
  return syscall(SYS_faccessat2, fd, "", access, kEffective | kEmptyPath) == 0;
}

class HeldFilesCheck {
 public:
  explicit HeldFilesCheck(const Account& user) : user_(user) {}

  void Check(const Held& held) {
    if (!problem_.ok()) return;
    const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
    // A running process has closed it meanwhile, or has ended.
    if (!file.valid() && (errno == ENOENT || errno == ESRCH)) return;
    const UniqueFd root(open(absl::StrCat("/proc/", held.pid, "/root").c_str(), O_PATH | O_CLOEXEC));
    if (!root.valid() && (errno == ENOENT || errno == ESRCH)) return;
    struct stat info {};
    if (!file.valid() || !root.valid() || fstat(file.get(), &info) != 0) {
      problem_ = ErrnoError(errno, held.link);
      return;
    }
    // By our descriptor: that of the process may lead to another file by now.
    const std::string link = absl::StrCat("/proc/self/fd/", file.get());
    const std::string target = LivingName(root.get(), TargetOf(link), info);
    if (!HasName(info, target)) return;
    const unsigned long kind = KindOfFileSystem(file.get());
    if (kind == kAioRingMagic) return;  // made again by io_setup(), and by no name
    if (kind == kMessageQueueMagic)
      return Refuse(held,
                    absl::StrCat("has the message queue ", target, " open (mq_open), which cannot be saved"));
    int& seen = seen_[{info.st_dev, info.st_ino, target}];
    const int wanted = held.access | kReached;
    if ((seen & wanted) == wanted) return;
    const FilesAsUser as_user(user_);
    if (!as_user.ok() || !Reaches(root.get(), target, info) ||
        !MayOpen(file.get(), info, held.access, user_.uid)) {
      const bool removed = absl::EndsWith(target, " (deleted)");
      return Refuse(held,
                    absl::StrCat("has ", absl::StripSuffix(target, " (deleted)"), " as its ", held.how,
                                 removed ? ", which was removed or replaced there (by an upgrade?), and has "
                                           "another name (a hard link) elsewhere"
                                         : ", which its user may not open; has something in its path been "
                                           "replaced?"));
    }
    seen |= wanted;
  }
  const absl::Status& problem() const { return problem_; }

 private:
  void Refuse(const Held& held, const std::string& what) {
    problem_ = absl::PermissionDeniedError(absl::StrCat(NameOf(held.pid), " ", what));
  }

  static constexpr int kReached = 1 << 8;
  const Account& user_;
  std::map<std::tuple<dev_t, ino_t, std::string>, int> seen_;
  absl::Status problem_;
};

}  // namespace

absl::Status CheckHeldFiles(pid_t init, const Account& user) {
  if (user.uid == 0) return absl::OkStatus();
  HeldFilesCheck checker(user);
  ForEachHeld(init, [&](const Held& held) { checker.Check(held); });
  return checker.problem();
}

}  // namespace siding
