#include "controller/platform/slurm/client/queue.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace siding::slurm {
namespace {

constexpr int64_t kMostGpus = 2'000'000;  // more than a question may ask for, so that it is refused
constexpr int64_t kMostMemory = int64_t{1} << 60;
// Of the parts of a time limit: no more than can be added up.
constexpr int64_t kMostDays = 1'000'000;
constexpr int64_t kMostParts = 1'000'000'000;

}  // namespace

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

absl::StatusOr<std::optional<Duration>> ParseLimit(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET" || text == "INVALID" || text == "Partition_Limit" ||
      text == "N/A")
    return std::nullopt;
  const auto error = absl::InvalidArgumentError("time limit '" + text + "': expected DAYS-HH:MM:SS");
  std::string clock = text;
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string::npos) {
    if (!absl::SimpleAtoi(text.substr(0, dash), &days) || days < 0 || days > kMostDays) return error;
    clock = text.substr(dash + 1);
  }
  std::vector<int64_t> parts;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(clock, ':'))) {
    if (!absl::SimpleAtoi(part, &parts.emplace_back()) || parts.back() < 0 || parts.back() > kMostParts)
      return error;
  }
  // With days the first is hours, without them the last is seconds.
  if (dash != std::string::npos) {
    parts.resize(std::max<size_t>(parts.size(), 3));
  } else if (parts.size() < 2) {
    return error;
  } else if (parts.size() == 2) {
    parts.insert(parts.begin(), 0);
  }
  if (parts.size() != 3) return error;
  return std::min<Duration>(std::chrono::hours(24 * days + parts[0]) + std::chrono::minutes(parts[1]) +
                                std::chrono::seconds(parts[2]),
                            kLongestDuration);
}

bool IsUp(const std::string& node_state) {
  return node_state == "idle" || node_state == "mixed" || node_state == "allocated";
}

int GpusOf(const std::string& gres) {
  int64_t gpus = 0;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(gres, ','))) {
    // What is in parentheses says where they are.
    std::vector<std::string> words = absl::StrSplit(item.substr(0, item.find('(')), absl::ByAnyChar(":=/"));
    if (words.front() == "gres") words.erase(words.begin());
    if (words.empty() || words.front() != "gpu") continue;
    int count = 1;
    if (words.size() > 1 && (!absl::SimpleAtoi(words.back(), &count) || count < 0)) count = 1;
    gpus = std::min(gpus + count, kMostGpus);
  }
  return static_cast<int>(gpus);
}

void Complete(QueueJob& job, const Requested& requested) {
  const int64_t nodes = std::max(job.nodes, 1);
  const auto spread = [nodes](int whole) { return (whole + nodes - 1) / nodes; };
  if (job.gpus_per_node == 0) job.gpus_per_node = static_cast<int>(spread(requested.gpus_of_job));
  const int64_t cpus = std::max<int64_t>(1, spread(job.cpus));
  if (job.memory_per_node == Bytes{0} && job.cpus > 0)
    job.memory_per_node = Bytes{std::min(requested.memory_per_cpu.value, kMostMemory / cpus) * cpus};
  // One that runs or is suspended may have a priority of 0 as well.
  const bool waits = job.phase == JobPhase::kPending;
  job.held = waits && job.priority == 0;
  if (waits) job.started.reset();
  // One without a limit is said to end in a year.
  if (job.phase != JobPhase::kRunning || !job.limit) job.ends.reset();
  if (job.reason == "None") job.reason.clear();
}

absl::Status StatusOfMessage(const std::string& message) {
  using absl::StatusCode;
  // Parts of Slurm's own messages, which are the same in its library and its tools.
  static const std::vector<std::pair<const char*, StatusCode>> codes = {
      {"Invalid job id specified", StatusCode::kNotFound},
      {"Requested reservation is invalid", StatusCode::kNotFound},
      {"Access/permission denied", StatusCode::kPermissionDenied},
      {"Protocol authentication error", StatusCode::kPermissionDenied},
      {"Unable to contact slurm controller", StatusCode::kUnavailable},
      {"Socket timed out", StatusCode::kUnavailable},
      {"Connection refused", StatusCode::kUnavailable},
      {"Connection timed out", StatusCode::kUnavailable},
      {"Zero Bytes were transmitted", StatusCode::kUnavailable},
      {"in standby mode", StatusCode::kUnavailable},
      {"Job is pending execution", StatusCode::kFailedPrecondition},
      {"Job is no longer pending execution", StatusCode::kFailedPrecondition},
      {"Job is not pending nor running", StatusCode::kFailedPrecondition},
      {"Job is not running", StatusCode::kFailedPrecondition},
      {"Job is not suspended", StatusCode::kFailedPrecondition},
      {"Job is current suspended", StatusCode::kFailedPrecondition},
      {"Job/step already", StatusCode::kFailedPrecondition},
      {"Requested operation is presently disabled", StatusCode::kFailedPrecondition},
      {"Requested reservation is in use", StatusCode::kFailedPrecondition},
      {"Requested nodes are busy", StatusCode::kFailedPrecondition},
      {"Only batch jobs are accepted or processed", StatusCode::kFailedPrecondition},
      {"Invalid node name specified", StatusCode::kInvalidArgument},
      {"uplicate reservation", StatusCode::kAlreadyExists},
  };
  for (const auto& [part, code] : codes) {
    if (absl::StrContains(message, part)) return absl::Status(code, message);
  }
  return absl::InternalError(message);
}

}  // namespace siding::slurm
