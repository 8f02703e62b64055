// One life of the agent of a node of a simulated cluster: its pods (agent/node/local_task_host.cc,
// agent/pods/container_starts.cc) and its stream. Destroying it is kill -9.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/simulation/agent_stream.h"
#include "tests/simulation/kubernetes/hosted_pod.h"

namespace siding::simulation::pods {

struct PodAgentOptions {
  std::string node;
  std::string name;  // drawn by each agent when it starts
  std::string boot;
  Rate dump;
  Rate restore;
  Duration heartbeat{0};
};

// Not thread-safe.
class PodAgent final : public ContainerOwner {
 public:
  // `records`: what the node's disk has of an agent before it.
  PodAgent(Lab& lab, Containers& containers, simulation::Network& network,
           std::map<TaskId, agent::TaskRecord>& records, PodAgentOptions options);
  ~PodAgent() override;

  void Hang(bool deaf) { stream_.Hang(deaf); }
  void GoOn() { stream_.GoOn(); }
  absl::StatusOr<std::optional<ImageName>> OnStarting(const std::string& uid, const std::string& id) override;
  void OnMade(const std::string& uid, const std::string& id, const absl::StatusOr<int>& made) override;

 private:
  void Execute(const v1::ToAgent& command);
  void Forget(const TaskId& id);
  void Answer(const v1::ToAgent& command);
  v1::Hello Hello();
  v1::Heartbeat Heartbeat();
  // The one that was offered last. Null: none is.
  HostedPod* OwnerOf(const std::string& uid);

  Lab& lab_;
  Containers& containers_;
  const PodAgentOptions options_;
  PodHost host_;
  std::map<TaskId, std::unique_ptr<HostedPod>> pods_;
  std::map<std::string, TaskId> owners_;  // by uid
  std::set<std::string> let_;             // uids of pods that are no tasks
  AgentStream stream_;                    // last: what it still sends is lost
};

}  // namespace siding::simulation::pods
