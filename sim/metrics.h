// What a strategy is judged by. docs/admin/simulator.md has the definitions for people.
#pragma once

#include <string>
#include <vector>

#include "sim/replay.h"

namespace siding::sim {

struct Metrics {
  std::string name;
  int on_demand = 0, batch = 0;
  int feasible = 0;  // on-demand jobs for which a plan was found, or nodes were free
  int met = 0;       // first started by their deadline
  int met_of_feasible = 0;
  int instant = 0;  // first started within 10 s of their submission
  int preemptions = 0;
  double lost_node_hours = 0;        // work that was done again because a job made way
  double failure_node_hours = 0;     // the same because a node failed
  double checkpoint_node_hours = 0;  // nodes writing images
  double restore_node_hours = 0;     // nodes reading images
  double queue_node_hours = 0;       // nodes' worth of jobs that made way, until they had nodes again
  double preemption_efficiency = 0;  // nodes that requests used of those given up for them; 1 if none were
  double turnaround_mean = 0;        // batch, seconds
  double bounded_slowdown_mean = 0;  // batch; max(1, turnaround / max(runtime, 10 s))
  double bounded_slowdown_median = 0;
  double on_demand_wait_mean = 0;  // seconds
  double utilisation = 0;          // node-seconds held, of all until the last job ended
  double useful_utilisation = 0;   // of these, computed once
  double preemptions_per_job = 0;  // batch
  double bytes_written = 0;
  double planning_seconds = 0;
  double span = 0;

  double deadline_hit_rate() const { return on_demand == 0 ? 1 : double(met) / on_demand; }
  double deadline_hit_rate_where_feasible() const {
    return feasible == 0 ? 1 : double(met_of_feasible) / feasible;
  }
  double instant_start_rate() const { return on_demand == 0 ? 1 : double(instant) / on_demand; }
};

Metrics Measure(const Workload& workload, const std::string& name, const Replayed& replayed);

}  // namespace siding::sim
