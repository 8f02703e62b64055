// Whether what came over the wire can be computed with: numbers within what the greatest cluster could mean,
// so that sums and differences of a few thousand of them stay in range, and no NaN among them. Thread-safe
// (pure functions).
#pragma once

#include "absl/status/status.h"
#include "siding/v1/agent.pb.h"
#include "siding/v1/api.pb.h"
#include "siding/v1/types.pb.h"

namespace siding {

// All of them: kInvalidArgument naming the field and what was expected.
absl::Status CheckNumbers(const v1::JobSpec& spec);
absl::Status CheckNumbers(const v1::UpdateRequest& request);
absl::Status CheckNumbers(const v1::Hello& hello);
absl::Status CheckNumbers(const v1::FromAgent& message);

}  // namespace siding
