#include "controller/config.h"

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/yaml/fields.h"

namespace siding {

absl::StatusOr<ControllerConfig> ParseControllerConfig(const std::string& text, const std::string& name) {
  ControllerConfig config;
  SIDING_RETURN_IF_ERROR(FieldReader(name).Read(text, {{"socket", Text(config.socket)},
                                                       {"state_dir", Text(config.state_dir)},
                                                       {"policy", Text(config.policy)},
                                                       {"heartbeat", Span(config.heartbeat)},
                                                       {"metrics_port", Whole(config.metrics_port, 0, 65535)},
                                                       {"log_level", Text(config.log_level)}}));
  if (config.heartbeat < std::chrono::milliseconds(100)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": heartbeat: expected 100ms or more"));
  }
  return config;
}

absl::StatusOr<ControllerConfig> LoadControllerConfig(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParseControllerConfig(text, path);
}

}  // namespace siding
