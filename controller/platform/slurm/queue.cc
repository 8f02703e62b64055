#include "controller/platform/slurm/queue.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/slurm/hostlist.h"

namespace siding::slurm {
namespace {

constexpr int kFields = 20;

JobPhase PhaseOf(const std::string& state) {
  static const std::map<std::string, JobPhase> kPhases = {
      {"PENDING", JobPhase::kPending},      {"REQUEUED", JobPhase::kPending},
      {"REQUEUE_HOLD", JobPhase::kPending}, {"REQUEUE_FED", JobPhase::kPending},
      {"SPECIAL_EXIT", JobPhase::kPending}, {"RESV_DEL_HOLD", JobPhase::kPending},
      {"CONFIGURING", JobPhase::kStarting}, {"RUNNING", JobPhase::kRunning},
      {"SIGNALING", JobPhase::kRunning},    {"RESIZING", JobPhase::kRunning},
      {"STAGE_OUT", JobPhase::kEnding},     {"SUSPENDED", JobPhase::kSuspended},
      {"STOPPED", JobPhase::kSuspended},    {"COMPLETING", JobPhase::kEnding},
      {"BOOT_FAIL", JobPhase::kEnded},      {"CANCELLED", JobPhase::kEnded},
      {"COMPLETED", JobPhase::kEnded},      {"DEADLINE", JobPhase::kEnded},
      {"FAILED", JobPhase::kEnded},         {"NODE_FAIL", JobPhase::kEnded},
      {"OUT_OF_MEMORY", JobPhase::kEnded},  {"PREEMPTED", JobPhase::kEnded},
      {"REVOKED", JobPhase::kEnded},        {"TIMEOUT", JobPhase::kEnded}};
  const auto found = kPhases.find(state);
  return found == kPhases.end() ? JobPhase::kUnknown : found->second;
}

std::string OrEmpty(const std::string& text) { return text == "(null)" || text == "N/A" ? "" : text; }

template <class Number>
absl::Status Take(const std::string& what, const std::string& text, Number& number) {
  if (absl::SimpleAtoi(text, &number)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " '", text, "' is no number"));
}

absl::Status TakeTime(const std::string& what, const std::string& text, std::optional<Time>& time) {
  if (text == "N/A" || text == "Unknown" || text.empty()) return absl::OkStatus();
  int64_t seconds = 0;
  SIDING_RETURN_IF_ERROR(Take(what, text, seconds));
  time = FromMicros(seconds * 1'000'000);
  return absl::OkStatus();
}

absl::StatusOr<QueueJob> ParseLine(const std::string& line) {
  const std::vector<std::string> f = absl::StrSplit(line, absl::MaxSplits('|', kFields - 1));
  if (f.size() != kFields)
    return absl::InvalidArgumentError(absl::StrCat("expected ", kFields, " fields, found ", f.size()));
  QueueJob job;
  SIDING_RETURN_IF_ERROR(Take("job id", f[0], job.id));
  SIDING_RETURN_IF_ERROR(Take("array's job id", f[1], job.array));
  if (f[2] != "N/A") SIDING_RETURN_IF_ERROR(Take("array index", f[2], job.element.emplace()));
  SIDING_RETURN_IF_ERROR(Take("uid", f[3], job.uid));
  job.state = f[4];
  job.phase = PhaseOf(f[4]);
  job.partition = f[5];
  job.qos = OrEmpty(f[6]);
  job.account = OrEmpty(f[7]);
  SIDING_RETURN_IF_ERROR(Take("nodes", f[8], job.nodes));
  SIDING_RETURN_IF_ERROR(Take("cpus", f[9], job.cpus));
  job.gpus_per_node = GpusOf(f[10]);
  SIDING_ASSIGN_OR_RETURN(job.on, ExpandHostlist(f[11]));
  SIDING_ASSIGN_OR_RETURN(job.only_on, ExpandHostlist(f[12]));
  SIDING_RETURN_IF_ERROR(Take("priority", f[13], job.priority));
  SIDING_RETURN_IF_ERROR(TakeTime("submit time", f[14], job.submitted));
  SIDING_RETURN_IF_ERROR(TakeTime("start time", f[15], job.started));
  SIDING_RETURN_IF_ERROR(TakeTime("end time", f[16], job.ends));
  SIDING_ASSIGN_OR_RETURN(job.limit, ParseLimit(f[17]));
  job.reason = f[18] == "None" ? "" : f[18];
  job.name = f[19];
  return job;
}

}  // namespace

absl::StatusOr<std::optional<Duration>> ParseLimit(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET" || text == "INVALID" || text == "Partition_Limit" ||
      text == "N/A")
    return std::nullopt;
  const auto error = absl::InvalidArgumentError("time limit '" + text + "': expected DAYS-HH:MM:SS");
  std::string clock = text;
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string::npos) {
    if (!absl::SimpleAtoi(text.substr(0, dash), &days)) return error;
    clock = text.substr(dash + 1);
  }
  std::vector<int64_t> parts;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(clock, ':'))) {
    if (!absl::SimpleAtoi(part, &parts.emplace_back()) || parts.back() < 0) return error;
  }
  // With days the first is hours, without them the last is seconds.
  if (dash != std::string::npos) {
    parts.resize(std::max<size_t>(parts.size(), 3));
  } else if (parts.size() < 2) {
    return error;
  } else if (parts.size() == 2) {
    parts.insert(parts.begin(), 0);
  }
  if (parts.size() != 3 || days < 0) return error;
  return std::chrono::hours(24 * days + parts[0]) + std::chrono::minutes(parts[1]) +
         std::chrono::seconds(parts[2]);
}

int GpusOf(const std::string& gres) {
  int gpus = 0;
  // What is in parentheses says where they are.
  for (std::string item : std::vector<std::string>(absl::StrSplit(gres, ','))) {
    item = item.substr(0, item.find('('));
    std::vector<std::string> words = absl::StrSplit(item, ':');
    if (words.front() == "gres") words.erase(words.begin());
    if (words.empty() || words.front() != "gpu") continue;
    int count = 1;
    if (words.size() > 1 && !absl::SimpleAtoi(words.back(), &count)) count = 1;
    gpus += count;
  }
  return gpus;
}

absl::StatusOr<std::vector<QueueJob>> ParseQueue(const std::string& text) {
  std::vector<QueueJob> jobs;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    if (line.empty()) continue;
    auto job = ParseLine(line);
    if (!job.ok()) return Annotate(job.status(), absl::StrCat("squeue, line ", number));
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

}  // namespace siding::slurm
