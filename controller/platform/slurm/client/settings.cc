#include "controller/platform/slurm/client/settings.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spank/step_wire.h"

namespace siding::slurm {
namespace {

std::map<std::string, std::string> Lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits('=', 1));
    lines.emplace(absl::StripAsciiWhitespace(pair.first), absl::StripAsciiWhitespace(pair.second));
  }
  return lines;
}

bool Has(const std::vector<int>& exits, int code) {
  return std::find(exits.begin(), exits.end(), code) != exits.end();
}

}  // namespace

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

std::string ParsePath(const std::string& text) { return text == "(null)" ? "" : text; }

int64_t PriorityByAge(const std::string& type, int64_t weight) {
  // One more: a priority of less than 1 is shown as 1.
  return type == "priority/multifactor" ? weight + 1 : 0;
}

absl::StatusOr<Settings> ParseSettings(const std::string& text) {
  auto lines = Lines(text);
  if (lines["SLURM_VERSION"].empty())
    return absl::InvalidArgumentError("scontrol show config: the line SLURM_VERSION is missing");
  int64_t weight = 0;  // not said where it means nothing
  if (!absl::SimpleAtoi(lines["PriorityWeightAge"], &weight)) weight = 0;
  return Settings{ParseExits(lines["RequeueExit"]), ParseExits(lines["RequeueExitHold"]),
                  lines["JobRequeue"] == "1",       lines["JobFileAppend"] == "1",
                  ParsePath(lines["TaskProlog"]),   PriorityByAge(lines["PriorityType"], weight)};
}

std::vector<std::string> ProblemsOf(const Settings& settings) {
  std::vector<std::string> problems;
  if (!Has(settings.requeue_exits, spank::kRequeueExit))
    problems.push_back(absl::StrCat("RequeueExit lacks ", spank::kRequeueExit,
                                    ": a job that leaves after a checkpoint fails, and its image is lost"));
  if (!Has(settings.requeue_hold_exits, spank::kHoldExit))
    problems.push_back(absl::StrCat("RequeueExitHold lacks ", spank::kHoldExit,
                                    ": a job that cannot be restored fails, and its image is lost"));
  if (!settings.requeues)
    problems.push_back(
        "JobRequeue is not 1: a job that leaves after a checkpoint fails unless it was submitted with "
        "--requeue");
  if (!settings.keeps_output)
    problems.push_back(
        "JobFileAppend is not 1: a requeue empties the output file, and the restore is refused");
  if (!settings.task_prolog.empty())
    problems.push_back(
        absl::StrCat("TaskProlog is ", settings.task_prolog,
                     ": tasks of jobs with --siding-preemptible do not run it, and lack what it "
                     "puts into their environment"));
  return problems;
}

}  // namespace siding::slurm
