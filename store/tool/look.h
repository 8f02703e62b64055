// `siding-store list` and `verify`: they change nothing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/tool/terminal.h"
#include "store/tool/tool.h"

namespace siding::store {

struct LookOptions {
  std::string folder;                    // of the tier
  std::vector<std::string> checkpoints;  // none: all
  bool json = false;
  bool progress = false;  // of Verify()
};

// What the manifests say, and how much the tier holds for it. kNotFound if there is no tier, or no image of a
// checkpoint that was named.
absl::StatusOr<ToolExit> List(const LookOptions& options, const Terminal& terminal);
// The same, with each byte read and compared, and without the sums.
absl::StatusOr<ToolExit> Verify(const LookOptions& options, const Terminal& terminal);

}  // namespace siding::store
