// A folder of root's, as /tmp is one: every user may create files in it, and remove their own.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace siding {

inline constexpr uid_t kSomebody = 65534;
inline constexpr uid_t kAnother = 1;

class FolderForAll {
 public:
  FolderForAll() {
    char name[] = "/tmp/siding-test-XXXXXX";
    path_ = mkdtemp(name);
    chmod(name, 01777);
  }
  ~FolderForAll() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace siding
