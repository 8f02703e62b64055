// Which images a verb of siding-store is about.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace siding::store {

// Of `all`, those of the checkpoints that are named; none: all. Each once, sorted. kNotFound names a
// checkpoint of which there is none `where`, such as "in /shared".
absl::StatusOr<std::vector<ImageKey>> Choose(const std::vector<ImageKey>& all,
                                             const std::vector<std::string>& checkpoints,
                                             const std::string& where);

}  // namespace siding::store
