// Quantities as Kubernetes writes them: "100m", "1.5Gi", "2e3". Pure, thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding::kubernetes {

// In units, or in thousandths of one, rounded up; the largest int64 where it is more than that.
// kInvalidArgument: no quantity, a negative one, or one of more than 20 digits.
absl::StatusOr<int64_t> ParseQuantity(absl::string_view text);
absl::StatusOr<int64_t> ParseQuantityInThousandths(absl::string_view text);

}  // namespace siding::kubernetes
