#include "controller/platform/kubernetes/objects/host_paths.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siding::kubernetes {

absl::StatusOr<std::string> PlainHostPath(const std::string& path) {
  if (!absl::StartsWith(path, "/"))
    return absl::InvalidArgumentError("expected a path that begins with a slash");
  std::string plain;
  for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (name == "..") return absl::InvalidArgumentError("expected a path without ..");
    if (name != ".") absl::StrAppend(&plain, "/", name);
  }
  if (plain.empty()) return absl::InvalidArgumentError("expected a folder below /");
  return plain;
}

bool IsBelow(const std::string& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return path == folder || absl::StartsWith(path, folder + "/");
  });
}

}  // namespace siding::kubernetes
