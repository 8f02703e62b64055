// One way to set up logging (spdlog) in every service: to stderr, one line a record, ISO times.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"

namespace siding {

// level: trace, debug, info, warning, error. Anything else is an error that lists these.
// Control characters are written as in C: nothing that is logged ends its line or speaks to a terminal.
absl::Status SetUpLogging(const std::string& program, const std::string& level);

// The text as it is logged.
std::string OneLogLine(const std::string& text);

}  // namespace siding
