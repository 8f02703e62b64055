#include "tests/simulation/kubernetes/agents.h"

#include "absl/strings/str_cat.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

void Agents::Draw(Duration heartbeat) {
  Random& random = lab_.random;
  options_.heartbeat = heartbeat;
  options_.dump = {1e6 * random.Between(50, 1000), random.Between(50ms, 1s), 0.1};
  options_.restore = {1e6 * random.Between(100, 1000), random.Between(50ms, 1s), 0.1};
}

void Agents::Start(const std::string& node) {
  House& house = houses_[node];
  if (house.agent || !house.there) return;
  PodAgentOptions options = options_;
  options.node = node;
  options.name = absl::StrCat("agent-", ++lives_);
  options.boot = absl::StrCat(node, "-", house.boots);
  house.agent = std::make_unique<PodAgent>(lab_, containers_, streams_, house.records, options);
}

void Agents::Kill(const std::string& node, Duration away) {
  House& house = houses_[node];
  if (!house.agent) return;
  lab_.trace(node, "its agent dies");
  house.agent.reset();
  lab_.timeline.After(away, [this, node] { Start(node); });
}

void Agents::CutOff(const std::string& node, Duration away) {
  House& house = houses_[node];
  if (!house.there || house.cut_off) return;
  lab_.trace(node, "its agent is cut off");
  house.cut_off = true;
  streams_.CutOff(NodeId(node));
  lab_.timeline.After(away, [this, node] {
    House& later = houses_[node];
    if (later.there && std::exchange(later.cut_off, false)) streams_.Reconnect(NodeId(node));
  });
}

void Agents::Hang(const std::string& node, bool deaf, Duration away) {
  if (!houses_[node].agent) return;
  houses_[node].agent->Hang(deaf);
  lab_.timeline.After(away, [this, node] {
    if (houses_[node].agent) houses_[node].agent->GoOn();
  });
}

void Agents::OnLost(const std::string& node, bool power, bool gone) {
  House& house = houses_[node];
  house.there = house.cut_off = false;
  streams_.CutOff(NodeId(node));
  if (!power) return;
  house.agent.reset();
  ++house.boots;
  // Another machine of its name, or the same one.
  if (gone && lab_.random.Chance(0.5)) house.records.clear();
}

void Agents::OnBack(const std::string& node) {
  houses_[node].there = true;
  streams_.Reconnect(NodeId(node));
  lab_.timeline.After(lab_.random.Between(100ms, 10s), [this, node] { Start(node); });
}

void Agents::CalmDown() {
  for (auto& [node, house] : houses_) {
    if (!house.there) continue;
    if (std::exchange(house.cut_off, false)) streams_.Reconnect(NodeId(node));
    if (house.agent)
      house.agent->GoOn();
    else
      Start(node);
  }
}

}  // namespace siding::simulation::pods
