#include "agent/on_node/node_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

absl::StatusOr<UniqueFd> OpenNamespace(pid_t process, const char* kind) {
  const std::string path = absl::StrCat("/proc/", process, "/ns/", kind);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, path);
  return fd;
}

absl::Status Enter(const UniqueFd& fd, int kind, const char* what) {
  return setns(fd.get(), kind) == 0 ? absl::OkStatus()
                                    : ErrnoError(errno, absl::StrCat("enter the ", what, " of the node"));
}

}  // namespace

bool MountsAreShared(const std::string& mountinfo) {
  bool shared = false;  // of the last one: it lies over those before
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() < 7 || words[4] != "/") continue;
    shared = false;
    for (size_t i = 6; i < words.size() && words[i] != "-"; ++i)
      shared |= absl::StartsWith(words[i], "shared:");
  }
  return shared;
}

absl::Status EnterMountsOf(pid_t process, const std::string& folder) {
  std::map<std::string, std::string> kept;
  for (const char* name : {"resolv.conf", "hosts", "nsswitch.conf"}) {
    auto text = ReadFile(absl::StrCat("/etc/", name));
    if (text.ok()) kept[name] = *std::move(text);
  }
  SIDING_ASSIGN_OR_RETURN(const UniqueFd mounts, OpenNamespace(process, "mnt"));
  SIDING_ASSIGN_OR_RETURN(const UniqueFd cgroups, OpenNamespace(process, "cgroup"));
  SIDING_RETURN_IF_ERROR(Enter(cgroups, CLONE_NEWCGROUP, "cgroups"));
  SIDING_RETURN_IF_ERROR(Enter(mounts, CLONE_NEWNS, "mounts"));
  SIDING_ASSIGN_OR_RETURN(const std::string there, ReadFile("/proc/self/mountinfo"));
  if (!MountsAreShared(there)) {
    return absl::FailedPreconditionError(
        "the node's mounts are not shared, so those of containers would not be seen here: mount "
        "--make-rshared /");
  }
  if (unshare(CLONE_NEWNS) != 0) return ErrnoError(errno, "unshare mounts");
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return ErrnoError(errno, "mount --make-rslave /");
  SIDING_RETURN_IF_ERROR(MakeDirectories(folder, 0755));
  for (const auto& [name, text] : kept) {
    const std::string file = absl::StrCat(folder, "/agent-", name), over = absl::StrCat("/etc/", name);
    SIDING_RETURN_IF_ERROR(WriteFileAtomically(file, text, 0644));
    if (mount(file.c_str(), over.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return ErrnoError(errno, absl::StrCat("mount ", file, " over ", over));
  }
  return absl::OkStatus();
}

}  // namespace siding
