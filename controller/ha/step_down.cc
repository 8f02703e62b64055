#include "controller/ha/step_down.h"

#include "absl/strings/str_cat.h"
#include "controller/ha/agent_contacts.h"

namespace siding {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(500);
constexpr size_t kMostNamed = 5;

std::string NamesOf(const std::vector<NodeId>& nodes) {
  std::string names;
  for (size_t i = 0; i < nodes.size() && i < kMostNamed; ++i)
    absl::StrAppend(&names, i > 0 ? ", " : "", nodes[i].value());
  if (nodes.size() > kMostNamed) absl::StrAppend(&names, " and ", nodes.size() - kMostNamed, " more");
  return names;
}

}  // namespace

// Agents on this machine come over the unix socket, and are not lost to it by any network.
StepDown::StepDown(const ControllerConfig& config, const Engine& engine)
    : config_(config),
      engine_(engine),
      possible_(config.standby && !config.listen.empty()),
      detector_(engine.Now()),
      next_(std::chrono::steady_clock::now()) {}

std::string StepDown::Check() {
  if (!possible_ || std::chrono::steady_clock::now() < next_) return "";
  next_ = std::chrono::steady_clock::now() + kAskEvery;
  std::map<NodeId, PartitionDetector::Contact> heard;
  engine_.Read([&](const ClusterState& state) {
    for (const auto& [node, observed] : state.observed_nodes)
      heard[node] = {observed.connected, observed.last_heard};
  });
  const std::vector<NodeId> unreached =
      detector_.Update(ReadAgentContacts(JournalOf(config_)), heard, engine_.Now());
  if (unreached.empty()) return "";
  return absl::StrCat("handed over: no agent reaches this controller, and those of ", NamesOf(unreached),
                      " reach one that stands by");
}

}  // namespace siding
