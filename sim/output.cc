#include "sim/output.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/protection_schedule.h"

namespace siding::sim {
namespace {

using nlohmann::json;

json DrawnJson(const Trace& trace, const Workload& w) {
  const Parameters& p = w.parameters;
  json mix = json::object();
  for (const auto& [seconds, share] : p.notice_mix) mix[absl::StrCat(seconds)] = share;
  int on_demand = 0, own = 0;
  double on_demand_hours = 0, hours = 0, bytes = 0;
  for (const Job& job : w.jobs) {
    const double its = job.trace.nodes * job.trace.runtime / 3600;
    hours += its;
    bytes += job.bytes;
    on_demand += job.on_demand;
    if (job.on_demand) on_demand_hours += its;
    own += job.own_interval > 0;
  }
  return {{"seed", p.seed},
          {"nodes", w.nodes},
          {"jobs", w.jobs.size()},
          {"jobs_skipped", trace.skipped.size() + w.dropped.size()},
          {"node_hours", hours},
          {"on_demand_share", p.on_demand_share},
          {"on_demand_most_nodes", p.on_demand_most_nodes},
          {"on_demand_jobs", on_demand},
          {"on_demand_node_hours", on_demand_hours},
          {"notice_mix_seconds", mix},
          {"tolerance_seconds", p.tolerance},
          {"node_memory_bytes", p.node_memory},
          {"checkpoint_fraction", {p.checkpoint_least, p.checkpoint_most}},
          {"checkpoint_bytes_per_node_mean", bytes / static_cast<double>(w.jobs.size())},
          {"node_bandwidth_bytes_per_second", p.node_bandwidth},
          {"shared_bandwidth_bytes_per_second", p.shared_bandwidth},
          {"local_bandwidth_bytes_per_second", p.local_bandwidth},
          {"overhead_seconds", p.overhead},
          {"speed_spread", p.spread},
          {"kill_grace_seconds", p.kill_grace},
          {"self_checkpointing_share", p.self_checkpointing},
          {"self_checkpointing_jobs", own},
          {"failures_per_node_year", p.failures_per_node_year},
          {"failures", w.failures.size()},
          {"disks_lost_share", p.disks_lost},
          {"protect_on_demand", p.protect_on_demand},
          {"images_alone", p.images_alone},
          {"image_stop_seconds", p.image_stop},
          {"image_stop_seconds_per_gib", p.image_stop_per_gib},
          {"untracked_stop_seconds_per_gib", p.untracked_stop_per_gib},
          {"page_fault_seconds", p.page_fault},
          {"image_written_share", p.written_share},
          {"same_pages", p.same_pages},
          {"image_mean_share", RowOf(p).MeanShare()},
          {"tracked", IsTracked(p) ? "all jobs" : "none: each image is whole"}};
}

// If every job had begun when it was submitted.
double MostUseful(const Workload& w) {
  double work = 0, last = 0;
  for (const Job& job : w.jobs) {
    work += job.trace.nodes * job.trace.runtime;
    last = std::max(last, job.trace.submit + job.trace.runtime);
  }
  return work / (last * w.nodes);
}

json MetricsJson(const Metrics& m) {
  return {{"name", m.name},
          {"deadline_hit_rate", m.deadline_hit_rate()},
          {"deadline_hit_rate_where_feasible", m.deadline_hit_rate_where_feasible()},
          {"feasible", m.feasible},
          {"instant_start_rate", m.instant_start_rate()},
          {"on_demand_wait_mean", m.on_demand_wait_mean},
          {"lost_node_hours", m.lost_node_hours},
          {"failure_node_hours", m.failure_node_hours},
          {"on_demand_failure_node_hours", m.on_demand_failure_node_hours},
          {"checkpoint_node_hours", m.checkpoint_node_hours},
          {"restore_node_hours", m.restore_node_hours},
          {"failure_restore_node_hours", m.failure_restore_node_hours},
          {"stop_node_hours", m.stop_node_hours},
          {"fault_node_hours", m.fault_node_hours},
          {"preemption_cost_node_hours", m.preemption_cost()},
          {"failure_cost_node_hours", m.failure_cost()},
          {"protection_cost_node_hours", m.protection_cost()},
          {"cost_node_hours", m.preemption_cost() + m.failure_cost() + m.protection_cost()},
          {"queue_node_hours", m.queue_node_hours},
          {"preemptions", m.preemptions},
          {"preemptions_per_job", m.preemptions_per_job},
          {"preemption_efficiency", m.preemption_efficiency},
          {"turnaround_mean", m.turnaround_mean},
          {"bounded_slowdown_mean", m.bounded_slowdown_mean},
          {"bounded_slowdown_median", m.bounded_slowdown_median},
          {"utilisation", m.utilisation},
          {"useful_utilisation", m.useful_utilisation},
          {"useful_of_held", m.utilisation > 0 ? m.useful_utilisation / m.utilisation : 1},
          {"checkpoint_interval_mean", m.checkpoint_interval_mean},
          {"copy_interval_mean", m.copy_interval_mean},
          {"bytes_written", m.bytes_written},
          {"bytes_copied", m.bytes_copied},
          {"span", m.span},
          {"planning_seconds", m.planning_seconds}};
}

}  // namespace

json ToJson(const Trace& trace, const Workload& workload, const std::vector<Metrics>& metrics) {
  json strategies = json::array();
  for (const Metrics& m : metrics) strategies.push_back(MetricsJson(m));
  return {{"trace", trace.name},
          {"drawn", DrawnJson(trace, workload)},
          {"useful_utilisation_at_most", MostUseful(workload)},
          {"strategies", strategies}};
}

std::string ToCsv(const json& result) {
  std::string csv;
  const json& strategies = result.at("strategies");
  if (strategies.empty()) return csv;
  for (const auto& [key, value] : strategies[0].items()) absl::StrAppend(&csv, csv.empty() ? "" : ",", key);
  for (const json& strategy : strategies) {
    std::string line;
    for (const auto& [key, value] : strategies[0].items())
      absl::StrAppend(
          &line, line.empty() ? "" : ",",
          strategy.at(key).is_string() ? strategy.at(key).get<std::string>() : strategy.at(key).dump());
    absl::StrAppend(&csv, "\n", line);
  }
  return csv + "\n";
}

std::string ToTable(const json& result) {
  std::string table =
      absl::StrFormat("%-22s %8s %8s %8s %8s %8s %8s %7s %6s %11s\n", "", "of held", "useful", "in time",
                      "feasible", "instant", "slowdown", "victims", "effic.", "queue");
  std::string costs = absl::StrFormat("%-22s  %-34s   %-27s   %-26s\n%-22s", "node-hours", "preemption",
                                      "failures", "protection", "");
  absl::StrAppendFormat(&costs, "  %8s %7s %8s %8s   %8s %8s %9s   %8s %8s %8s   %9s %9s\n", "lost", "dump",
                        "restore", "all", "lost", "restore", "all", "stops", "faults", "all", "sum",
                        "interval");
  for (const json& s : result.at("strategies")) {
    const auto number = [&](const char* key) { return s.at(key).get<double>(); };
    const std::string name = s.at("name");
    absl::StrAppendFormat(&table, "%-22s %7.2f%% %7.2f%% %7.2f%% %7.2f%% %7.2f%% %8.2f %7d %6.2f %11.1f\n",
                          name, 100 * number("useful_of_held"), 100 * number("useful_utilisation"),
                          100 * number("deadline_hit_rate"), 100 * number("deadline_hit_rate_where_feasible"),
                          100 * number("instant_start_rate"), number("bounded_slowdown_mean"),
                          s.at("preemptions").get<int>(), number("preemption_efficiency"),
                          number("queue_node_hours"));
    const double after_failures = number("failure_restore_node_hours");
    absl::StrAppendFormat(
        &costs, "%-22s  %8.0f %7.0f %8.0f %8.0f   %8.0f %8.0f %9.0f   %8.0f %8.0f %8.0f   %9.0f %8.0fs\n",
        name, number("lost_node_hours"), number("checkpoint_node_hours"),
        number("restore_node_hours") - after_failures, number("preemption_cost_node_hours"),
        number("failure_node_hours"), after_failures, number("failure_cost_node_hours"),
        number("stop_node_hours"), number("fault_node_hours"), number("protection_cost_node_hours"),
        number("cost_node_hours"), number("checkpoint_interval_mean"));
  }
  return absl::StrCat(
      table,
      absl::StrFormat("useful: %.2f%% at most, if every job had begun when it was submitted\n",
                      100 * result.at("useful_utilisation_at_most").get<double>()),
      costs);
}

std::string DrawnText(const json& result) {
  std::string text = absl::StrCat("trace ", result.at("trace").get<std::string>(), "\n");
  for (const auto& [key, value] : result.at("drawn").items())
    absl::StrAppend(&text, "  ", key, " ", value.dump(), "\n");
  return text;
}

}  // namespace siding::sim
