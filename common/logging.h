// One way to set up logging (spdlog) in every service: to stderr, one line a record, ISO times.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"
#include "spdlog/spdlog.h"

namespace siding {

enum class LogFormat : uint8_t { kText, kJson };
// "text", "json"; anything else is an error that lists these.
absl::StatusOr<LogFormat> ParseLogFormat(const std::string& name);

// level: trace, debug, info, warning, error. Anything else is an error that lists these.
// Control characters are written as in C: nothing that is logged ends its line or speaks to a terminal.
absl::Status SetUpLogging(const std::string& program, const std::string& level,
                          LogFormat format = LogFormat::kText);

// While the program runs. SIGUSR1: `debug` from now on; SIGUSR2: the level of SetUpLogging() again. False: it
// is another signal, and nothing has changed.
bool TurnLogLevel(int signal);

// A record as an object of JSON: time, level, program, text, and `job` if the text begins with "job N".
// Without a line's end.
std::string JsonLogLine(Time time, const std::string& level, const std::string& program,
                        const std::string& text);

// The text as it is logged.
std::string OneLogLine(const std::string& text);

}  // namespace siding
