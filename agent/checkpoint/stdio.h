// A task whose output goes through pipes to a process outside (a step of srun's) finds other pipes after its
// restore: those that it had are known by the numbers that they had, and the new ones take their places.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "absl/status/statusor.h"

namespace siding {

// For the descriptors 0, 1 and 2: "pipe:[4711]", CRIU's name for it, or empty if it is no pipe.
using StdioPipes = std::array<std::string, 3>;

// Those of the task's init, which keeps what it was started with. Empty names if it is gone.
StdioPipes RecordPipes(pid_t init);

// One word each, "-" for none; the form kept in the image's metadata. Empty if there is no pipe at all.
std::string PipesToText(const StdioPipes& pipes);
// Of an empty text: no pipes. kDataLoss if it is no such text.
absl::StatusOr<StdioPipes> PipesFromText(const std::string& text);

}  // namespace siding
