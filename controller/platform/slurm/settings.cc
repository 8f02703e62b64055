#include "controller/platform/slurm/settings.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spank/step_wire.h"

namespace siding::slurm {
namespace {

constexpr int64_t kDefaultExpiry = 120;  // seconds, Slurm's own
constexpr int64_t kLongestExpiry = 365 * 86400;

std::map<std::string, std::string> Lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits('=', 1));
    lines.emplace(absl::StripAsciiWhitespace(pair.first), absl::StripAsciiWhitespace(pair.second));
  }
  return lines;
}

// "99,100-102"
std::vector<int> ParseExits(const std::string& text) {
  std::vector<int> exits;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::pair<std::string, std::string> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second, &last)) last = first;
    for (int code = first; code <= std::min(last, 255); ++code) exits.push_back(code);
  }
  return exits;
}

int64_t ExpiryOf(const std::string& auth_info) {
  int64_t seconds = kDefaultExpiry;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(auth_info, ','))) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t said = 0;
    if (pair.first == "cred_expire" && absl::SimpleAtoi(pair.second, &said))
      seconds = std::clamp<int64_t>(said, 0, kLongestExpiry);
  }
  return seconds;
}

}  // namespace

absl::StatusOr<Settings> ParseSettings(const std::string& text) {
  auto lines = Lines(text);
  Settings settings;
  settings.version = lines["SLURM_VERSION"];
  if (settings.version.empty())
    return absl::InvalidArgumentError("scontrol show config: the line SLURM_VERSION is missing");
  settings.cluster = lines["ClusterName"];
  settings.requeue_exits = ParseExits(lines["RequeueExit"]);
  settings.keeps_output = lines["JobFileAppend"] == "1";
  settings.requeue_delay = std::chrono::seconds(ExpiryOf(lines["AuthInfo"]) + 1);
  return settings;
}

std::vector<std::string> ProblemsOf(const Settings& settings) {
  std::vector<std::string> problems;
  const auto& exits = settings.requeue_exits;
  if (std::find(exits.begin(), exits.end(), spank::kRequeueExit) == exits.end()) {
    problems.push_back(absl::StrCat("RequeueExit lacks ", spank::kRequeueExit,
                                    ": jobs that leave after a checkpoint would be taken for failed"));
  }
  if (!settings.keeps_output)
    problems.push_back(
        "JobFileAppend is not 1: a requeue empties the output file, and the restore is refused");
  return problems;
}

}  // namespace siding::slurm
