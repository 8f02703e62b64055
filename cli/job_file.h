// Job files: YAML with the fields of `sidingctl submit`. Errors name file, line, field and what was expected.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"
#include "siding/v1/types.pb.h"

namespace siding::cli {

// Reads `text` over `spec`. `name` stands for the file in errors; `now` is what "+60s" counts from. What its
// author should know although the file is good is added to `notes`, a line each, if it is given.
absl::Status ParseJobFile(const std::string& text, const std::string& name, Time now, v1::JobSpec& spec,
                          std::vector<std::string>* notes = nullptr);

// The values of single fields, as flags and job files spell them. Errors say what was expected.
absl::StatusOr<v1::Method> ParseMethodName(const std::string& name);
// "drainable" or "as-is".
absl::StatusOr<v1::GpuCollectives> ParseCollectives(const std::string& name);
std::string CollectivesName(v1::GpuCollectives collectives);
// "USR1", "SIGUSR1" or "10".
absl::StatusOr<int> ParseSignal(const std::string& name);
// "USR1" or "USR1@30s".
absl::Status ParseAppSignal(const std::string& text, v1::AppMethod& app);
absl::StatusOr<v1::Tier> ParseTierName(const std::string& name);
// "30m", or "auto".
// A time, or "earliest"; makes it on-demand.
absl::Status ParseStartBy(const std::string& text, Time now, v1::JobSpec& spec);
absl::Status ParseCheckpointInterval(const std::string& text, v1::JobSpec& spec);
// "exact" or "append".
absl::Status ParseFiles(const std::string& text, v1::JobSpec& spec);
absl::Status ParseConnections(const std::string& text, v1::JobSpec& spec);
// "requeue" or "park".
absl::Status ParseOnNodeFailure(const std::string& text, v1::JobSpec& spec);
// Splits at blanks, with '…' and "…" kept together, as a shell would.
absl::StatusOr<std::vector<std::string>> SplitCommand(const std::string& text);

}  // namespace siding::cli
