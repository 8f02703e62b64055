#include "cli/doctor/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/doctor/job_checks.h"
#include "cli/doctor/node_checks.h"
#include "cli/doctor/site_checks.h"
#include "cli/doctor/tier_checks.h"
#include "common/logging.h"

namespace siding::cli {
namespace {

constexpr int kWarningsExit = 1;
constexpr int kFaultsExit = 2;
constexpr size_t kMostNamed = 8;  // of those that have the same finding

using Check = Findings (*)(const Answers& answers);
constexpr Check kChecks[] = {ControllersAway,
                             PolicyProblems,
                             Clocks,
                             NoNodes,
                             NodesAway,
                             UnknownNodes,
                             FaultyNodes,
                             NodesKeptFree,
                             CriuProblems,
                             CriuLimits,
                             CriuVersions,
                             GpuProblems,
                             FenceProblems,
                             Certificates,
                             Strays,
                             TiersWithoutRoom,
                             TiersTooSmall,
                             TiersNotMeasured,
                             TiersInMemoryAlone,
                             SlowTiers,
                             UnknownBandwidth,
                             RestoresThatFail,
                             JobsThatNeedAWord,
                             JobsThatCannotGoOn,
                             BadCheckpoints};

const char* NameOf(Severity severity) { return severity == Severity::kFault ? "fault" : "warning"; }

bool IsFault(const Finding& finding) { return finding.severity == Severity::kFault; }

// Findings that say the same, and what they are about.
struct Group {
  Finding first;
  std::vector<std::string> about;
};

std::vector<Group> Grouped(const Findings& findings) {
  std::vector<Group> groups;
  std::map<std::tuple<Severity, std::string, std::string>, size_t> index;
  for (const Finding& finding : findings) {
    const auto [at, is_new] =
        index.try_emplace({finding.severity, finding.problem, finding.mend}, groups.size());
    if (is_new) groups.push_back({finding, {}});
    groups[at->second].about.push_back(finding.about);
  }
  return groups;
}

std::string AboutText(const std::vector<std::string>& about) {
  const auto named = about.begin() + static_cast<std::ptrdiff_t>(std::min(about.size(), kMostNamed));
  const std::string text = absl::StrJoin(about.begin(), named, ", ");
  return named == about.end() ? text : absl::StrCat(text, " and ", about.end() - named, " more");
}

// What agents and users have said is a line, and does nothing else to a terminal.
std::string GroupText(const Group& group) {
  const bool one = group.about.size() == 1;
  return absl::StrCat("  ", OneLogLine(AboutText(group.about)), ": ",
                      OneLogLine(one ? ProblemOf(group.first) : group.first.problem), "\n    ",
                      OneLogLine(one ? MendOf(group.first) : group.first.mend), "\n");
}

}  // namespace

Findings Examine(const Answers& answers) {
  Findings findings;
  for (const Check check : kChecks) {
    for (Finding& finding : check(answers)) findings.push_back(std::move(finding));
  }
  std::stable_partition(findings.begin(), findings.end(), IsFault);
  return findings;
}

std::string NotLookedAt(const Answers& answers) {
  if (answers.site.is_operator()) return "";
  return answers.site.user().empty()
             ? "the controller does not know you: no jobs and checkpoints were looked at"
             : "you are no operator: only your own jobs and checkpoints were looked at";
}

std::string FindingsText(const Findings& findings) {
  if (findings.empty()) return "nothing to mend\n";
  std::string text;
  std::string heading;
  for (const Group& group : Grouped(findings)) {
    const std::string severity = absl::StrCat(NameOf(group.first.severity), "s:\n");
    if (severity != heading) absl::StrAppend(&text, severity);
    heading = severity;
    absl::StrAppend(&text, GroupText(group));
  }
  return text;
}

std::string FindingsJson(const Findings& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"severity", NameOf(finding.severity)},
                    {"about", finding.about},
                    {"problem", ProblemOf(finding)},
                    {"mend", MendOf(finding)}});
  }
  // What agents have said may be no UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int ExitCodeOf(const Findings& findings) {
  if (findings.empty()) return 0;
  return std::any_of(findings.begin(), findings.end(), IsFault) ? kFaultsExit : kWarningsExit;
}

}  // namespace siding::cli
