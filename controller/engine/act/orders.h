// Orders to agents: kept back until what they follow from is durable, and sent at most once unless nothing
// changes for a while.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "controller/engine/engine.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// Not thread-safe: used under the engine's lock. What is passed in must outlive it.
class Orders {
 public:
  using Order = std::pair<NodeId, v1::ToAgent>;
  Orders(AgentLink& agents, const Clock& clock) : agents_(agents), clock_(clock) {}

  // Numbers of operations that belong to no job begin behind this one. They have to differ within one life of
  // the controller, and from those before it, whose answers may still arrive.
  void NumberFrom(int64_t op) { last_op_ = op; }
  int64_t FreshOp() { return ++last_op_; }

  // An order about a task, unless the same one was sent a moment ago.
  void Send(const NodeId& node, const TaskId& task, v1::ToAgent command) {
    SendTo(node, task, 0, std::move(command));
  }
  // Such an order about the task is the last that it was sent, a moment ago: Send() would do nothing.
  bool WasSent(const NodeId& node, const TaskId& task, int64_t op, v1::ToAgent::WhatCase what) const;
  // The same about a task of another cluster.
  void SendTo(const NodeId& node, const TaskId& task, int64_t cluster, v1::ToAgent command);
  // Any order.
  void Command(const NodeId& node, v1::ToAgent command);

  bool empty() const { return outbox_.empty(); }
  // What it follows from is durable. Returns orders that no agent could receive, which are not sent.
  std::vector<Order> SendOut();
  // What it follows from is not durable. Returns the numbers of the orders that are not sent; what was sent
  // before counts as not sent.
  std::vector<int64_t> Drop();

  // What the node, its task, or the job was sent counts as not sent.
  void Forget(const NodeId& node);
  void Forget(const NodeId& node, const TaskId& task) { sent_.erase({task, node, 0}); }
  void Forget(JobId job);

 private:
  struct Sent {
    int64_t op = 0;
    int kind = 0;
    v1::DumpBarrier barrier = v1::BARRIER_NONE;  // that may be passed
    Time at;
  };

  AgentLink& agents_;
  const Clock& clock_;
  std::vector<Order> outbox_;
  std::map<std::tuple<TaskId, NodeId, int64_t>, Sent> sent_;  // the last order about each task, by cluster
  int64_t last_op_ = 0;
};

}  // namespace siding
