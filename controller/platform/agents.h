// The way from the engine to the agents, and back.
#pragma once

#include "absl/status/status.h"
#include "common/ids.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// Thread-safe; must not call back into the engine from Send.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // Dropped if the node is not connected: the engine sends again when it is.
  virtual void Send(const NodeId& node, v1::ToAgent command) = 0;
};

// What is heard of agents: told by the gateway, or by who speaks for nodes without an agent; heard by the
// engine, or a test. Thread-safe. Of one node it hears OnConnected, messages, OnDisconnected, and only then
// of its next connection.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;
  // An error is the agent's refusal: it is not welcomed, and nothing more is heard of it.
  virtual absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) = 0;
  virtual void OnMessage(const NodeId& node, const v1::FromAgent& message) = 0;
  virtual void OnDisconnected(const NodeId& node) = 0;
};

}  // namespace siding
