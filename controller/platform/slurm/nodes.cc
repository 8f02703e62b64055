#include "controller/platform/slurm/nodes.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/slurm/queue.h"

namespace siding::slurm {
namespace {

constexpr int kFields = 7;

// Behind the state: "*" does not answer, "~" "#" "!" "%" "@" "^" power, "$" reserved for maintenance, "-"
// planned.
constexpr char kMarks[] = "*~#!%$@^-";

bool IsDown(const std::string& state, bool answers) {
  for (const char* word : {"down", "fail", "failing", "unknown", "reboot", "power", "future"}) {
    if (state.rfind(word, 0) == 0) return true;
  }
  return !answers;
}

bool IsDrained(const std::string& state) {
  return state.rfind("drain", 0) == 0 || state == "maint" || state == "reserved";
}

// "allocated/idle/other/total"
absl::Status TakeCpus(const std::string& text, QueueNode& node) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() == 4 && absl::SimpleAtoi(parts[0], &node.cpus_used) &&
      absl::SimpleAtoi(parts[3], &node.cpus))
    return absl::OkStatus();
  return absl::InvalidArgumentError("cpus '" + text + "': expected ALLOCATED/IDLE/OTHER/TOTAL");
}

absl::StatusOr<QueueNode> ParseLine(const std::string& line) {
  const std::vector<std::string> f = absl::StrSplit(line, absl::MaxSplits('|', kFields - 1));
  if (f.size() != kFields)
    return absl::InvalidArgumentError(absl::StrCat("expected ", kFields, " fields, found ", f.size()));
  QueueNode node;
  node.id = NodeId(f[0]);
  const size_t marks = f[1].find_first_of(kMarks);
  node.state = f[1].substr(0, marks);
  const bool answers = marks == std::string::npos || f[1].find('*', marks) == std::string::npos;
  node.up = !IsDown(node.state, answers);
  node.drained = IsDrained(node.state);
  SIDING_RETURN_IF_ERROR(TakeCpus(f[2], node));
  int64_t megabytes = 0;
  if (!absl::SimpleAtoi(f[3], &megabytes))
    return absl::InvalidArgumentError("memory '" + f[3] + "' is no number of MiB");
  node.memory = Bytes{megabytes << 20};
  node.gpus = GpusOf(f[4]);
  node.partitions = {f[5].substr(0, f[5].find('*'))};  // the default one has a star
  node.reason = f[6] == "none" ? "" : f[6];
  return node;
}

}  // namespace

absl::StatusOr<std::vector<QueueNode>> ParseNodes(const std::string& text) {
  std::map<std::string, QueueNode> by_name;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    if (line.empty()) continue;
    auto node = ParseLine(line);
    if (!node.ok()) return Annotate(node.status(), absl::StrCat("sinfo, line ", number));
    const auto [known, added] = by_name.try_emplace(node->id.value(), *node);
    if (!added) known->second.partitions.push_back(node->partitions.front());
  }
  std::vector<QueueNode> nodes;
  nodes.reserve(by_name.size());
  for (auto& [name, node] : by_name) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace siding::slurm
