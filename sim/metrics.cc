#include "sim/metrics.h"

#include <algorithm>

namespace siding::sim {
namespace {

constexpr double kBound = 10;    // seconds: shorter jobs count as this long for the slowdown
constexpr double kInstant = 10;  // seconds

struct Batch {
  double turnaround = 0;
  std::vector<double> slowdowns;
};

void AddOnDemand(const Job& job, const JobResult& result, double tolerance, Metrics& m) {
  ++m.on_demand;
  m.feasible += result.feasible;
  const bool met = result.first_start >= 0 && result.first_start <= job.start_by() + tolerance;
  m.met += met;
  m.met_of_feasible += met && result.feasible;
  m.instant += result.first_start >= 0 && result.first_start <= job.trace.submit + kInstant;
  m.on_demand_wait_mean += result.first_start - job.trace.submit;
}

void AddBatch(const Job& job, const JobResult& result, Batch& batch, Metrics& m) {
  ++m.batch;
  const double turnaround = result.end - job.trace.submit;
  batch.turnaround += turnaround;
  batch.slowdowns.push_back(std::max(1.0, turnaround / std::max(job.trace.runtime, kBound)));
  m.preemptions += result.preemptions;
  m.queue_node_hours += result.displaced * job.trace.nodes / 3600;
}

}  // namespace

Metrics Measure(const Workload& workload, const std::string& name, const Replayed& replayed) {
  Metrics m;
  m.name = name;
  Batch batch;
  double useful = 0;
  for (size_t j = 0; j < workload.jobs.size(); ++j) {
    const Job& job = workload.jobs[j];
    const JobResult& result = replayed.jobs[j];
    if (job.on_demand) {
      AddOnDemand(job, result, workload.parameters.tolerance, m);
    } else {
      AddBatch(job, result, batch, m);
    }
    m.lost_node_hours += result.redone * job.trace.nodes / 3600;
    m.failure_node_hours += result.redone_failures * job.trace.nodes / 3600;
    if (job.on_demand) m.on_demand_failure_node_hours += result.redone_failures * job.trace.nodes / 3600;
    m.checkpoint_node_hours += result.dumping * job.trace.nodes / 3600;
    m.restore_node_hours += result.restoring * job.trace.nodes / 3600;
    m.failure_restore_node_hours += result.restoring_failures * job.trace.nodes / 3600;
    m.stop_node_hours += result.stopped * job.trace.nodes / 3600;
    m.fault_node_hours += result.slowed * job.trace.nodes / 3600;
    m.bytes_written += result.bytes_written;
    m.bytes_copied += result.bytes_copied;
    useful += job.trace.runtime * job.trace.nodes;
  }
  m.span = replayed.span;
  m.checkpoint_interval_mean = replayed.interval;
  m.copy_interval_mean = replayed.copy_interval;
  m.planning_seconds = replayed.planning;
  const double all = replayed.span * workload.nodes;
  m.utilisation = all > 0 ? replayed.busy / all : 0;
  m.useful_utilisation = all > 0 ? useful / all : 0;
  m.preemption_efficiency =
      replayed.given_up_nodes == 0 ? 1 : double(replayed.used_nodes) / replayed.given_up_nodes;
  if (m.on_demand > 0) m.on_demand_wait_mean /= m.on_demand;
  if (m.batch == 0) return m;
  m.turnaround_mean = batch.turnaround / m.batch;
  m.preemptions_per_job = double(m.preemptions) / m.batch;
  for (double s : batch.slowdowns) m.bounded_slowdown_mean += s / m.batch;
  const auto middle = batch.slowdowns.begin() + m.batch / 2;
  std::nth_element(batch.slowdowns.begin(), middle, batch.slowdowns.end());
  m.bounded_slowdown_median = *middle;
  return m;
}

}  // namespace siding::sim
