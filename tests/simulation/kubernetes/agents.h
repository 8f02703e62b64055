// The agents of a simulated cluster's nodes: they die and are started again, their streams break, and they
// hang.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/simulation/kubernetes/pod_agent.h"

namespace siding::simulation::pods {

// Not thread-safe.
class Agents {
 public:
  Agents(Lab& lab, Containers& containers, simulation::Network& streams)
      : lab_(lab), containers_(containers), streams_(streams) {}

  // Of all agents.
  void Draw(Duration heartbeat);
  void Start(const std::string& node);
  // kill -9: it is started again after so long.
  void Kill(const std::string& node, Duration away);
  void CutOff(const std::string& node, Duration away);
  void Hang(const std::string& node, bool deaf, Duration away);
  void BreakStream(const std::string& node) { streams_.BreakOneOf(NodeId(node)); }
  // Of the machines.
  void OnLost(const std::string& node, bool power, bool gone);
  void OnBack(const std::string& node);
  // All are there, and say what they have to.
  void CalmDown();

 private:
  struct House {
    std::map<TaskId, agent::TaskRecord> records;
    std::unique_ptr<PodAgent> agent;
    bool there = true;     // its machine is
    bool cut_off = false;  // for itself, as long as its machine is not
    int boots = 1;
  };
  Lab& lab_;
  Containers& containers_;
  simulation::Network& streams_;
  PodAgentOptions options_;
  std::map<std::string, House> houses_;
  int lives_ = 0;
};

}  // namespace siding::simulation::pods
