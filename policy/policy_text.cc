#include "policy/policy_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siding {
namespace {

std::string Text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, std::end(buffer), value).ptr};  // as short as reads back the same
}

// Exact, unlike FormatDuration.
std::string Text(Duration value) {
  struct Unit {
    int64_t micros;
    const char* name;
  };
  for (const Unit& unit :
       {Unit{3'600'000'000, "h"}, Unit{60'000'000, "m"}, Unit{1'000'000, "s"}, Unit{1000, "ms"}}) {
    if (value.count() != 0 && value.count() % unit.micros == 0)
      return absl::StrCat(value.count() / unit.micros, unit.name);
  }
  return value.count() == 0 ? "0s" : absl::StrCat(value.count(), "us");
}

std::string Text(Bytes value) {
  for (const auto& [shift, name] : {std::pair{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    const int64_t unit = int64_t{1} << shift;
    if (value.value != 0 && value.value % unit == 0) return absl::StrCat(value.value / unit, name);
  }
  return absl::StrCat(value.value);
}

std::string Text(int value) { return absl::StrCat(value); }
std::string Text(bool value) { return value ? "true" : "false"; }

// Quoted where other readers of YAML could take it for a number, a truth value or nothing.
struct Name {
  const std::string& text;
};
YAML::Emitter& operator<<(YAML::Emitter& out, const Name& name) {
  static const std::set<std::string> kWords = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  const std::string lower = absl::AsciiStrToLower(name.text);
  const bool plain = !lower.empty() && absl::ascii_isalpha(lower[0]) && !kWords.contains(lower);
  if (!plain) out << YAML::DoubleQuoted;
  return out << name.text;
}

class Writer {
 public:
  template <typename Value>
  void Put(const char* key, const Value& value) {
    out_ << YAML::Key << key << YAML::Value << Text(value);
  }
  template <typename Value>
  void Put(const char* key, const std::optional<Value>& value) {
    if (value) Put(key, *value);
  }
  void PutText(const char* key, const std::string& text) {
    out_ << YAML::Key << key << YAML::Value << Name{text};
  }
  void Put(const char* key, const std::set<std::string>& names) {
    out_ << YAML::Key << key << YAML::Value;
    Put(names);
  }
  void Put(const char* key, const JobMatch& match) {
    if (match.any_of.empty()) return;
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& [what, names] : match.any_of) {
      out_ << YAML::Key << Name{what} << YAML::Value;
      Put(names);
    }
    out_ << YAML::EndMap;
  }
  void Put(const char* key, const std::optional<std::vector<Method>>& methods) {
    if (!methods) return;
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const Method method : *methods) out_ << ToString(method);
    out_ << YAML::EndSeq;
  }
  template <typename Item>
  void PutList(const char* key, const std::vector<Item>& items) {
    if (items.empty()) return;
    out_ << YAML::Key << key << YAML::Value << YAML::BeginSeq;
    for (const Item& item : items) {
      out_ << YAML::Flow << YAML::BeginMap;
      PutItem(item);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }
  void PutItem(const JobClass& c) {
    if (!c.name.empty()) PutText("name", c.name);
    Put("match", c.match);
    Put("methods", c.methods);
    Put("strict", c.strict);
    Put("min_runtime", c.min_runtime);
    Put("cooldown", c.cooldown);
    Put("max_preemptions", c.max_preemptions);
    Put("loss_weight", c.loss_weight);
    Put("delay_weight", c.delay_weight);
    Put("most_lost_work", c.most_lost_work);
  }
  void PutItem(const OnDemandRule& rule) {
    Put("match", rule.match);
    Put("allowed", rule.allowed);
    Put("max_nodes", rule.max_nodes);
    Put("node_hours_per_day", rule.node_hours_per_day);
  }
  YAML::Emitter& out() { return out_; }

 private:
  void Put(const std::set<std::string>& names) {
    out_ << YAML::Flow << YAML::BeginSeq;
    for (const std::string& name : names) out_ << Name{name};
    out_ << YAML::EndSeq;
  }

  YAML::Emitter out_;
};

std::vector<std::string> LinesOf(const Policy& policy) {
  return absl::StrSplit(ToYaml(policy), '\n', absl::SkipEmpty());
}

}  // namespace

std::string ToYaml(const Policy& p) {
  Writer writer;
  writer.out() << YAML::BeginMap;
  writer.PutText("strategy", ToString(p.strategy));
  writer.Put("confidence", p.confidence);
  writer.Put("margin", p.margin);
  writer.Put("min_runtime", p.min_runtime);
  writer.Put("cooldown", p.cooldown);
  writer.Put("max_preemptions", p.max_preemptions);
  writer.Put("delay_weight", p.delay_weight);
  writer.Put("unused_node_weight", p.unused_node_weight);
  writer.Put("frozen_node_weight", p.frozen_node_weight);
  writer.Put("expected_hold", p.expected_hold);
  writer.Put("node_failures_per_year", p.node_failures_per_year);
  writer.Put("most_lost_work", p.most_lost_work);
  writer.Put("checkpoint_bandwidth", p.checkpoint_bandwidth);
  writer.Put("checkpoint_stops", p.checkpoint_stops);
  writer.PutText("checkpoint_tier", ToString(p.checkpoint_tier));
  writer.Put("copy_images", p.copy_images);
  writer.Put("shared_bandwidth", p.shared_bandwidth);
  writer.Put("headroom_nodes", p.headroom_nodes);
  writer.PutText("when_late", ToString(p.when_late));
  writer.PutText("after_walltime", ToString(p.after_walltime));
  writer.Put("budget_steps", p.budget_steps);
  writer.Put("keep_checkpoints", p.keep_checkpoints);
  writer.Put("keep_failed_images", p.keep_failed_images);
  writer.Put("operators", p.operators);
  writer.PutText("gpu_collectives", ToString(p.gpu_collectives));
  writer.Put("allow_io_uring", p.allow_io_uring);
  writer.Put("private_jobs", p.private_jobs);
  writer.Put("users_raise_priority", p.users_raise_priority);
  writer.Put("max_jobs_per_user", p.max_jobs_per_user);
  writer.Put("max_requests_per_hour", p.max_requests_per_hour);
  writer.Put("max_request_mib_per_hour", p.max_request_mib_per_hour);
  writer.Put("max_image_bytes_per_user", p.max_image_bytes_per_user);
  writer.Put("max_kill_grace", p.max_kill_grace);
  writer.Put("max_notice", p.max_notice);
  writer.PutList("classes", p.classes);
  writer.PutList("on_demand", p.on_demand);
  writer.out() << YAML::EndMap;
  return absl::StrCat(writer.out().c_str(), "\n");
}

std::vector<std::string> Changes(const Policy& before, const Policy& after) {
  const std::vector<std::string> old_lines = LinesOf(before), new_lines = LinesOf(after);
  const size_t rows = old_lines.size(), columns = new_lines.size();
  // common[i][j]: the most lines that old_lines from i on and new_lines from j on share, in order.
  std::vector<std::vector<int>> common(rows + 1, std::vector<int>(columns + 1));
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      common[i][j] = old_lines[i] == new_lines[j] ? common[i + 1][j + 1] + 1
                                                  : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::vector<std::string> changes;
  for (size_t i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && old_lines[i] == new_lines[j]) {
      ++i, ++j;
    } else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1])) {
      changes.push_back("-" + old_lines[i++]);
    } else {
      changes.push_back("+" + new_lines[j++]);
    }
  }
  return changes;
}

}  // namespace siding
