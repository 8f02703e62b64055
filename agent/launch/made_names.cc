#include "agent/launch/made_names.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/launch/held.h"
#include "agent/launch/processes.h"
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

// Not such memory, nor what other kernel objects pretend: nobody but root removes files from the root folder.
bool WasAFile(const std::string& target, const struct stat& info, int fd, dev_t shared_memory) {
  if (info.st_dev == shared_memory || absl::StartsWith(target, "/memfd:") || target.rfind('/') == 0)
    return false;
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC;
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

class Finder {
 public:
  Finder(pid_t init, const Account& user) : user_(user) {
    if (const auto table = ReadFile(absl::StrCat("/proc/", init, "/net/unix")); table.ok())
      named_ = NamedSockets(*table);
  }

  void Look(const Held& held) {
    if (!problem_.ok()) return;
    const std::string target = TargetOf(held.link);
    if (absl::StartsWith(target, kSocket)) {
      const auto inode = absl::StripSuffix(absl::StripPrefix(target, kSocket), "]");
      if (named_.contains(std::string(inode))) Found(held, "has a socket with a name");
    } else if (absl::EndsWith(target, kDeleted)) {
      LookAtDeleted(held, std::string(absl::StripSuffix(target, kDeleted)));
    }
  }
  absl::StatusOr<std::string> Result() const {
    if (!problem_.ok()) return problem_;
    return found_;
  }

 private:
  std::string Who(const Held& held) const {
    return absl::StrCat("process ", held.pid, " (", ProgramOf(held.pid), ")");
  }
  void Found(const Held& held, const std::string& what) {
    if (found_.empty()) found_ = absl::StrCat(Who(held), " ", what);
  }

  void LookAtDeleted(const Held& held, const std::string& name) {
    const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    if (!file.valid() || fstat(file.get(), &info) != 0 || info.st_nlink > 0) return;
    if (!WasAFile(name, info, file.get(), shared_memory_)) return;
    Found(held, absl::StrCat("has ", name, " as its ", held.how, ", which was removed"));
    const FilesAsUser as_user(user_);
    if (as_user.ok() && IsUsers(info) && MayMakeFileIn(name.substr(0, name.rfind('/')))) return;
    problem_ = absl::PermissionDeniedError(absl::StrCat(Who(held), " has ", name, " as its ", held.how,
                                                        ", which was removed, and which its user could not "
                                                        "put there again"));
  }
  bool IsUsers(const struct stat& info) const {
    const bool kind =
        S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISLNK(info.st_mode);
    return kind && info.st_uid == user_.uid &&
           std::find(user_.groups.begin(), user_.groups.end(), info.st_gid) != user_.groups.end();
  }

  const Account& user_;
  const dev_t shared_memory_ = DeviceOfSharedMemory();
  std::set<std::string> named_;
  std::string found_;
  absl::Status problem_;
};

}  // namespace

// Address, references, protocol, flags, type, state, inode; then, after one more space, what the socket is
// bound to. A name may hold any byte, line feeds too: that can add lines that mean nothing, but hide none.
std::set<std::string> NamedSockets(const std::string& table) {
  std::set<std::string> inodes;
  for (absl::string_view line : absl::StrSplit(table, '\n')) {
    unsigned long inode = 0;
    char space = 0;
    const std::string text(line);
    if (std::sscanf(text.c_str(), "%*s %*s %*s %*s %*s %*s %lu%c", &inode, &space) == 2 && space == ' ')
      inodes.insert(std::to_string(inode));
  }
  return inodes;
}

absl::StatusOr<std::string> NamesMadeAnew(pid_t init, const Account& user) {
  if (user.uid == 0) return std::string();
  Finder finder(init, user);
  ForEachHeld(init, [&](const Held& held) { finder.Look(held); });
  return finder.Result();
}

}  // namespace siding
