#include "controller/config.h"

#include <yaml-cpp/yaml.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// A field: how it takes its value. Returns what was expected if the value will not do, else "".
using Setter = std::function<std::string(const YAML::Node&)>;
using Fields = std::map<std::string, Setter>;

Setter Text(std::string& out) {
  return [&out](const YAML::Node& node) -> std::string {
    if (!node.IsScalar()) return "text";
    out = node.as<std::string>();
    return "";
  };
}

Setter Whole(int& out, int least, int most) {
  return [&out, least, most](const YAML::Node& node) -> std::string {
    const std::string expected = absl::StrCat("a whole number from ", least, " to ", most);
    int value = 0;
    if (!node.IsScalar() || !YAML::convert<int>::decode(node, value) || value < least || value > most)
      return expected;
    out = value;
    return "";
  };
}

Setter Span(Duration& out) {
  return [&out](const YAML::Node& node) -> std::string {
    if (!node.IsScalar()) return "a duration such as 90s";
    const auto value = ParseDuration(node.as<std::string>());
    if (!value.ok()) return "a duration such as 90s, 1m30s or 250ms";
    out = *value;
    return "";
  };
}

Setter Names(std::set<std::string>& out) {
  return [&out](const YAML::Node& node) -> std::string {
    if (!node.IsSequence()) return "a list of user names";
    out.clear();
    for (const YAML::Node& name : node) {
      if (!name.IsScalar()) return "a list of user names";
      out.insert(name.as<std::string>());
    }
    return "";
  };
}

std::string At(const std::string& name, const YAML::Mark& mark) {
  return absl::StrCat(name, ":", mark.line + 1);
}

absl::Status Read(const std::string& text, const std::string& name, const Fields& fields) {
  // yaml-cpp throws; nothing of ours does.
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return absl::OkStatus();
    if (!root.IsMap())
      return absl::InvalidArgumentError(absl::StrCat(At(name, root.Mark()), ": expected key: value pairs"));
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      auto field = fields.find(key);
      if (field == fields.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            At(name, entry.first.Mark()), ": unknown key '", key, "'; expected one of ",
            absl::StrJoin(fields, ", ", [](std::string* out, const auto& f) { *out += f.first; })));
      }
      if (const std::string expected = field->second(entry.second); !expected.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(At(name, entry.second.Mark()), ": ", key, ": expected ", expected));
      }
    }
    return absl::OkStatus();
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(At(name, error.mark), ": ", error.msg));
  }
}

}  // namespace

absl::StatusOr<ControllerConfig> ParseControllerConfig(const std::string& text, const std::string& name) {
  ControllerConfig config;
  SIDING_RETURN_IF_ERROR(Read(text, name,
                              {{"socket", Text(config.socket)},
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

absl::StatusOr<Policy> ParsePolicy(const std::string& text, const std::string& name) {
  Policy policy;
  SIDING_RETURN_IF_ERROR(Read(text, name,
                              {{"margin", Span(policy.margin)},
                               {"min_runtime", Span(policy.min_runtime)},
                               {"cooldown", Span(policy.cooldown)},
                               {"max_preemptions", Whole(policy.max_preemptions, 0, 1000000)},
                               {"budget_steps", Whole(policy.budget_steps, 1, 1000000)},
                               {"keep_checkpoints", Whole(policy.keep_checkpoints, 1, 1000)},
                               {"operators", Names(policy.operators)}}));
  return policy;
}

absl::StatusOr<ControllerConfig> LoadControllerConfig(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParseControllerConfig(text, path);
}

absl::StatusOr<Policy> LoadPolicy(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParsePolicy(text, path);
}

}  // namespace siding
