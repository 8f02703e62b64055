#include "agent/launch/held_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/launch/processes.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// A file that a process has, and what it can do with it: R_OK, W_OK, X_OK, or F_OK for nothing but its name.
struct Held {
  pid_t pid = 0;
  std::string how;   // "fd 3", "mapping 7f..", "cwd"
  std::string link;  // in /proc: leads to the file itself, whatever its name now means
  int access = F_OK;
};

using Visit = std::function<void(const Held&)>;

void ForEachEntry(const std::string& folder, const std::function<void(const std::string&)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] != '.') visit(entry->d_name);
  }
}

int AccessOf(const std::string& process, const std::string& fd) {
  const auto info = ReadFile(process + "/fdinfo/" + fd);
  long long position = 0;
  int flags = 0;
  if (!info.ok() || std::sscanf(info->c_str(), "pos: %lld flags: %o", &position, &flags) != 2)
    return R_OK | W_OK;
  if ((flags & O_PATH) != 0) return F_OK;
  switch (flags & O_ACCMODE) {
    case O_RDONLY:
      return R_OK;
    case O_WRONLY:
      return W_OK;
    default:
      return R_OK | W_OK;
  }
}

void VisitDescriptors(pid_t pid, const std::string& process, const Visit& visit) {
  ForEachEntry(process + "/fd", [&](const std::string& fd) {
    visit({pid, "descriptor " + fd, process + "/fd/" + fd, AccessOf(process, fd)});
  });
}

void VisitMappings(pid_t pid, const std::string& process, const Visit& visit) {
  const auto maps = ReadFile(process + "/maps");
  if (!maps.ok()) return;
  for (const char* line = maps->c_str(); line != nullptr && *line != '\0';) {
    unsigned long begin = 0, end = 0, inode = 0;
    char access[8];
    if (std::sscanf(line, "%lx-%lx %7s %*s %*s %lu", &begin, &end, access, &inode) == 4 && inode != 0) {
      const bool shared_writable = access[1] == 'w' && access[3] == 's';
      const std::string range = absl::StrCat(absl::Hex(begin), "-", absl::Hex(end));
      visit({pid, "mapping " + range, process + "/map_files/" + range, shared_writable ? R_OK | W_OK : R_OK});
    }
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
}

void VisitAll(pid_t pid, const Visit& visit) {
  const std::string process = absl::StrCat("/proc/", pid);
  VisitDescriptors(pid, process, visit);
  VisitMappings(pid, process, visit);
  visit({pid, "program", process + "/exe", X_OK});
  visit({pid, "working folder", process + "/cwd", X_OK});
  visit({pid, "root", process + "/root", X_OK});
}

// A file by its name; pipes and sockets without one, and what is deleted, nobody can be led to.
bool HasName(const struct stat& info, const std::string& target) {
  return !target.empty() && target[0] == '/' && info.st_nlink > 0 && !S_ISSOCK(info.st_mode);
}

std::string TargetOf(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  return size <= 0 ? "" : std::string(target, static_cast<size_t>(size));
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

class Checker {
 public:
  explicit Checker(const Account& user) : user_(user) {}

  void Check(const Held& held) {
    if (!problem_.ok()) return;
    const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
    const UniqueFd root(open(absl::StrCat("/proc/", held.pid, "/root").c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    const std::string target = TargetOf(held.link);
    if (!file.valid() || !root.valid() || fstat(file.get(), &info) != 0) {
      problem_ = ErrnoError(errno, held.link);
      return;
    }
    if (!HasName(info, target)) return;
    int& seen = seen_[{info.st_dev, info.st_ino, target}];
    const int wanted = held.access | kReached;
    if ((seen & wanted) == wanted) return;
    const FilesAsUser as_user(user_);
    if (!as_user.ok() || !Reaches(root.get(), target, info) ||
        !MayOpen(file.get(), info, held.access, user_.uid)) {
      problem_ = absl::PermissionDeniedError(
          absl::StrCat("process ", held.pid, " has ", target, " as its ", held.how,
                       ", which its user may not open; has something in its path been replaced?"));
      return;
    }
    seen |= wanted;
  }
  const absl::Status& problem() const { return problem_; }

 private:
  static constexpr int kReached = 1 << 8;
  const Account& user_;
  std::map<std::tuple<dev_t, ino_t, std::string>, int> seen_;
  absl::Status problem_;
};

}  // namespace

absl::Status CheckHeldFiles(pid_t init, const Account& user) {
  if (user.uid == 0) return absl::OkStatus();
  Checker checker(user);
  for (pid_t pid : ProcessTree(init)) VisitAll(pid, [&](const Held& held) { checker.Check(held); });
  return checker.problem();
}

}  // namespace siding
