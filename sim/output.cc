#include "sim/output.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
          {"overhead_seconds", p.overhead},
          {"speed_spread", p.spread},
          {"kill_grace_seconds", p.kill_grace},
          {"self_checkpointing_share", p.self_checkpointing},
          {"self_checkpointing_jobs", own},
          {"failures_per_node_year", p.failures_per_node_year},
          {"failures", w.failures.size()}};
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
          {"checkpoint_node_hours", m.checkpoint_node_hours},
          {"restore_node_hours", m.restore_node_hours},
          {"queue_node_hours", m.queue_node_hours},
          {"preemptions", m.preemptions},
          {"preemptions_per_job", m.preemptions_per_job},
          {"preemption_efficiency", m.preemption_efficiency},
          {"turnaround_mean", m.turnaround_mean},
          {"bounded_slowdown_mean", m.bounded_slowdown_mean},
          {"bounded_slowdown_median", m.bounded_slowdown_median},
          {"utilisation", m.utilisation},
          {"useful_utilisation", m.useful_utilisation},
          {"bytes_written", m.bytes_written},
          {"span", m.span},
          {"planning_seconds", m.planning_seconds}};
}

}  // namespace

json ToJson(const Trace& trace, const Workload& workload, const std::vector<Metrics>& metrics) {
  json strategies = json::array();
  for (const Metrics& m : metrics) strategies.push_back(MetricsJson(m));
  return {{"trace", trace.name}, {"drawn", DrawnJson(trace, workload)}, {"strategies", strategies}};
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
  std::string table = absl::StrFormat("%-21s %8s %8s %8s %11s %10s %10s %10s %8s %6s %9s %7s\n", "strategy",
                                      "in time", "feasible", "instant", "lost node-h", "dump nd-h",
                                      "rest. nd-h", "queue nd-h", "victims", "effic.", "slowdown", "useful");
  for (const json& s : result.at("strategies")) {
    const auto number = [&](const char* key) { return s.at(key).get<double>(); };
    absl::StrAppendFormat(
        &table, "%-21s %7.2f%% %7.2f%% %7.2f%% %11.1f %10.1f %10.1f %10.1f %8d %6.2f %9.2f %6.2f%%\n",
        s.at("name").get<std::string>(), 100 * number("deadline_hit_rate"),
        100 * number("deadline_hit_rate_where_feasible"), 100 * number("instant_start_rate"),
        number("lost_node_hours"), number("checkpoint_node_hours"), number("restore_node_hours"),
        number("queue_node_hours"), s.at("preemptions").get<int>(), number("preemption_efficiency"),
        number("bounded_slowdown_mean"), 100 * number("useful_utilisation"));
  }
  return table;
}

std::string DrawnText(const json& result) {
  std::string text = absl::StrCat("trace ", result.at("trace").get<std::string>(), "\n");
  for (const auto& [key, value] : result.at("drawn").items())
    absl::StrAppend(&text, "  ", key, " ", value.dump(), "\n");
  return text;
}

}  // namespace siding::sim
