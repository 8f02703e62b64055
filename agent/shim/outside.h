// Errors of what is around a task: a file that it had open, its working folder, its program. They say nothing
// of its image, and nothing of the node.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace siding {

inline constexpr char kOutsideProblem[] = "siding/outside";

inline absl::Status OutsideProblem(absl::Status status) {
  if (!status.ok()) status.SetPayload(kOutsideProblem, absl::Cord());
  return status;
}
inline bool IsOutsideProblem(const absl::Status& status) {
  return status.GetPayload(kOutsideProblem).has_value();
}

}  // namespace siding
