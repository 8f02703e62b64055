#include "spank/step_output.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

namespace siding::spank {
namespace {

bool HoldsBytes(int fd) {
  struct stat file;
  int bytes = 0;
  return fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode) && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

bool IsUnread(int output, int error_output) { return HoldsBytes(output) || HoldsBytes(error_output); }

}  // namespace siding::spank
