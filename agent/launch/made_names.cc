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
#include <cstdlib>
#include <cstring>

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

// Sent through the socket and not received. They are opened again like others, and then nobody has them to be
// looked at.
bool HasDescriptorsUnderWay(const Held& held) {
  std::string info = held.link;
  info.replace(info.rfind("/fd/"), 4, "/fdinfo/");
  const auto text = ReadFile(info);
  const size_t at = text.ok() ? text->find("scm_fds:") : std::string::npos;
  return at != std::string::npos && std::atoi(text->c_str() + at + std::strlen("scm_fds:")) > 0;
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
      LookAtSocket(held, std::string(absl::StripSuffix(absl::StripPrefix(target, kSocket), "]")));
    } else if (absl::EndsWith(target, kDeleted)) {
      LookAtDeleted(held, std::string(absl::StripSuffix(target, kDeleted)));
    } else if (target == "anon_inode:inotify") {
      Found(held, "watches files");
    } else if (struct stat info{};
               stat(held.link.c_str(), &info) == 0 && S_ISFIFO(info.st_mode) && target[0] == '/') {
      Found(held, absl::StrCat("has the pipe ", target));
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

  void Refuse(const Held& held, const std::string& what) {
    problem_ = absl::PermissionDeniedError(
        absl::StrCat(Who(held), " ", what, " which its user could not put there again"));
  }

  void LookAtSocket(const Held& held, const std::string& inode) {
    if (HasDescriptorsUnderWay(held)) Found(held, "has a socket with descriptors under way");
    const auto named = named_.find(inode);
    if (named == named_.end()) return;
    Found(held, "has a socket with a name");
    const std::string& path = named->second;
    if (path.empty()) return;
    const FilesAsUser as_user(user_);
    if (!as_user.ok() || !MayMakeFileIn(path.substr(0, path.rfind('/'))))
      Refuse(held, absl::StrCat("listens at ", path, ","));
  }
  void LookAtDeleted(const Held& held, const std::string& name) {
    const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    if (!file.valid() || fstat(file.get(), &info) != 0 || info.st_nlink > 0) return;
    if (!WasAFile(name, info, file.get(), shared_memory_)) return;
    Found(held, absl::StrCat("has ", name, " as its ", held.how, ", which was removed"));
    const FilesAsUser as_user(user_);
    if (as_user.ok() && IsUsers(info) && MayMakeFileIn(name.substr(0, name.rfind('/')))) return;
    Refuse(held, absl::StrCat("has ", name, " as its ", held.how, ", which was removed, and"));
  }
  bool IsUsers(const struct stat& info) const {
    const bool kind =
        S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISLNK(info.st_mode);
    return kind && info.st_uid == user_.uid &&
           std::find(user_.groups.begin(), user_.groups.end(), info.st_gid) != user_.groups.end();
  }

  const Account& user_;
  const dev_t shared_memory_ = DeviceOfSharedMemory();
  std::map<std::string, std::string> named_;
  std::string found_;
  absl::Status problem_;
};

}  // namespace

// Address, references, protocol, flags, type, state, inode; then, after one more space, what the socket is
// bound to. A name may hold any byte, line feeds too: that can add lines that mean nothing, but hide none.
std::map<std::string, std::string> NamedSockets(const std::string& table) {
  constexpr unsigned kListens = 1 << 16;
  std::map<std::string, std::string> sockets;
  for (absl::string_view line : absl::StrSplit(table, '\n')) {
    unsigned flags = 0;
    unsigned long inode = 0;
    int name = 0;
    const std::string text(line);
    if (std::sscanf(text.c_str(), "%*s %*s %*s %x %*s %*s %lu%n", &flags, &inode, &name) != 2) continue;
    if (text[name] != ' ') continue;
    const bool listens_at_path = (flags & kListens) != 0 && text[name + 1] == '/';
    sockets[std::to_string(inode)] = listens_at_path ? text.substr(name + 1) : "";
  }
  return sockets;
}

absl::StatusOr<std::string> NamesMadeAnew(pid_t init, const Account& user) {
  if (user.uid == 0) return std::string();
  Finder finder(init, user);
  ForEachHeld(init, [&](const Held& held) { finder.Look(held); });
  return finder.Result();
}

absl::Status MayBeMadeAnew(const std::string& names, bool acts_on_files_as_user) {
  if (names.empty() || acts_on_files_as_user) return absl::OkStatus();
  return absl::FailedPreconditionError(names +
                                       ": this node's criu would make it again as root, wherever its name "
                                       "leads by then; get-criu builds one that "
                                       "acts as the user");
}

}  // namespace siding
