// For tests: what the engine would hear of agents, and agents of the engine.
#pragma once

#include <utility>
#include <vector>

#include "controller/platform/agents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {

inline const NodeId kNode("n1");

class Heard final : public AgentEvents {
 public:
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override {
    connected.push_back(node);
    last_hello = hello;
    return refuse ? absl::FailedPreconditionError("it has an agent") : absl::OkStatus();
  }
  void OnMessage(const NodeId&, const v1::FromAgent& message) override {
    if (message.has_report()) reports.push_back(message.report());
    if (message.has_result()) results.push_back(message.result());
    if (message.has_heartbeat()) heartbeats.push_back(message.heartbeat());
  }
  void OnDisconnected(const NodeId& node) override { gone.push_back(node); }
  // Since the last call.
  v1::TaskReport TheReport() {
    EXPECT_THAT(reports, testing::SizeIs(1));
    const v1::TaskReport report = reports.empty() ? v1::TaskReport() : reports.back();
    reports.clear();
    return report;
  }

  bool refuse = false;
  std::vector<NodeId> connected, gone;
  v1::Hello last_hello;
  std::vector<v1::TaskReport> reports;
  std::vector<v1::OpResult> results;
  std::vector<v1::Heartbeat> heartbeats;
};

class OrdersHeard final : public AgentLink {
 public:
  void Send(const NodeId& node, v1::ToAgent command) override {
    orders.emplace_back(node, std::move(command));
  }
  std::vector<NodeId> nodes() const {
    std::vector<NodeId> nodes;
    for (const auto& [node, order] : orders) nodes.push_back(node);
    return nodes;
  }
  std::vector<std::pair<NodeId, v1::ToAgent>> orders;
};

}  // namespace siding::kubernetes
