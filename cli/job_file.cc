#include "cli/job_file.h"

#include <yaml-cpp/yaml.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace siding::cli {
namespace {

// Takes a field's value into the spec, or says what is wrong with it.
using Setter = std::function<absl::Status(const YAML::Node&)>;

absl::Status Expected(const std::string& what) { return absl::InvalidArgumentError("expected " + what); }

Setter Text(const std::function<void(const std::string&)>& set) {
  return [set](const YAML::Node& node) {
    if (!node.IsScalar()) return Expected("text");
    set(node.as<std::string>());
    return absl::OkStatus();
  };
}

Setter Whole(const std::function<void(int)>& set, int least) {
  return [set, least](const YAML::Node& node) {
    int value = 0;
    if (!node.IsScalar() || !absl::SimpleAtoi(node.as<std::string>(), &value) || value < least) {
      return Expected(absl::StrCat("a whole number, ", least, " or more"));
    }
    set(value);
    return absl::OkStatus();
  };
}

Setter Span(const std::function<void(int64_t)>& set) {
  return [set](const YAML::Node& node) {
    if (!node.IsScalar()) return Expected("a duration such as 90s");
    const auto value = ParseDuration(node.as<std::string>());
    if (value.ok()) set(value->count());
    return value.status();
  };
}

absl::StatusOr<std::vector<std::string>> Words(const YAML::Node& node) {
  if (node.IsScalar()) return SplitCommand(node.as<std::string>());
  if (!node.IsSequence()) return Expected("a list of words, or one line");
  std::vector<std::string> words;
  for (const YAML::Node& word : node) {
    if (!word.IsScalar()) return Expected("a list of words");
    words.push_back(word.as<std::string>());
  }
  return words;
}

absl::Status SetMethods(const YAML::Node& node, v1::JobSpec& spec) {
  spec.clear_methods();
  if (node.IsScalar() && node.as<std::string>() == "false") return absl::OkStatus();
  if (!node.IsSequence()) return Expected("a list of suspend, checkpoint, app and kill, or false");
  for (const YAML::Node& name : node) {
    SIDING_ASSIGN_OR_RETURN(v1::Method method,
                            ParseMethodName(name.IsScalar() ? name.as<std::string>() : ""));
    spec.add_methods(method);
  }
  return absl::OkStatus();
}

absl::Status SetEnvironment(const YAML::Node& node, v1::JobSpec& spec) {
  if (!node.IsMap()) return Expected("NAME: value pairs");
  for (const auto& entry : node) {
    if (!entry.second.IsScalar()) return Expected("NAME: value pairs");
    (*spec.mutable_env())[entry.first.as<std::string>()] = entry.second.as<std::string>();
  }
  return absl::OkStatus();
}

std::map<std::string, Setter> Fields(v1::JobSpec& spec, Time now) {
  return {
      {"name", Text([&spec](const std::string& v) { spec.set_name(v); })},
      {"nodes", Whole([&spec](int v) { spec.set_nodes(v); }, 1)},
      {"slots", Whole([&spec](int v) { spec.mutable_per_node()->set_slots(v); }, 1)},
      {"gpus", Whole([&spec](int v) { spec.mutable_per_node()->set_gpus(v); }, 0)},
      {"priority", Whole([&spec](int v) { spec.set_priority(v); }, -1000000)},
      {"max_preemptions", Whole([&spec](int v) { spec.set_max_preemptions(v); }, 0)},
      {"workdir", Text([&spec](const std::string& v) { spec.set_workdir(v); })},
      {"output", Text([&spec](const std::string& v) { spec.set_output(v); })},
      {"kill_grace", Span([&spec](int64_t v) { spec.set_kill_grace_us(v); })},
      {"checkpoint_interval", Span([&spec](int64_t v) { spec.set_checkpoint_interval_us(v); })},
      {"app_marker", Text([&spec](const std::string& v) { spec.mutable_app()->set_marker(v); })},
      {"preemptible", [&spec](const YAML::Node& node) { return SetMethods(node, spec); }},
      {"env", [&spec](const YAML::Node& node) { return SetEnvironment(node, spec); }},
      {"memory",
       [&spec](const YAML::Node& node) {
         if (!node.IsScalar()) return Expected("a size such as 2GiB");
         const auto value = ParseBytes(node.as<std::string>());
         if (value.ok()) spec.mutable_per_node()->set_memory(value->value);
         return value.status();
       }},
      {"start_by",
       [&spec, now](const YAML::Node& node) {
         if (!node.IsScalar()) return Expected("a time such as +60s");
         const auto value = ParseTime(node.as<std::string>(), now);
         if (!value.ok()) return value.status();
         spec.set_on_demand(true);
         spec.set_start_by_us(ToMicros(*value));
         return absl::OkStatus();
       }},
      {"app_signal",
       [&spec](const YAML::Node& node) {
         return node.IsScalar() ? ParseAppSignal(node.as<std::string>(), *spec.mutable_app())
                                : Expected("a signal such as USR1@30s");
       }},
      {"command",
       [&spec](const YAML::Node& node) {
         const auto words = Words(node);
         if (words.ok()) spec.mutable_command()->Assign(words->begin(), words->end());
         return words.status();
       }},
      {"restart_command",
       [&spec](const YAML::Node& node) {
         const auto words = Words(node);
         if (words.ok()) spec.mutable_app()->mutable_restart_command()->Assign(words->begin(), words->end());
         return words.status();
       }},
  };
}

}  // namespace

absl::Status ParseJobFile(const std::string& text, const std::string& name, Time now, v1::JobSpec& spec) {
  const auto at = [&](const YAML::Mark& mark) { return absl::StrCat(name, ":", mark.line + 1, ": "); };
  // yaml-cpp throws; nothing of ours does.
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return absl::InvalidArgumentError(at(root.Mark()) + "expected key: value pairs");
    const std::map<std::string, Setter> fields = Fields(spec, now);
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      const auto field = fields.find(key);
      if (field == fields.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            at(entry.first.Mark()), "unknown field '", key, "'; expected one of ",
            absl::StrJoin(fields, ", ", [](std::string* out, const auto& f) { *out += f.first; })));
      }
      const absl::Status status = field->second(entry.second);
      if (!status.ok()) return Annotate(status, absl::StrCat(at(entry.second.Mark()), key));
    }
    return absl::OkStatus();
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(at(error.mark) + error.msg);
  }
}

absl::StatusOr<v1::Method> ParseMethodName(const std::string& name) {
  if (name == "suspend") return v1::SUSPEND;
  if (name == "checkpoint") return v1::CHECKPOINT;
  if (name == "app") return v1::APP;
  if (name == "kill") return v1::KILL;
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected suspend, checkpoint, app or kill"));
}

absl::StatusOr<v1::Tier> ParseTierName(const std::string& name) {
  if (name == "local") return v1::LOCAL;
  if (name == "shared") return v1::SHARED;
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected local or shared"));
}

absl::StatusOr<int> ParseSignal(const std::string& name) {
  int number = 0;
  if (absl::SimpleAtoi(name, &number) && number > 0 && number < NSIG) return number;
  absl::string_view bare = name;
  absl::ConsumePrefix(&bare, "SIG");
  for (number = 1; number < NSIG; ++number) {
    const char* abbreviation = sigabbrev_np(number);
    if (abbreviation != nullptr && bare == abbreviation) return number;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': expected a signal such as USR1, SIGTERM or 10"));
}

absl::Status ParseAppSignal(const std::string& text, v1::AppMethod& app) {
  const size_t at = text.find('@');
  SIDING_ASSIGN_OR_RETURN(const int signal, ParseSignal(text.substr(0, at)));
  app.set_signal(signal);
  if (at == std::string::npos) {
    if (app.grace_us() == 0) app.set_grace_us(30'000'000);
    return absl::OkStatus();
  }
  SIDING_ASSIGN_OR_RETURN(const Duration grace, ParseDuration(text.substr(at + 1)));
  app.set_grace_us(grace.count());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SplitCommand(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool in_word = false;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0)
    return absl::InvalidArgumentError(absl::StrCat("expected a closing ", std::string(1, quote)));
  if (in_word) words.push_back(word);
  return words;
}

}  // namespace siding::cli
