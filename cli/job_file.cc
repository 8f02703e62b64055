#include "cli/job_file.h"

#include <csignal>
#include <cstring>
#include <functional>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/moment.h"
#include "common/status.h"
#include "common/yaml/fields.h"
#include "model/job.h"

namespace siding::cli {
namespace {

Setter TextOf(const std::function<void(const std::string&)>& set) {
  return Parsed([set](const std::string& text) {
    if (text.empty()) return absl::InvalidArgumentError("expected a value, got none");
    set(text);
    return absl::OkStatus();
  });
}

Setter MicrosOf(const std::function<void(int64_t)>& set) {
  return SpanOf([set](Duration value) { set(value.count()); });
}

// A command: a list of words, or one line that is split as a shell would.
Setter WordsOf(const std::function<void(const std::vector<std::string>&)>& set) {
  return [set](const YAML::Node& node) -> std::string {
    const Setter list = NamesOf([&](const std::vector<std::string>& words) {
      set(words);
      return absl::OkStatus();
    });
    if (node.IsSequence()) return list(node).empty() ? "" : "a list of words, or one line";
    if (!node.IsScalar()) return "a list of words, or one line";
    const auto words = SplitCommand(node.as<std::string>());
    if (!words.ok()) return std::string(words.status().message()).substr(9);
    set(*words);
    return "";
  };
}

absl::Status SetMethods(const std::vector<std::string>& names, v1::JobSpec& spec) {
  spec.clear_methods();
  if (names == std::vector<std::string>{"false"}) return absl::OkStatus();
  for (const std::string& name : names) {
    SIDING_ASSIGN_OR_RETURN(v1::Method method, ParseMethodName(name));
    spec.add_methods(method);
  }
  return absl::OkStatus();
}

template <typename Map>
Setter PairsInto(Map* pairs) {
  return [pairs](const YAML::Node& node) -> std::string {
    if (!node.IsMap()) return "NAME: value pairs";
    for (const auto& entry : node) {
      if (!entry.second.IsScalar()) return "NAME: value pairs";
      (*pairs)[entry.first.as<std::string>()] = entry.second.as<std::string>();
    }
    return "";
  };
}

Setter TimeOf(Time now, const std::function<void(int64_t)>& set) {
  return Parsed([now, set](const std::string& text) {
    SIDING_ASSIGN_OR_RETURN(const Time time, ParseComing(text, now));
    set(ToMicros(time));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status ParseStartBy(const std::string& text, Time now, v1::JobSpec& spec) {
  spec.set_on_demand(true);
  spec.set_start_by_earliest(text == "earliest");
  spec.clear_start_by_us();
  if (spec.start_by_earliest()) return absl::OkStatus();
  const auto at = ParseComing(text, now);
  if (!at.ok()) return absl::InvalidArgumentError(absl::StrCat(at.status().message(), ", or earliest"));
  spec.set_start_by_us(ToMicros(*at));
  return absl::OkStatus();
}

absl::Status ParseCheckpointInterval(const std::string& text, v1::JobSpec& spec) {
  spec.set_auto_checkpoint_interval(text == "auto");
  spec.clear_checkpoint_interval_us();
  if (text == "auto") return absl::OkStatus();
  const auto interval = ParseDuration(text);
  if (!interval.ok())
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': expected a duration such as 30m, or auto"));
  spec.set_checkpoint_interval_us(interval->count());
  return absl::OkStatus();
}

absl::Status ParseFiles(const std::string& text, v1::JobSpec& spec) {
  if (text != "exact" && text != "append")
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': expected exact or append"));
  spec.set_append_files(text == "append");
  return absl::OkStatus();
}

absl::Status ParseConnections(const std::string& text, v1::JobSpec& spec) {
  if (text != "keep" && text != "as-is")
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': expected keep or as-is"));
  spec.set_keep_connections(text == "keep");
  return absl::OkStatus();
}

absl::Status ParseOnNodeFailure(const std::string& text, v1::JobSpec& spec) {
  SIDING_ASSIGN_OR_RETURN(const OnNodeFailure parsed, siding::ParseOnNodeFailure(text));
  spec.set_on_node_failure(parsed == OnNodeFailure::kPark ? v1::PARK : v1::REQUEUE);
  return absl::OkStatus();
}

namespace {

Fields JobFields(v1::JobSpec& spec, Time now) {
  constexpr int kMany = 1000000;
  return {
      {"name", TextOf([&spec](const std::string& v) { spec.set_name(v); })},
      {"nodes", WholeOf([&spec](int v) { spec.set_nodes(v); }, 1, kMany)},
      {"slots", WholeOf([&spec](int v) { spec.mutable_per_node()->set_slots(v); }, 1, kMany)},
      {"gpus", WholeOf([&spec](int v) { spec.mutable_per_node()->set_gpus(v); }, 0, kMany)},
      {"priority", WholeOf([&spec](int v) { spec.set_priority(v); }, -kMany, kMany)},
      {"max_preemptions", WholeOf([&spec](int v) { spec.set_max_preemptions(v); }, 0, kMany)},
      {"workdir", TextOf([&spec](const std::string& v) { spec.set_workdir(v); })},
      {"output", TextOf([&spec](const std::string& v) { spec.set_output(v); })},
      {"kill_grace", MicrosOf([&spec](int64_t v) { spec.set_kill_grace_us(v); })},
      {"notice", MicrosOf([&spec](int64_t v) { spec.set_notice_us(v); })},
      {"gpu_collectives", Parsed([&spec](const std::string& text) {
         SIDING_ASSIGN_OR_RETURN(const v1::GpuCollectives collectives, ParseCollectives(text));
         spec.set_gpu_collectives(collectives);
         return absl::OkStatus();
       })},
      {"allow_io_uring", Parsed([&spec](const std::string& text) {
         spec.set_allow_io_uring(text == "true");
         return text == "true" || text == "false" ? absl::OkStatus()
                                                  : absl::InvalidArgumentError("true or false");
       })},
      {"checkpoint_interval",
       Parsed([&spec](const std::string& text) { return ParseCheckpointInterval(text, spec); })},
      {"connections", Parsed([&spec](const std::string& text) { return ParseConnections(text, spec); })},
      {"files", Parsed([&spec](const std::string& text) { return ParseFiles(text, spec); })},
      {"on_node_failure",
       Parsed([&spec](const std::string& text) { return ParseOnNodeFailure(text, spec); })},
      {"app_marker", TextOf([&spec](const std::string& v) { spec.mutable_app()->set_marker(v); })},
      {"preemptible",
       NamesOf([&spec](const std::vector<std::string>& names) { return SetMethods(names, spec); })},
      {"env", PairsInto(spec.mutable_env())},
      {"labels", PairsInto(spec.mutable_labels())},
      {"memory", Parsed([&spec](const std::string& text) {
         SIDING_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
         spec.mutable_per_node()->set_memory(bytes.value);
         return absl::OkStatus();
       })},
      {"start_by", Parsed([&spec, now](const std::string& text) { return ParseStartBy(text, now, spec); })},
      {"not_before", TimeOf(now, [&spec](int64_t v) { spec.set_not_before_us(v); })},
      {"app_signal",
       Parsed([&spec](const std::string& text) { return ParseAppSignal(text, *spec.mutable_app()); })},
      {"command", WordsOf([&spec](const std::vector<std::string>& words) {
         spec.mutable_command()->Assign(words.begin(), words.end());
       })},
      {"restart_command", WordsOf([&spec](const std::vector<std::string>& words) {
         spec.mutable_app()->mutable_restart_command()->Assign(words.begin(), words.end());
       })},
  };
}

}  // namespace

absl::Status ParseJobFile(const std::string& text, const std::string& name, Time now, v1::JobSpec& spec,
                          std::vector<std::string>* notes) {
  // The older name of walltime.
  std::optional<int64_t> hold;
  std::optional<int64_t> walltime;
  Fields fields = JobFields(spec, now);
  fields["hold"] = MicrosOf([&hold](int64_t v) { hold = v; });
  fields["walltime"] = MicrosOf([&walltime](int64_t v) { walltime = v; });
  SIDING_RETURN_IF_ERROR(FieldReader(name).Read(text, fields));
  if (walltime == 0)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": walltime: expected 1s or more; leave it out for no limit"));
  if (hold && walltime) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": hold: expected walltime alone, of which it is the old name"));
  }
  if (hold && notes != nullptr)
    notes->push_back(
        absl::StrCat(name, ": hold: is now called walltime; the next version does not know hold"));
  if (hold || walltime) spec.set_walltime_us(walltime ? *walltime : *hold);
  return absl::OkStatus();
}

absl::StatusOr<v1::GpuCollectives> ParseCollectives(const std::string& name) {
  for (const v1::GpuCollectives collectives : {v1::AS_IS, v1::DRAINABLE}) {
    if (name == CollectivesName(collectives)) return collectives;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected drainable or as-is"));
}

std::string CollectivesName(v1::GpuCollectives collectives) {
  return collectives == v1::DRAINABLE ? "drainable" : "as-is";
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
