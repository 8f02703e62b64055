// A small cluster that tests of the planner begin with.
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"
#include "model/snapshot.h"

namespace siding::test {

inline constexpr Time kNow = Time(std::chrono::seconds(1'000'000));
inline constexpr int64_t kMiB = 1 << 20;

inline NodeView MakeNode(int i) {
  NodeView node;
  node.id = NodeId("n" + std::to_string(i));
  node.capacity = {1, Bytes{1024 * kMiB}, 0};
  node.free = {0, Bytes{1024 * kMiB}, 0};
  node.ram_available = Bytes{1024 * kMiB};
  node.local_disk_free = Bytes{1024 * kMiB};
  node.local = {{100.0 * kMiB, std::chrono::milliseconds(100)},
                {200.0 * kMiB, std::chrono::milliseconds(100)}};
  node.shared = {{50.0 * kMiB, std::chrono::milliseconds(100)},
                 {50.0 * kMiB, std::chrono::milliseconds(100)}};
  return node;
}

// Runs for 1000 s, so killing it is dear; holds one slot and no reserved memory on each node.
inline JobView MakeJob(int id, const std::vector<int>& nodes, MethodSet methods) {
  JobView job;
  job.id = JobId(id);
  for (int n : nodes) job.nodes.push_back(NodeId("n" + std::to_string(n)));
  job.per_node = {1, Bytes{0}, 0};
  job.methods = methods;
  job.memory.assign(nodes.size(), Bytes{100 * kMiB});
  job.running_since = job.durable_at = kNow - std::chrono::seconds(1000);
  job.app_grace = std::chrono::seconds(5);
  job.kill_grace = std::chrono::seconds(2);
  return job;
}

inline Snapshot MakeSnapshot(int nodes, std::vector<JobView> jobs) {
  Snapshot snapshot;
  snapshot.now = kNow;
  for (int i = 0; i < nodes; ++i) snapshot.nodes.push_back(MakeNode(i));
  snapshot.jobs = std::move(jobs);
  snapshot.shared.bytes_per_second = 100.0 * kMiB;
  return snapshot;
}

inline Request MakeRequest(int nodes, Duration start_in = std::chrono::seconds(60)) {
  return {JobId(99), nodes, {1, Bytes{0}, 0}, kNow + start_in};
}

inline Policy NoMargin() {
  Policy policy;
  policy.margin = std::chrono::seconds(0);
  return policy;
}

}  // namespace siding::test
