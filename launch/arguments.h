// What siding-mpirun is called with. Its own options come first; all from the first other word on is
// mpirun's.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding::launch {

enum class Mode { kLaunch, kRelay, kHelp, kVersion };

struct Arguments {
  Mode mode = Mode::kLaunch;
  std::string mpirun;                            // --mpirun; empty: unsaid
  Duration patience = std::chrono::minutes(10);  // --wait: of the ranks for each other, at the start
  std::vector<std::string> rest;                 // mpirun's; of a relay: a rank's address, and a command
};

// Without argv[0]. kInvalidArgument says what was expected.
absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& words);

extern const char kHelp[];

}  // namespace siding::launch
