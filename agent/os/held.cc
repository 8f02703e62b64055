#include "agent/os/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr char kDeleted[] = " (deleted)";

void ForEachEntry(const std::string& folder, const std::function<void(const std::string&)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] != '.') visit(entry->d_name);
  }
}

// nullopt: a running process has closed it meanwhile.
std::optional<int> AccessOf(const std::string& process, const std::string& fd) {
  const auto info = ReadFile(process + "/fdinfo/" + fd);
  if (absl::IsNotFound(info.status())) return std::nullopt;
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

void VisitDescriptors(pid_t pid, const std::string& process, const std::function<void(const Held&)>& visit) {
  ForEachEntry(process + "/fd", [&](const std::string& fd) {
    if (const auto access = AccessOf(process, fd); access)
      visit({pid, "descriptor " + fd, process + "/fd/" + fd, *access});
  });
}

void VisitMappings(pid_t pid, const std::string& process, const std::function<void(const Held&)>& visit) {
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

void VisitAll(pid_t pid, const std::function<void(const Held&)>& visit) {
  const std::string process = absl::StrCat("/proc/", pid);
  VisitDescriptors(pid, process, visit);
  VisitMappings(pid, process, visit);
  visit({pid, "program", process + "/exe", X_OK});
  visit({pid, "working folder", process + "/cwd", R_OK | X_OK});  // CRIU opens it to read
  visit({pid, "root", process + "/root", R_OK | X_OK});
}

}  // namespace

void ForEachHeld(pid_t init, const std::function<void(const Held&)>& visit) {
  for (pid_t pid : ProcessTree(init)) VisitAll(pid, visit);
}

std::string TargetOf(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  return size <= 0 ? "" : std::string(target, static_cast<size_t>(size));
}

std::string LivingName(int root, const std::string& target, const struct stat& file) {
  if (!absl::EndsWith(target, kDeleted) || target[0] != '/' || !S_ISREG(file.st_mode) || file.st_nlink == 0)
    return target;
  const std::string folder = target.substr(0, target.rfind('/') + 1);
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, root, folder.c_str(), &how, sizeof how));
  if (fd < 0) return target;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(fd), closedir);
  if (!dir) {
    close(fd);
    return target;
  }
  std::string name;
  while (const dirent* entry = readdir(dir.get())) {
    struct stat info {};
    if (entry->d_ino != file.st_ino || fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        IdOf(info) != IdOf(file))
      continue;
    const std::string found = folder + entry->d_name;
    if (found == target) return target;  // that is how it is called
    if (name.empty() || found < name) name = found;
  }
  return name.empty() ? target : name;
}

}  // namespace siding
