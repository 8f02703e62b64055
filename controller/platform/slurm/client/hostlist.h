// Slurm's way to write many node names: "node[1-3,07-10],login". Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace siding::slurm {

// The names in the order they are written; "" and "(null)" are none. Several brackets in one name count like
// an odometer, the last one fastest. kInvalidArgument names the part that is wrong, a list of
// more than a hundred thousand, or a name of more than 255 characters.
absl::StatusOr<std::vector<NodeId>> ExpandHostlist(const std::string& text);

// The names with commas between them: every Slurm command takes that.
std::string JoinHostlist(const std::vector<NodeId>& nodes);

}  // namespace siding::slurm
