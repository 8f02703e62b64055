// Random small clusters, with jobs on several nodes and nodes with several jobs, for tests that compare
// plans.
#pragma once

#include <chrono>
#include <random>
#include <utility>

#include "planner/small_cluster.h"

namespace siding::test {

struct Instance {
  Snapshot snapshot;
  Request request;
  Policy policy = NoMargin();
};

// Nodes of `slots` slots, jobs on one to three of them, limits that often bind.
inline Instance RandomInstance(std::mt19937& random, int slots, int most_nodes = 4, int most_jobs = 5) {
  const auto upto = [&](int n) { return int(random() % unsigned(n + 1)); };
  Instance x;
  x.snapshot = MakeSnapshot(2 + upto(most_nodes - 2), {});
  for (NodeView& node : x.snapshot.nodes) {
    node.capacity = node.free = {slots, Bytes{1024 * kMiB}, 2};
    node.ram_available = Bytes{(100 + 100 * upto(5)) * kMiB};
    node.local_disk_free = Bytes{100 * upto(4) * kMiB};
    if (upto(4) == 0) node.local = {};
  }
  const int jobs = 1 + upto(most_jobs - 1);
  for (int j = 1; j <= jobs; ++j) {
    std::vector<int> on;
    const Resources holds{1 + upto(slots - 1), Bytes{100 * upto(3) * kMiB}, upto(5) == 0 ? 1 : 0};
    for (size_t n = 0; n < x.snapshot.nodes.size(); ++n) {
      if (on.size() < 3 && upto(1) == 0 && x.snapshot.nodes[n].free.Covers(holds)) on.push_back(int(n));
    }
    if (on.empty()) continue;
    MethodSet methods;
    for (Method m : kAllMethods)
      if (upto(2) > 0) methods.Add(m);
    JobView job = MakeJob(j, on, methods);
    job.per_node = holds;
    for (Bytes& b : job.memory) b = Bytes{(1 + upto(400)) * kMiB};
    job.durable_at = kNow - std::chrono::milliseconds(upto(60000));
    job.kill_grace = std::chrono::seconds(upto(12));
    job.app_grace = std::chrono::seconds(1 + upto(12));
    if (upto(7) == 0)
      job.releasing_at = kNow + std::chrono::seconds(upto(12)),
      job.releasing_for = JobId(upto(1) ? 0 : 98 + upto(1));
    for (int n : on) x.snapshot.nodes[n].free -= holds;
    x.snapshot.jobs.push_back(std::move(job));
  }
  x.snapshot.shared.bytes_per_second = 50.0 * kMiB * upto(3);
  x.snapshot.shared.in_flight = Bytes{100 * upto(2) * kMiB};
  x.policy.budget_steps = 3 + upto(8);
  const int nodes = 1 + upto(int(x.snapshot.nodes.size()) - 1);
  x.request = MakeRequest(nodes, std::chrono::milliseconds(upto(14000)));
  x.request.per_node = {1 + upto(slots - 1), Bytes{200 * upto(3) * kMiB}, upto(5) == 0 ? 1 : 0};
  return x;
}

// Jobs that are left alone for a while, and some that end by themselves.
inline void AddGuards(std::mt19937& random, Instance& x) {
  const auto upto = [&](int n) { return int(random() % unsigned(n + 1)); };
  const auto moment = [&] { return std::chrono::milliseconds(upto(12000)); };
  x.policy.min_runtime = moment();
  x.policy.cooldown = moment();
  for (JobView& job : x.snapshot.jobs) {
    job.running_since = kNow - moment();
    if (upto(1)) job.last_preempted = kNow - moment();
    if (upto(3) == 0) job.saved_by = kNow + moment();
    if (upto(5) == 0) job.kind = JobKind::kOnDemand;
    if (upto(job.kind == JobKind::kOnDemand ? 1 : 5) == 0) job.ends_at = kNow + moment();
  }
}

}  // namespace siding::test
