#include "controller/platform/kubernetes/speak/pod_speaker.h"

#include "controller/platform/kubernetes/speak/pod_agents.h"
#include "controller/platform/kubernetes/speak/pod_nodes.h"

namespace siding::kubernetes {

std::unique_ptr<PodSpeaker> NewPodSpeaker(bool saves, AgentLink& agents, Duration heartbeat) {
  if (saves) return std::make_unique<PodNodes>(agents);
  return std::make_unique<PodAgents>(agents, heartbeat);
}

}  // namespace siding::kubernetes
