#include "policy/policy_file.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "common/yaml/fields.h"

namespace siding {
namespace {

constexpr double kMostWeight = 1e6;

Setter Size(Bytes& out) {
  return Parsed([&out](const std::string& text) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(out, ParseBytes(text));
    return absl::OkStatus();
  });
}

Setter Match(JobMatch& match) {
  return [&match](const YAML::Node& node) -> std::string {
    if (!node.IsMap()) return "keys such as user, name, partition or account, each with a name or a list";
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.as<std::string>() : "";
      const std::string expected = Names(match.any_of[key])(entry.second);
      if (key.empty() || !expected.empty() || match.any_of[key].empty())
        return absl::StrCat("for ", key, " a name or a list of names");
    }
    return "";
  };
}

Setter Methods(std::optional<std::vector<Method>>& out) {
  return NamesOf([&out](const std::vector<std::string>& names) {
    out.emplace();
    for (const std::string& name : names) {
      SIDING_ASSIGN_OR_RETURN(const Method method, ParseMethod(name));
      out->push_back(method);
    }
    return absl::OkStatus();
  });
}

template <typename Value, typename Parse>
Setter Named(Value& out, Parse parse) {
  return Parsed([&out, parse](const std::string& text) {
    SIDING_ASSIGN_OR_RETURN(out, parse(text));
    return absl::OkStatus();
  });
}

Setter SpanOrNone(std::optional<Duration>& out) {
  return SpanOf([&out](Duration value) { out = value; });
}
Setter WholeOrNone(std::optional<int>& out) {
  return WholeOf([&out](int value) { out = value; }, 0, 1000000);
}
Setter NumberOrNone(std::optional<double>& out, double most) {
  return [&out, most](const YAML::Node& node) {
    double value = 0;
    std::string expected = Number(value, 0, most)(node);
    if (expected.empty()) out = value;
    return expected;
  };
}

Fields ClassFields(JobClass& c) {
  return {{"name", Text(c.name)},
          {"match", Match(c.match)},
          {"methods", Methods(c.methods)},
          {"strict", Flag(c.strict)},
          {"min_runtime", SpanOrNone(c.min_runtime)},
          {"cooldown", SpanOrNone(c.cooldown)},
          {"max_preemptions", WholeOrNone(c.max_preemptions)},
          {"loss_weight", Number(c.loss_weight, 0, kMostWeight)},
          {"delay_weight", NumberOrNone(c.delay_weight, kMostWeight)},
          {"most_lost_work", SpanOrNone(c.most_lost_work)}};
}

Fields RuleFields(OnDemandRule& rule) {
  return {{"match", Match(rule.match)},
          {"allowed", Flag(rule.allowed)},
          {"max_nodes", WholeOrNone(rule.max_nodes)},
          {"node_hours_per_day", NumberOrNone(rule.node_hours_per_day, 1e9)}};
}

std::string NameOf(const JobClass& c, size_t i) {
  return c.name.empty() ? absl::StrCat("classes[", i + 1, "]") : absl::StrCat("class ", c.name);
}

std::vector<std::string> WarningsOf(const Policy& policy) {
  std::vector<std::string> warnings;
  bool all_matched = false, some_may_leave = false;
  for (size_t i = 0; i < policy.classes.size(); ++i) {
    const JobClass& c = policy.classes[i];
    if (all_matched)
      warnings.push_back(absl::StrCat(NameOf(c, i), " is never used: an earlier one matches every job"));
    all_matched |= c.match.any_of.empty();
    some_may_leave |= !c.methods || !c.methods->empty();
  }
  if (policy.max_preemptions == 0 || (all_matched && !some_may_leave))
    warnings.push_back("no job may ever be a victim: requests get only nodes that are free anyway");
  bool some_may_ask = policy.on_demand.empty(), catch_all = false;
  for (const OnDemandRule& rule : policy.on_demand) {
    some_may_ask |= rule.allowed && !catch_all;
    catch_all |= rule.match.any_of.empty();
  }
  if (policy.operators.empty())
    warnings.push_back("operators: there are none: only root may act on nodes and on others' jobs");
  if (!some_may_ask && catch_all) warnings.push_back("no user may ask for an on-demand job");
  if (policy.checkpoint_tier == Tier::kLocal && !policy.copy_images)
    warnings.push_back(
        "checkpoint_tier: with copy_images: false no checkpoint on schedule outlives its node");
  return warnings;
}

absl::Status CheckClasses(const Policy& policy, const std::string& name) {
  std::set<std::string> names;
  for (const JobClass& c : policy.classes) {
    if (!c.name.empty() && !names.insert(c.name).second)
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": classes: two are called ", c.name, "; expected names of their own"));
  }
  return absl::OkStatus();
}

std::string Words(const JobMatch& match) {
  if (match.any_of.empty()) return "every job";
  return absl::StrJoin(match.any_of, " and ", [](std::string* out, const auto& rule) {
    absl::StrAppend(out, rule.first, " ", absl::StrJoin(rule.second, " or "));
  });
}

std::string Words(const JobClass& c) {
  std::string text = Words(c.match);
  if (c.methods && c.methods->empty()) return text + ": protected";
  if (c.methods) {
    absl::StrAppend(&text, ": ",
                    absl::StrJoin(*c.methods, c.strict ? ", else " : ", ",
                                  [](std::string* out, Method m) { *out += ToString(m); }));
  }
  if (c.min_runtime) absl::StrAppend(&text, "; after ", FormatDuration(*c.min_runtime));
  if (c.cooldown) absl::StrAppend(&text, "; cooldown ", FormatDuration(*c.cooldown));
  if (c.max_preemptions) absl::StrAppend(&text, "; at most ", *c.max_preemptions, " times");
  if (c.loss_weight != 1) absl::StrAppend(&text, "; losses count ", c.loss_weight, "-fold");
  if (c.delay_weight) absl::StrAppend(&text, "; delays count ", *c.delay_weight, "-fold");
  if (c.most_lost_work && *c.most_lost_work == Duration(0)) text += "; saved only as they ask";
  if (c.most_lost_work && *c.most_lost_work > Duration(0))
    absl::StrAppend(&text, "; saved so often that no more than ", FormatDuration(*c.most_lost_work),
                    " of work is lost");
  return text;
}

std::string Words(const OnDemandRule& rule) {
  std::string text = absl::StrCat(Words(rule.match), rule.allowed ? ": may ask" : ": may not ask");
  if (rule.max_nodes) absl::StrAppend(&text, ", for ", *rule.max_nodes, " nodes at most");
  if (rule.node_hours_per_day) absl::StrAppend(&text, ", ", *rule.node_hours_per_day, " node-hours a day");
  return text;
}

}  // namespace

absl::StatusOr<PolicyFile> ParsePolicyFile(const std::string& text, const std::string& name) {
  PolicyFile file;
  Policy& p = file.policy;
  FieldReader reader(name);
  // Kept in deques while they are read: setters point into them.
  std::deque<JobClass> classes;
  std::deque<OnDemandRule> rules;
  SIDING_RETURN_IF_ERROR(
      reader.Read(text, {{"strategy", Named(p.strategy, ParseStrategy)},
                         {"margin", Span(p.margin)},
                         {"confidence", Number(p.confidence, 0.5, 0.9999)},
                         {"min_runtime", Span(p.min_runtime)},
                         {"cooldown", Span(p.cooldown)},
                         {"max_preemptions", Whole(p.max_preemptions, 0, 1000000)},
                         {"delay_weight", Number(p.delay_weight, 0, kMostWeight)},
                         {"unused_node_weight", Number(p.unused_node_weight, 0, kMostWeight)},
                         {"frozen_node_weight", Number(p.frozen_node_weight, 0, kMostWeight)},
                         {"expected_hold", Span(p.expected_hold)},
                         {"node_failures_per_year", Number(p.node_failures_per_year, 0, 1000)},
                         {"most_lost_work", Span(p.most_lost_work)},
                         {"checkpoint_bandwidth", Number(p.checkpoint_bandwidth, 0.001, 0.5)},
                         {"checkpoint_stops", Number(p.checkpoint_stops, 0.001, 0.5)},
                         {"checkpoint_tier", Named(p.checkpoint_tier, ParseTier)},
                         {"copy_images", Flag(p.copy_images)},
                         {"shared_bandwidth", Size(p.shared_bandwidth)},
                         {"headroom_nodes", Whole(p.headroom_nodes, 0, 1000000)},
                         {"budget_steps", Whole(p.budget_steps, 1, 10000)},
                         {"keep_checkpoints", Whole(p.keep_checkpoints, 1, 1000)},
                         {"keep_failed_images", Span(p.keep_failed_images)},
                         {"when_late", Named(p.when_late, ParseWhenLate)},
                         {"after_walltime", Named(p.after_walltime, ParseAfterWalltime)},
                         {"operators", Names(p.operators)},
                         {"gpu_collectives", Named(p.gpu_collectives, ParseGpuCollectives)},
                         {"allow_io_uring", Flag(p.allow_io_uring)},
                         {"private_jobs", Flag(p.private_jobs)},
                         {"users_raise_priority", Flag(p.users_raise_priority)},
                         {"max_jobs_per_user", Whole(p.max_jobs_per_user, 1, 100000000)},
                         {"max_requests_per_hour", Whole(p.max_requests_per_hour, 1, 100000000)},
                         {"max_request_mib_per_hour", Whole(p.max_request_mib_per_hour, 3, 1000000)},
                         {"max_image_bytes_per_user", Size(p.max_image_bytes_per_user)},
                         {"max_kill_grace", Span(p.max_kill_grace)},
                         {"max_notice", Span(p.max_notice)},
                         {"classes", reader.MapList([&] { return ClassFields(classes.emplace_back()); })},
                         {"on_demand", reader.MapList([&] { return RuleFields(rules.emplace_back()); })}}));
  p.classes.assign(classes.begin(), classes.end());
  p.on_demand.assign(rules.begin(), rules.end());
  SIDING_RETURN_IF_ERROR(CheckClasses(p, name));
  file.warnings = WarningsOf(p);
  return file;
}

absl::StatusOr<PolicyFile> LoadPolicyFile(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParsePolicyFile(text, path);
}

std::string Describe(const Policy& p) {
  std::string text = absl::StrCat(
      "victims by ", ToString(p.strategy), ", deadlines kept with confidence ", p.confidence, " and ",
      FormatDuration(p.margin), " to spare\n", "a job may be a victim after ", FormatDuration(p.min_runtime),
      ", again after ", FormatDuration(p.cooldown), ", ", p.max_preemptions, " times at most\n",
      "a node-second waited counts ", p.delay_weight, ", one given up and not used ", p.unused_node_weight,
      ", one kept idle by a frozen job ", p.frozen_node_weight, ", one lost 1\n",
      "when a deadline cannot be met: ", ToString(p.when_late), "\n");
  if (p.after_walltime == AfterWalltime::kPreemptible)
    text += "on-demand jobs whose walltime is over run on, and make way for others\n";
  if (p.most_lost_work > Duration(0))
    absl::StrAppend(&text, "jobs that may be checkpointed are saved so often that no more than ",
                    FormatDuration(p.most_lost_work), " of work is lost\n");
  if (p.ProtectsSome())
    absl::StrAppend(&text, "such checkpoints take no more than ", p.checkpoint_bandwidth * 100,
                    " % of the shared tier's bandwidth, and stop a job for no more than ",
                    p.checkpoint_stops * 100, " % of its time\n");
  if (p.headroom_nodes > 0) absl::StrAppend(&text, p.headroom_nodes, " nodes are kept free of batch jobs\n");
  for (size_t i = 0; i < p.classes.size(); ++i)
    absl::StrAppend(&text, NameOf(p.classes[i], i), ": ", Words(p.classes[i]), "\n");
  for (const OnDemandRule& rule : p.on_demand) absl::StrAppend(&text, "on-demand, ", Words(rule), "\n");
  absl::StrAppend(&text, "operators: ", absl::StrJoin(p.operators, ", "), "\n");
  return text;
}

}  // namespace siding
