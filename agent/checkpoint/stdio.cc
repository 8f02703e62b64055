#include "agent/checkpoint/stdio.h"

#include <unistd.h>

#include <sstream>

#include "common/status.h"

namespace siding {
namespace {

bool IsPipe(const std::string& name) { return name.rfind("pipe:[", 0) == 0 && name.back() == ']'; }

}  // namespace

StdioPipes RecordPipes(pid_t init) {
  StdioPipes pipes;
  for (int fd = 0; fd < 3; ++fd) {
    char name[64];
    const std::string link = absl::StrCat("/proc/", init, "/fd/", fd);
    const ssize_t size = readlink(link.c_str(), name, sizeof name);
    if (size > 0 && IsPipe(std::string(name, size))) pipes[fd].assign(name, size);
  }
  return pipes;
}

std::string PipesToText(const StdioPipes& pipes) {
  if (pipes == StdioPipes{}) return "";
  const auto word = [&](int fd) { return pipes[fd].empty() ? std::string("-") : pipes[fd]; };
  return word(0) + " " + word(1) + " " + word(2);
}

absl::StatusOr<StdioPipes> PipesFromText(const std::string& text) {
  StdioPipes pipes;
  if (text.empty()) return pipes;
  std::istringstream words(text);
  std::string excess;
  for (std::string& pipe : pipes) {
    if (!(words >> pipe) || (pipe != "-" && !IsPipe(pipe)))
      return absl::DataLossError("the image's list of pipes is not valid: '" + text + "'");
    if (pipe == "-") pipe.clear();
  }
  if (words >> excess) return absl::DataLossError("the image's list of pipes is too long: '" + text + "'");
  return pipes;
}

}  // namespace siding
