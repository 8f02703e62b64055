#include "agent/os/tmpdir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/status.h"

namespace siding {
namespace {

namespace fs = std::filesystem;

// Deeper ones are left behind: each level takes a descriptor.
constexpr int kDeepest = 500;
constexpr int kAttempts = 100;  // a user may make and remove it all the time

bool IsUsersFolder(const std::string& path, uid_t uid) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid;
}

// Until it has its name, no other user can reach what is in it.
absl::StatusOr<std::string> MakeDraft(uid_t uid, gid_t gid, const std::string& path) {
  std::string draft = (fs::path(path).parent_path() / "siding-new-XXXXXX").string();
  if (mkdtemp(draft.data()) == nullptr) return ErrnoError(errno, "mkdir " + draft);
  if (lchown(draft.c_str(), uid, gid) == 0) return draft;
  const int error = errno;
  rmdir(draft.c_str());
  return ErrnoError(error, "chown " + draft);
}

// In one step, so that nothing is left of a process that dies here but what has the name that is known.
bool MadeAsUser(const std::string& path, uid_t uid, gid_t gid) {
  const FilesAsUser as_user({.uid = uid, .gid = gid, .groups = {gid}});
  return as_user.ok() && mkdir(path.c_str(), 0700) == 0;
}

}  // namespace

absl::Status MakeUserFolder(const std::string& path, uid_t uid, gid_t gid) {
  if (MadeAsUser(path, uid, gid) || IsUsersFolder(path, uid)) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const std::string draft, MakeDraft(uid, gid, path));
  int error = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Neither follows a link, and each is done as a whole or not at all.
    if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
      return absl::OkStatus();
    if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
      return absl::OkStatus();
    error = errno;
    if (error != ENOENT) break;
  }
  rmdir(draft.c_str());
  return ErrnoError(error, "mkdir " + path);
}

absl::Status MoveUserFolder(const std::string& path, const std::string& aside, uid_t uid, gid_t gid) {
  const FilesAsUser as_user({.uid = uid, .gid = gid, .groups = {gid}});
  if (!as_user.ok()) return absl::InternalError("cannot act as user " + std::to_string(uid));
  if (renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0)
    return absl::OkStatus();
  return ErrnoError(errno, "move " + path);
}

void RemoveUserFolder(const std::string& path, const Account& account) {
  const FilesAsUser as_user(account);
  if (!as_user.ok() || !IsUsersFolder(path, account.uid)) return;
  std::error_code error;
  // Folders that their owner may not write to could not be emptied.
  auto entry = fs::recursive_directory_iterator(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() > kDeepest) return;
    std::error_code refused;
    if (entry->symlink_status(refused).type() == fs::file_type::directory)
      fs::permissions(entry->path(), fs::perms::owner_all, fs::perm_options::add | fs::perm_options::nofollow,
                      refused);
  }
  fs::remove_all(path, error);
}

}  // namespace siding
