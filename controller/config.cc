#include "controller/config.h"

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/yaml/fields.h"

namespace siding {

namespace {

constexpr int kMost = 1'000'000;

Fields LimitFields(ServiceLimits& limits) {
  return {{"connections", Whole(limits.connections, 1, kMost)},
          {"connections_per_user", Whole(limits.connections_per_user, 1, kMost)},
          {"waiting_calls", Whole(limits.waiting_calls, 1, kMost)},
          {"waiting_calls_per_user", Whole(limits.waiting_calls_per_user, 1, kMost)},
          {"threads", Whole(limits.threads, 2, kMost)}};
}

absl::StatusOr<SlurmMode> ParseSlurmMode(const std::string& name) {
  if (name == "steering") return SlurmMode::kSteering;
  if (name == "assisting") return SlurmMode::kAssisting;
  return absl::InvalidArgumentError("expected steering or assisting");
}

template <class T>
Setter ParsedInto(T& out, absl::StatusOr<T> (*parse)(const std::string&)) {
  return Parsed([&out, parse](const std::string& text) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(out, parse(text));
    return absl::OkStatus();
  });
}

Fields SlurmFields(SlurmConfig& slurm) {
  return {{"mode", ParsedInto(slurm.mode, ParseSlurmMode)},
          {"backend", ParsedInto(slurm.backend, slurm::ParseBackend)},
          {"interval", Span(slurm.interval)},
          {"suspend", Flag(slurm.suspend)},
          {"ask_socket", Text(slurm.ask_socket)}};
}

// What no field says by itself; "" if all is well.
std::string ProblemOf(const ControllerConfig& config) {
  const ServiceLimits& limits = config.limits;
  if (config.heartbeat < std::chrono::milliseconds(100)) return "heartbeat: expected 100ms or more";
  if (limits.waiting_calls >= limits.threads) {
    return absl::StrCat("limits.waiting_calls: ", limits.waiting_calls,
                        "; expected fewer than limits.threads (", limits.threads, "), for each holds one");
  }
  return "";
}

}  // namespace

absl::StatusOr<ControllerConfig> ParseControllerConfig(const std::string& text, const std::string& name) {
  ControllerConfig config;
  FieldReader reader(name);
  SIDING_RETURN_IF_ERROR(reader.Read(text, {{"socket", Text(config.socket)},
                                            {"state_dir", Text(config.state_dir)},
                                            {"policy", Text(config.policy)},
                                            {"heartbeat", Span(config.heartbeat)},
                                            {"metrics_port", Whole(config.metrics_port, 0, 65535)},
                                            {"log_level", Text(config.log_level)},
                                            {"slurm", reader.Map(SlurmFields(config.slurm))},
                                            {"limits", reader.Map(LimitFields(config.limits))}}));
  if (const std::string problem = ProblemOf(config); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", problem));
  }
  return config;
}

absl::StatusOr<ControllerConfig> LoadControllerConfig(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParseControllerConfig(text, path);
}

}  // namespace siding
