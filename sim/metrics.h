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
  double lost_node_hours = 0;               // work that was done again because a job made way
  double failure_node_hours = 0;            // the same because a node failed
  double on_demand_failure_node_hours = 0;  // of these, of on-demand jobs
  double checkpoint_node_hours = 0;         // nodes writing images of those who make way
  double restore_node_hours = 0;            // nodes reading images
  double failure_restore_node_hours = 0;    // of these, after failures
  double stop_node_hours = 0;               // standing still for images on schedule
  double fault_node_hours = 0;              // page faults of tracked jobs
  double queue_node_hours = 0;              // nodes' worth of jobs that made way, until they had nodes again
  double preemption_efficiency = 0;  // nodes that requests used of those given up for them; 1 if none were
  double turnaround_mean = 0;        // batch, seconds
  double bounded_slowdown_mean = 0;  // batch; max(1, turnaround / max(runtime, 10 s))
  double bounded_slowdown_median = 0;
  double on_demand_wait_mean = 0;       // seconds
  double utilisation = 0;               // node-seconds held, of all until the last job ended
  double useful_utilisation = 0;        // of these, computed once
  double preemptions_per_job = 0;       // batch
  double checkpoint_interval_mean = 0;  // of jobs with images on schedule, seconds; 0: there are none
  double copy_interval_mean = 0;        // of copies of these images into shared storage; 0: there are none
  double bytes_written = 0, bytes_copied = 0;
  double planning_seconds = 0;
  double span = 0;

  double deadline_hit_rate() const { return on_demand == 0 ? 1 : double(met) / on_demand; }
  double deadline_hit_rate_where_feasible() const {
    return feasible == 0 ? 1 : double(met_of_feasible) / feasible;
  }
  // What it costs that nodes are taken away, and that they fail; and what images on schedule cost beside what
  // they save of both.
  double preemption_cost() const {
    return lost_node_hours + checkpoint_node_hours + restore_node_hours - failure_restore_node_hours;
  }
  double failure_cost() const { return failure_node_hours + failure_restore_node_hours; }
  double protection_cost() const { return stop_node_hours + fault_node_hours; }
  double instant_start_rate() const { return on_demand == 0 ? 1 : double(instant) / on_demand; }
};

Metrics Measure(const Workload& workload, const std::string& name, const Replayed& replayed);

}  // namespace siding::sim
