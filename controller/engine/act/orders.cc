#include "controller/engine/act/orders.h"

#include <utility>

#include "common/fault.h"
#include "common/message_limits.h"

namespace siding {
namespace {

// An order without effect for this long is sent again: the agent may have dropped it.
constexpr Duration kSendAgain = std::chrono::seconds(5);

}  // namespace

void Orders::SendTo(const NodeId& node, const TaskId& task, int64_t cluster, v1::ToAgent command) {
  Sent& sent = sent_[{task, node, cluster}];
  const Time now = clock_.Now();
  const int kind = static_cast<int>(command.what_case());
  const v1::DumpBarrier barrier = command.pass_barrier().barrier();
  if (sent.op == command.op() && sent.kind == kind && sent.barrier == barrier && now - sent.at < kSendAgain)
    return;
  sent = {command.op(), kind, barrier, now};
  command.mutable_task()->set_job(task.job.value());
  command.mutable_task()->set_incarnation(task.incarnation);
  command.mutable_task()->set_rank(task.rank);
  command.mutable_task()->set_cluster(cluster);
  Command(node, std::move(command));
}

bool Orders::WasSent(const NodeId& node, const TaskId& task, int64_t op, v1::ToAgent::WhatCase what) const {
  const auto sent = sent_.find({task, node, 0});
  return sent != sent_.end() && sent->second.op == op && sent->second.kind == static_cast<int>(what) &&
         clock_.Now() - sent->second.at < kSendAgain;
}

void Orders::Command(const NodeId& node, v1::ToAgent command) {
  outbox_.emplace_back(node, std::move(command));
}

std::vector<Orders::Order> Orders::SendOut() {
  std::vector<Order> too_long;
  for (auto& [node, command] : std::exchange(outbox_, {})) {
    if (command.ByteSizeLong() > kMostOrder) {
      too_long.emplace_back(node, std::move(command));
      continue;
    }
    FaultHere<"engine.order: an order is about to go to an agent">();
    agents_.Send(node, std::move(command));
  }
  return too_long;
}

std::vector<int64_t> Orders::Drop() {
  std::vector<int64_t> ops;
  for (const auto& [node, command] : outbox_) ops.push_back(command.op());
  outbox_.clear();
  sent_.clear();
  return ops;
}

void Orders::Forget(const NodeId& node) {
  std::erase_if(sent_, [&](const auto& sent) { return std::get<NodeId>(sent.first) == node; });
}

void Orders::Forget(JobId job) {
  const auto begin = sent_.lower_bound({TaskId{job, 0, 0}, NodeId(), 0});
  const auto end = sent_.lower_bound({TaskId{JobId(job.value() + 1), 0, 0}, NodeId(), 0});
  sent_.erase(begin, end);
}

}  // namespace siding
