#include "common/directory.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return ErrnoError(errno, absl::StrCat("list ", path));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr && errno != 0) return ErrnoError(errno, absl::StrCat("list ", path));
    if (entry == nullptr) return names;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsNamed(int fd, const std::string& path) {
  struct stat held = {}, named = {};
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace siding
