#include "controller/platform/slurm/words.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr size_t kMostHosts = 65536;

// At the commas that are not within brackets.
std::vector<std::string> SplitOutside(const std::string& text, char open, char close) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == open) - (c == close);
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

absl::Status Malformed(const std::string& hosts, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("node list '", hosts, "': ", why));
}

// "1-3" or "07", into the numbers as they are written, leading zeros included.
absl::Status ExpandRange(const std::string& range, std::vector<std::string>& numbers) {
  const std::vector<std::string> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  uint32_t first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) || last < first) {
    return Malformed(range, "expected a number or a range such as 1-3");
  }
  if (last - first >= kMostHosts) return Malformed(range, absl::StrCat("more than ", kMostHosts, " nodes"));
  for (uint64_t n = first; n <= last; ++n) {
    numbers.push_back(absl::StrFormat("%0*d", static_cast<int>(ends.front().size()), n));
  }
  return absl::OkStatus();
}

// One name with any number of brackets: the first is expanded here, those behind it by itself.
absl::Status ExpandName(const std::string& name, const std::string& prefix, std::vector<NodeId>& nodes) {
  const size_t open = name.find('[');
  if (open == std::string::npos) {
    if (name.find(']') != std::string::npos) return Malformed(name, "']' without '['");
    if (prefix.empty() && name.empty()) return Malformed(name, "expected a name");
    if (nodes.size() >= kMostHosts) return Malformed(name, absl::StrCat("more than ", kMostHosts, " nodes"));
    nodes.emplace_back(prefix + name);
    return absl::OkStatus();
  }
  const size_t close = name.find(']', open);
  if (close == std::string::npos) return Malformed(name, "'[' without ']'");
  std::vector<std::string> numbers;
  for (const std::string& range :
       std::vector<std::string>(absl::StrSplit(name.substr(open + 1, close - open - 1), ','))) {
    SIDING_RETURN_IF_ERROR(ExpandRange(range, numbers));
  }
  for (const std::string& number : numbers) {
    SIDING_RETURN_IF_ERROR(ExpandName(name.substr(close + 1), prefix + name.substr(0, open) + number, nodes));
  }
  return absl::OkStatus();
}

// "a100:4" or "4" or "" (one), behind "gpu:".
int CountOf(const std::string& amount) {
  const std::vector<std::string> parts = absl::StrSplit(amount, absl::ByAnyChar(":="));
  int count = 0;
  return absl::SimpleAtoi(parts.back(), &count) ? std::max(count, 0) : 1;
}

}  // namespace

absl::StatusOr<std::vector<NodeId>> ExpandHosts(const std::string& hosts) {
  std::vector<NodeId> nodes;
  if (hosts.empty() || hosts == "(null)" || hosts == "None") return nodes;
  for (const std::string& name : SplitOutside(hosts, '[', ']')) {
    SIDING_RETURN_IF_ERROR(ExpandName(name, "", nodes));
  }
  return nodes;
}

std::string JoinHosts(const std::vector<NodeId>& nodes) {
  return absl::StrJoin(nodes, ",", [](std::string* out, const NodeId& node) { out->append(node.value()); });
}

int CountGpus(const std::string& gres) {
  int gpus = 0;
  for (std::string one : SplitOutside(gres, '(', ')')) {
    one = one.substr(0, one.find('('));
    for (const char* prefix : {"gres:", "gres/"}) {
      if (absl::StartsWith(one, prefix)) one = one.substr(5);
    }
    if (one == "gpu" || absl::StartsWith(one, "gpu:") || absl::StartsWith(one, "gpu=")) {
      gpus += CountOf(one.substr(3));
    }
  }
  return gpus;
}

SlurmJobState JobStateOf(const std::string& word) {
  static const std::map<std::string, SlurmJobState> states = {
      {"PENDING", SlurmJobState::kPending},      {"REQUEUED", SlurmJobState::kPending},
      {"REQUEUE_FED", SlurmJobState::kPending},  {"REQUEUE_HOLD", SlurmJobState::kPending},
      {"SPECIAL_EXIT", SlurmJobState::kPending}, {"RESV_DEL_HOLD", SlurmJobState::kPending},
      {"SUSPENDED", SlurmJobState::kSuspended},  {"COMPLETING", SlurmJobState::kCompleting},
      {"STAGE_OUT", SlurmJobState::kCompleting}, {"COMPLETED", SlurmJobState::kEnded},
      {"CANCELLED", SlurmJobState::kEnded},      {"FAILED", SlurmJobState::kEnded},
      {"TIMEOUT", SlurmJobState::kEnded},        {"NODE_FAIL", SlurmJobState::kEnded},
      {"PREEMPTED", SlurmJobState::kEnded},      {"BOOT_FAIL", SlurmJobState::kEnded},
      {"DEADLINE", SlurmJobState::kEnded},       {"OUT_OF_MEMORY", SlurmJobState::kEnded},
      {"LAUNCH_FAILED", SlurmJobState::kEnded},  {"RECONFIG_FAIL", SlurmJobState::kEnded},
      {"REVOKED", SlurmJobState::kEnded},
  };
  const auto found = states.find(word);
  return found == states.end() ? SlurmJobState::kRunning : found->second;
}

std::string ToString(SlurmOrder order) {
  switch (order) {
    case SlurmOrder::kSuspend:
      return "suspend";
    case SlurmOrder::kResume:
      return "resume";
    case SlurmOrder::kRequeue:
      return "requeue";
    case SlurmOrder::kRequeueHeld:
      return "requeuehold";
    case SlurmOrder::kRelease:
      return "release";
    case SlurmOrder::kCancel:
      return "cancel";
  }
  return "";
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

}  // namespace siding
