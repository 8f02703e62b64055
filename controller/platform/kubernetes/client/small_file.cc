#include "controller/platform/kubernetes/client/small_file.h"

#include <errno.h>
#include <fcntl.h>

#include "common/files.h"
#include "common/status.h"

namespace siding::kubernetes {
namespace {

constexpr size_t kLargest = 1 << 20;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "open " + path);
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadAll(fd, path, kLargest + 1));
  if (text.size() > kLargest) {
    return absl::InvalidArgumentError(path + ": expected a file of at most 1 MiB");
  }
  return text;
}

}  // namespace siding::kubernetes
