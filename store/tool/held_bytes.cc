#include "store/tool/held_bytes.h"

#include <sys/stat.h>

#include "common/directory.h"

namespace siding::store {

Bytes HeldBytes::Add(const std::string& folder) {
  Bytes more;
  const auto names = ListFolder(folder);
  if (!names.ok()) return more;
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) more += Add(path);
    if (S_ISREG(info.st_mode) && counted_.emplace(info.st_dev, info.st_ino).second)
      more += Bytes{info.st_size};
  }
  return more;
}

}  // namespace siding::store
