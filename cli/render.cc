#include "cli/render.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/expiry.h"
#include "common/logging.h"

namespace siding::cli {
namespace {

constexpr size_t kLongestName = 32;  // in a table, the ellipsis included
constexpr size_t kLongestCommand = 1000;

std::string Paint(const std::string& text, const char* code, const Style& style) {
  return style.color ? absl::StrCat("\033[", code, "m", text, "\033[0m") : text;
}

std::string Bold(const std::string& text, const Style& style) { return Paint(text, "1", style); }

// Colour by what the word means, after padding so that widths stay right.
const char* ColorOf(const std::string& word) {
  if (word == "running" || word == "up" || word == "done" || word == "good") return "32";
  if (word == "failed" || word == "down" || word == "silent" || word == "faulty" || word == "damaged" ||
      word == "refused" || word.starts_with("lost for "))
    return "31";
  if (word == "suspended" || word == "parked" || word == "cordoned" || word == "dumping") return "33";
  return nullptr;
}

std::string Nodes(const google::protobuf::RepeatedPtrField<std::string>& nodes) {
  return nodes.empty() ? "-" : absl::StrJoin(nodes, ",");
}

std::string DurationOrNone(int64_t us) { return us > 0 ? FormatDuration(Duration(us)) : "-"; }

std::string Seconds(double node_seconds) { return absl::StrFormat("%.1f", node_seconds); }

std::string Rates(const v1::Rate& rate) {
  return rate.bytes_per_second() <= 0
             ? "-"
             : FormatBytes(Bytes{static_cast<int64_t>(rate.bytes_per_second())}) + "/s";
}

std::string NameOf(int64_t job, const std::string& name) {
  return name.empty() ? absl::StrCat(job) : absl::StrCat(job, " (", OneLogLine(name), ")");
}

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Of text in UTF-8.
size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

// The first so many characters of a line that may change its colour, which takes none of them.
std::string CutAt(const std::string& line, size_t most) {
  std::string out;
  size_t characters = 0;
  bool in_escape = false;
  for (const char c : line) {
    in_escape |= c == '\033';
    characters += !in_escape && BeginsCharacter(c);
    // What comes behind the last character is kept if it puts the colour back.
    if (in_escape || characters <= most) out += c;
    if (c == 'm') in_escape = false;
  }
  return out;
}

// Names may be much longer than what a line has room for.
std::string Shortened(const std::string& text) {
  if (Characters(text) <= kLongestName) return text;
  size_t characters = 0, at = 0;
  for (; at < text.size(); ++at) {
    characters += BeginsCharacter(text[at]);
    if (characters == kLongestName) break;
  }
  return text.substr(0, at) + "…";
}

std::string ForAShell(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c >= 0x80 || (c != 0 && strchr("%+,-./:=@_", c) != nullptr);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// In a column of that name.
std::string Since(Duration d) { return d < std::chrono::seconds(1) ? "now" : FormatDuration(d); }

// Empty: it does not expire soon, or there is none.
std::string CertificateText(const v1::Node& node, const Style& style) {
  return node.certificate_ends_us() == 0 ? "" : ExpiryText(FromMicros(node.certificate_ends_us()), style.now);
}

}  // namespace

std::string MethodName(v1::Method method) { return absl::AsciiStrToLower(v1::Method_Name(method)); }
std::string TierName(v1::Tier tier) { return absl::AsciiStrToLower(v1::Tier_Name(tier)); }

std::string Ago(Duration since) {
  return since < std::chrono::seconds(1) ? "now" : FormatDuration(since) + " ago";
}

std::string Relative(int64_t at_us, Time now) {
  if (at_us == 0) return "-";
  const Duration d = FromMicros(at_us) - now;
  return d >= std::chrono::milliseconds(1) ? "in " + FormatDuration(d) : Ago(-d);
}

std::string Table(const std::vector<std::vector<std::string>>& cells, const Style& style) {
  // A cluster manager's jobs have names that were not checked before.
  std::vector<std::vector<std::string>> rows = cells;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), OneLogLine);
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], Characters(row[i]));
  }
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string& cell = rows[r][i];
      const char* color = r > 0 ? ColorOf(cell) : "1";
      line += color == nullptr ? cell : Paint(cell, color, style);
      if (i + 1 < rows[r].size()) line += std::string(width[i] - Characters(cell) + 2, ' ');
    }
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string FitTo(const std::string& text, int rows, int columns) {
  std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const size_t shown = std::min(lines.size(), static_cast<size_t>(rows));
  const size_t below = shown < lines.size() ? lines.size() - shown + 1 : 0;
  lines.resize(shown);
  for (std::string& line : lines) line = CutAt(line, static_cast<size_t>(columns));
  if (below > 0)
    lines.back() = CutAt(absl::StrCat("... and ", below, " more lines"), static_cast<size_t>(columns));
  return absl::StrJoin(lines, "\n");
}

std::string ProgressText(const v1::JobProgress& p) {
  std::string text = absl::StrCat(p.what(), " ", FormatBytes(Bytes{p.bytes_done()}));
  if (p.bytes_total() > 0) absl::StrAppend(&text, " of ", FormatBytes(Bytes{p.bytes_total()}));
  if (p.bytes_per_second() > 0) {
    absl::StrAppend(&text, ", ", FormatBytes(Bytes{static_cast<int64_t>(p.bytes_per_second())}), "/s");
    const int64_t left = p.bytes_total() - p.bytes_done();
    if (left > 0) {
      absl::StrAppend(&text, ", ",
                      FormatDuration(FromSeconds(static_cast<double>(left) / p.bytes_per_second())), " left");
    }
  }
  return text;
}

std::string CommandText(const v1::JobSpec& spec) {
  std::string text;
  for (const std::string& word : spec.command()) {
    if (text.size() > kLongestCommand) break;
    absl::StrAppend(&text, text.empty() ? "" : " ", ForAShell(word.substr(0, 4 * kLongestCommand)));
  }
  text = OneLogLine(text);
  return Characters(text) > kLongestCommand ? CutAt(text, kLongestCommand) + "..." : text;
}

std::string CommandLines(const v1::ListJobsResponse& jobs) {
  std::string lines;
  for (const v1::Job& job : jobs.jobs()) {
    if (!job.spec().command().empty())
      absl::StrAppend(&lines, "command of job ", job.id(), ": ", CommandText(job.spec()), "\n");
  }
  return lines;
}

std::string TimerText(const v1::Job& job) {
  return job.timer().empty() ? "" : absl::StrCat("timers run on while it is suspended: ", job.timer());
}

namespace {

// Whose end it is, or where.
std::string WhoIsInTheWay(const v1::Back::Because& because) {
  return absl::StrCat("job ", because.job(),
                      because.node().empty() ? "" : absl::StrCat(" on ", because.node()));
}

std::string WhenText(const v1::Back::Because& because) {
  switch (because.kind()) {
    case v1::Back::WALLTIME:
      return absl::StrCat(", when ", WhoIsInTheWay(because), " has ended by its walltime");
    case v1::Back::EXPECTED:
      return absl::StrCat(", when ", WhoIsInTheWay(because), " ends as the policy expects");
    case v1::Back::LEAVING:
      return because.job() == 0 ? "" : absl::StrCat(", when ", WhoIsInTheWay(because), " has left");
    default:
      return "";
  }
}

// What WHY has already is not said again.
std::string WhyNoTimeText(const v1::Back::Because& because) {
  const std::string alone = because.image() ? ", where alone it can go on," : "";
  switch (because.kind()) {
    case v1::Back::NO_END:
      return absl::StrCat(WhoIsInTheWay(because), alone, " has no known end");
    case v1::Back::NODE_AWAY:
      return absl::StrCat("node ", because.node(), alone, " is away, cordoned or faulty");
    case v1::Back::BEHIND:
      return because.job() == 0 ? "" : absl::StrCat("none is known of job ", because.job(), " before it");
    case v1::Back::TOO_MUCH:
      return "too much comes before it";
    default:
      return "";
  }
}

}  // namespace

std::string BackText(const v1::Job& job, const Style& style) {
  const v1::Back& back = job.back();
  if (back.predicted_us() == 0) {
    const std::string why = WhyNoTimeText(back.because());
    return why.empty() ? "" : absl::StrCat("until when is not known: ", why);
  }
  const std::string when = Relative(back.predicted_us(), style.now);
  std::string text = absl::StrCat(job.first_started_us() == 0 ? "starts " : "back ", when, " on ",
                                  Nodes(back.nodes()), WhenText(back.because()));
  if (back.latest_us() == back.predicted_us()) return text + ", or before";
  if (back.latest_us() == 0) return text;
  return absl::StrCat(text, "; at the latest ", Relative(back.latest_us(), style.now));
}

std::string PlanSummaryText(const v1::Job& job, const Style& style) {
  const v1::PlanSummary& plan = job.plan();
  if (job.state() != "pending" || plan.predicted_start_us() == 0) return "";
  const Duration margin(plan.margin_us());
  const Time start = FromMicros(plan.predicted_start_us());
  std::string text = absl::StrCat(start < style.now ? "should have been free " : "free ",
                                  Relative(plan.predicted_start_us(), style.now), ", ",
                                  FormatDuration(std::chrono::abs(margin)),
                                  margin < Duration(0) ? " after its deadline" : " before its deadline");
  if (plan.victims() == 0) return text;
  return absl::StrCat(text, "; ", plan.victims_away(), " of ", plan.victims(),
                      plan.victims() == 1 ? " job has made way" : " jobs have made way");
}

// Of a job that may not be suspended for others, timers are no news.
std::string WhyText(const v1::Job& job) {
  const bool suspends =
      std::find(job.methods().begin(), job.methods().end(), v1::SUSPEND) != job.methods().end();
  std::vector<std::string> parts = {job.has_progress() ? ProgressText(job.progress()) : job.reason(),
                                    job.waits_for(), job.methods_note(), suspends ? TimerText(job) : ""};
  std::erase(parts, "");
  return absl::StrJoin(parts, "; ");
}

namespace {

std::string WhyAndWhenText(const v1::Job& job, const Style& style) {
  std::vector<std::string> parts = {WhyText(job), PlanSummaryText(job, style), BackText(job, style)};
  std::erase(parts, "");
  return absl::StrJoin(parts, "; ");
}

// "local 40%": so much of it is in shared storage by now.
std::string WhereText(const v1::CheckpointInfo& c) {
  if (c.on_nodes()) return absl::StrCat(TierName(c.tier()), "+local");
  if (c.copied_bytes() <= 0 || c.bytes() <= 0) return TierName(c.tier());
  return absl::StrCat(TierName(c.tier()), " ", std::min<int64_t>(100, c.copied_bytes() * 100 / c.bytes()),
                      "%");
}

}  // namespace

std::string JobsTable(const v1::ListJobsResponse& jobs, const Style& style, bool whole_names) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "NAME", "USER", "KIND", "STATE", "SINCE", "NODES",
                                                 "MEMORY", "PREEMPTED", "LOST", "METHODS", "WHY"}};
  for (const v1::Job& job : jobs.jobs()) {
    std::vector<std::string> methods;
    for (int m : job.methods()) methods.push_back(MethodName(static_cast<v1::Method>(m)));
    const std::string name = OneLogLine(job.spec().name());
    rows.push_back({absl::StrCat(job.id()), whole_names ? name : Shortened(name), job.spec().user(),
                    job.spec().on_demand() ? "on-demand" : "batch", job.state(),
                    Since(style.now - FromMicros(job.state_since_us())), Nodes(job.nodes()),
                    job.memory() > 0 ? FormatBytes(Bytes{job.memory()}) : "-",
                    absl::StrCat(job.preemptions()), Seconds(job.lost_node_seconds()),
                    methods.empty() ? "-" : absl::StrJoin(methods, ","), WhyAndWhenText(job, style)});
  }
  return Table(rows, style);
}

bool HasEnded(const v1::Job& job) {
  return job.state() == "done" || job.state() == "failed" || job.state() == "cancelled";
}

std::string WhyNotText(const v1::Job& job) {
  if (HasEnded(job)) {
    return absl::StrCat("it ended meanwhile, and is ", job.state(), job.reason().empty() ? "" : ": ",
                        job.reason());
  }
  if (!job.methods_note().empty()) return job.methods_note();
  if (!job.reason().empty()) return job.reason();
  return absl::StrCat("it is ", job.state(), "; `sidingctl explain ", job.id(), "` says what has happened");
}

std::string NodesTable(const v1::ListNodesResponse& nodes, const Style& style) {
  // Only where there are GPUs.
  const bool gpus = std::any_of(nodes.nodes().begin(), nodes.nodes().end(),
                                [](const v1::Node& node) { return node.capacity().gpus() > 0; });
  std::vector<std::vector<std::string>> rows = {{"NODE", "STATE", "SLOTS", "GPUS", "RAM FREE", "DISK FREE",
                                                 "DUMP LOCAL", "DUMP SHARED", "RESTORE SHARED", "JOBS",
                                                 "FROZEN", "CRIU"}};
  // Only where one is not.
  const bool unfenced = std::any_of(nodes.nodes().begin(), nodes.nodes().end(),
                                    [](const v1::Node& node) { return !node.fence_problem().empty(); });
  const bool faulty = std::any_of(nodes.nodes().begin(), nodes.nodes().end(),
                                  [](const v1::Node& node) { return !node.fault().empty(); });
  const bool strays = std::any_of(nodes.nodes().begin(), nodes.nodes().end(),
                                  [](const v1::Node& node) { return node.strays_size() > 0; });
  const bool expires = std::any_of(nodes.nodes().begin(), nodes.nodes().end(), [&](const v1::Node& node) {
    return !CertificateText(node, style).empty();
  });
  if (expires) rows[0].push_back("CERTIFICATE");
  if (strays) rows[0].push_back("STRAYS");
  if (unfenced) rows[0].push_back("FENCE");
  if (faulty) rows[0].push_back("FAULT");
  if (gpus) rows[0].insert(rows[0].begin() + 4, {"GPU DRAIN", "GPU REFILL"});
  for (const v1::Node& node : nodes.nodes()) {
    const Time lost_since = FromMicros(node.lost_since_us());
    rows.push_back({node.name(),
                    node.lost_since_us() == 0
                        ? node.state()
                        : absl::StrCat(node.state(), " for ", FormatDuration(style.now - lost_since)),
                    absl::StrCat(node.used().slots(), "/", node.capacity().slots()),
                    absl::StrCat(node.used().gpus(), "/", node.capacity().gpus()),
                    FormatBytes(Bytes{node.ram_available()}),
                    FormatBytes(Bytes{node.local_disk_free()}) + (node.local_in_memory() ? " in memory" : ""),
                    Rates(node.local().dump()), Rates(node.shared().dump()), Rates(node.shared().restore()),
                    node.jobs().empty() ? "-" : absl::StrJoin(node.jobs(), ","),
                    node.suspended_jobs().empty() ? "-" : absl::StrJoin(node.suspended_jobs(), ","),
                    node.criu_problem().empty() ? node.criu() : node.criu_problem()});
    if (expires) {
      const std::string text = CertificateText(node, style);
      rows.back().push_back(text.empty() ? "-" : text);
    }
    if (strays) rows.back().push_back(Nodes(node.strays()));
    if (unfenced) rows.back().push_back(node.fence_problem().empty() ? "yes" : node.fence_problem());
    if (faulty) rows.back().push_back(node.fault().empty() ? "-" : node.fault());
    if (!gpus) continue;
    const bool drains = node.gpu_problem().empty();
    rows.back().insert(rows.back().begin() + 4, {drains ? Rates(node.gpu().dump()) : node.gpu_problem(),
                                                 drains ? Rates(node.gpu().restore()) : "-"});
  }
  return Table(rows, style);
}

std::string CheckpointsTable(const v1::ListCheckpointsResponse& checkpoints, const Style& style) {
  std::vector<std::vector<std::string>> rows = {
      {"CHECKPOINT", "JOB", "STATE", "TIER", "SIZE", "NEW", "MADE", "STOPPED", "TOOK", "NODES", "NOTE"}};
  for (const v1::CheckpointInfo& c : checkpoints.checkpoints()) {
    rows.push_back({c.id(), absl::StrCat(c.job()), c.state(), WhereText(c), FormatBytes(Bytes{c.bytes()}),
                    c.new_bytes() > 0 ? FormatBytes(Bytes{c.new_bytes()}) : "-",
                    Relative(c.created_us(), style.now), DurationOrNone(c.stopped_us()),
                    DurationOrNone(c.took_us()), Nodes(c.nodes()), c.note()});
  }
  return Table(rows, style);
}

std::string CheckpointText(const v1::CheckpointInfo& c, const Style& style) {
  return absl::StrCat(
      "checkpoint ", Bold(c.id(), style), " of job ", c.job(), ": ", c.state(), "\n  ",
      FormatBytes(Bytes{c.bytes()}),
      c.new_bytes() > 0 ? absl::StrCat(", ", FormatBytes(Bytes{c.new_bytes()}), " of it new") : "", " in ",
      TierName(c.tier()), " storage",
      c.on_nodes() ? " and on its nodes' own disks"
      : c.copied_bytes() > 0
          ? absl::StrCat(", ", FormatBytes(Bytes{c.copied_bytes()}), " copied to shared storage")
          : "",
      ", made ", FormatTime(FromMicros(c.created_us())), "\n",
      c.stopped_us() > 0
          ? absl::StrCat("  its job ran on after ", FormatDuration(Duration(c.stopped_us())), "\n")
          : "",
      "  dumped on ", Nodes(c.nodes()), "\n", c.note().empty() ? "" : absl::StrCat("  ", c.note(), "\n"));
}

// "if job 4 stayed: jobs 5, 7 would go, for 5.2 node-seconds (+2.1), the next best"
std::string WithoutText(const v1::Plan& plan, const v1::PlanWithout& without) {
  std::string out = absl::StrCat("  if job ", without.job(), " stayed: ");
  if (!without.feasible()) return absl::StrCat(out, "not in time\n");
  if (without.jobs().empty()) {
    // Of other users' jobs the controller does not say which.
    absl::StrAppend(&out, without.loss_node_seconds() > 0 ? "jobs of others would go" : "nobody would go");
  } else {
    absl::StrAppend(&out, without.jobs_size() == 1 ? "job " : "jobs ", absl::StrJoin(without.jobs(), ", "),
                    " would go");
  }
  const double more = without.loss_node_seconds() - plan.loss_node_seconds();
  return absl::StrCat(out, ", for ", Seconds(without.loss_node_seconds()), " node-seconds (",
                      more < 0 ? "" : "+", Seconds(more), ")", without.next_best() ? ", the next best" : "",
                      "\n");
}

namespace {

// So few that are left alone for the same reason are named each.
constexpr int kMostNamedKept = 10;

std::string RuleText(const v1::KeptGroup& group) {
  std::string text;
  switch (group.rule()) {
    case v1::ON_DEMAND:
      text = "deadline jobs themselves";
      break;
    case v1::NOT_NEEDED:
      text = "not needed";
      break;
    case v1::REFUSED:
      text = "nothing is touched, as the request is refused";
      break;
    case v1::KEEP_RULE_UNSPECIFIED:
      text = "for other reasons";
      break;
    default:
      text = absl::StrReplaceAll(absl::AsciiStrToLower(v1::KeepRule_Name(group.rule())), {{"_", "-"}});
  }
  if (group.policy_key().empty()) return text;
  return absl::StrCat(text, " (", group.policy_key(), " of ",
                      group.job_class().empty() ? "the policy" : "class " + group.job_class(), ")");
}

bool IsIn(const v1::PlanKeep& keep, const v1::KeptGroup& group) {
  return keep.rule() == group.rule() && keep.policy_key() == group.policy_key() &&
         keep.job_class() == group.job_class();
}

std::string KeptLine(const v1::PlanKeep& keep) {
  return absl::StrCat("  keep job ", NameOf(keep.job(), keep.job_name()), ": ", keep.reason(), "\n");
}

// "  keep 9949 jobs: not needed, such as job 3 (heat): not needed: would free 1 node for 0.0 node-seconds
// (suspend)"
std::string KeptText(const v1::Plan& plan, bool all) {
  std::string out;
  std::vector<const v1::KeptGroup*> large;
  for (const v1::KeptGroup& group : plan.kept_groups()) {
    const auto named = std::count_if(plan.kept().begin(), plan.kept().end(),
                                     [&](const v1::PlanKeep& keep) { return IsIn(keep, group); });
    if (named < group.jobs() || (!all && group.jobs() > kMostNamedKept)) large.push_back(&group);
  }
  const auto is_folded = [&](const v1::PlanKeep& keep) {
    return !all &&
           std::any_of(large.begin(), large.end(), [&](const auto* group) { return IsIn(keep, *group); });
  };
  for (const v1::PlanKeep& keep : plan.kept()) {
    if (!is_folded(keep)) out += KeptLine(keep);
  }
  for (const v1::KeptGroup* group : large) {
    const auto first = std::find_if(plan.kept().begin(), plan.kept().end(),
                                    [&](const v1::PlanKeep& keep) { return IsIn(keep, *group); });
    absl::StrAppend(
        &out, "  keep ", group->jobs(), " jobs", all ? " in all" : "", ": ", RuleText(*group),
        first == plan.kept().end() || all
            ? ""
            : absl::StrCat(", such as job ", NameOf(first->job(), first->job_name()), ": ", first->reason()),
        "\n");
  }
  return out;
}

}  // namespace

std::string PlanText(const v1::Plan& plan, const Style& style, bool all) {
  std::string out;
  if (!plan.feasible()) {
    const std::string verdict = plan.queued() ? Paint("queued", "33", style) : Paint("refused", "31", style);
    absl::StrAppend(&out, verdict, ": ", plan.refusal(), "\n");
    if (plan.earliest_us() != 0) {
      absl::StrAppend(&out, "  the earliest start would be ", FormatTime(FromMicros(plan.earliest_us())),
                      " (", Relative(plan.earliest_us(), style.now), ")\n");
    }
  } else {
    absl::StrAppend(&out, Bold("plan", style), ": ", absl::StrJoin(plan.nodes(), ", "), " free ",
                    Relative(plan.predicted_start_us(), style.now));
    if (plan.start_by_us() != 0) {
      absl::StrAppend(&out, ", ", FormatDuration(Duration(plan.start_by_us() - plan.predicted_start_us())),
                      " before the deadline");
    }
    absl::StrAppend(&out, ", for ", Seconds(plan.loss_node_seconds()), " node-seconds\n");
  }
  if (!plan.exact())
    absl::StrAppend(&out, "  too many combinations to look at them all: there may be a better one\n");
  for (const v1::PlanStep& step : plan.steps()) {
    absl::StrAppend(
        &out, "  ", Bold(MethodName(step.method()), style), " job ", NameOf(step.job(), step.job_name()),
        step.method() == v1::CHECKPOINT
            ? absl::StrCat(" to ", TierName(step.tier()), " storage, ", FormatBytes(Bytes{step.bytes()}))
            : "",
        step.begin_us() == 0 ? "" : absl::StrCat(", from ", FormatTime(FromMicros(step.begin_us())), " on"),
        ": ", step.reason(), "\n");
  }
  for (const v1::PlanWithout& without : plan.without()) out += WithoutText(plan, without);
  // An older controller knows no groups.
  if (!plan.kept_groups().empty()) return out + KeptText(plan, all);
  for (const v1::PlanKeep& keep : plan.kept()) out += KeptLine(keep);
  return out;
}

std::string ExplainText(const v1::ExplainResponse& explanation, const Style& style, bool all) {
  const v1::Job& job = explanation.job();
  const std::string why = WhyAndWhenText(job, style);
  std::string out = absl::StrCat("job ", NameOf(job.id(), job.spec().name()), " of ", job.spec().user(), ": ",
                                 job.state(), why.empty() ? "" : ": ", OneLogLine(why), "\n");
  if (const std::string command = CommandText(job.spec()); !command.empty())
    absl::StrAppend(&out, "command: ", command, "\n");
  if (job.spec().on_demand()) {
    absl::StrAppend(&out, "deadline ", FormatTime(FromMicros(job.spec().start_by_us())));
    if (job.first_started_us() != 0) {
      const Duration early(job.spec().start_by_us() - job.first_started_us());
      absl::StrAppend(&out, early >= Duration(0) ? ", started " + FormatDuration(early) + " before it"
                                                 : ", started " + FormatDuration(-early) + " after it");
    }
    absl::StrAppend(&out, "\n");
  }
  if (explanation.plans().empty()) absl::StrAppend(&out, "nothing was planned for it\n");
  for (int i = 0; i < explanation.plans_size(); ++i) {
    if (explanation.plans_size() > 1) absl::StrAppend(&out, i == 0 ? "first " : "then ");
    absl::StrAppend(&out, PlanText(explanation.plans(i), style, all));
  }
  return out;
}

std::string EventLine(const v1::Event& event) {
  return absl::StrFormat("%6d  %s  %-8s %-18s %s\n", event.seq(), FormatTime(FromMicros(event.at_us())),
                         event.job() == 0 ? "-" : absl::StrCat("job ", event.job()), event.kind(),
                         OneLogLine(event.text()));
}

}  // namespace siding::cli
