#include "sim/efficiency.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "sim/protection_schedule.h"

namespace siding::sim {
namespace {

using nlohmann::json;

constexpr double kNoFailures = std::numeric_limits<double>::infinity();

// Where each value comes from.
json TermsJson(const EfficiencyTerms& t) {
  constexpr const char* kAssumed = "assumed";
  constexpr const char* kStops =
      "measured, not below the longest for 1 and 4 GiB, docs/results/checkpoint-stop.md";
  constexpr const char* kGpus = "measured for one GPU of 64 GiB, untracked, docs/results/gpu.md";
  const EfficiencyTerms usual;
  json terms = json::array();
  const auto add = [&](const char* name, auto EfficiencyTerms::*term, const char* from) {
    terms.push_back(
        {{"name", name}, {"value", t.*term}, {"from", t.*term == usual.*term ? from : "as given"}});
  };
  using Terms = EfficiencyTerms;
  add("nodes", &Terms::nodes, kAssumed);
  add("failures_per_gpu_year", &Terms::failures_per_gpu_year, kAssumed);
  add("memory_bytes", &Terms::memory, kAssumed);
  add("gpu_memory_bytes", &Terms::gpu_memory, kAssumed);
  add("gpu_drain_bytes_per_second", &Terms::gpu_drain, kGpus);
  add("gpu_refill_bytes_per_second", &Terms::gpu_refill, kGpus);
  add("host_bandwidth_bytes_per_second", &Terms::host_bandwidth, kAssumed);
  add("node_bandwidth_bytes_per_second", &Terms::node_bandwidth, kAssumed);
  add("shared_bandwidth_bytes_per_second", &Terms::shared_bandwidth, kAssumed);
  add("overhead_seconds", &Terms::overhead, kAssumed);
  add("image_stop_seconds", &Terms::image_stop, kStops);
  add("image_stop_seconds_per_gib", &Terms::image_stop_per_gib, kStops);
  add("written_share", &Terms::written_share, "assumed, also of what is on GPUs");
  add("page_fault_seconds", &Terms::page_fault, "measured, docs/admin/checkpoints.md");
  return terms;
}

}  // namespace

double Efficiency(const CheckpointWay& way, double mean_time_to_failure, double interval) {
  const double m = mean_time_to_failure;
  if (std::isinf(interval)) return std::isinf(m) ? 1 : 0;
  if (std::isinf(m)) return interval / (interval + way.stop);
  const double recovery = way.restore + way.latency - way.stop;
  return interval / (m * std::exp(recovery / m) * std::expm1((interval + way.stop) / m));
}

double BestInterval(const CheckpointWay& way, double mean_time_to_failure) {
  if (std::isinf(mean_time_to_failure)) return kNoFailures;
  // It is never longer than the mean time, and there is one maximum.
  constexpr double kGolden = 0.6180339887498949;
  constexpr double kLeast = 1e-3;
  const double least = std::max(kLeast, way.latency - way.stop);
  double low = std::log(least), high = std::log(std::max(least, mean_time_to_failure));
  for (int i = 0; i < 100; ++i) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    const bool left = Efficiency(way, mean_time_to_failure, std::exp(a)) >
                      Efficiency(way, mean_time_to_failure, std::exp(b));
    (left ? high : low) = left ? b : a;
  }
  return std::exp((low + high) / 2);
}

absl::Status Check(const EfficiencyTerms& t) {
  SIDING_RETURN_IF_ERROR(Expect(t.nodes >= 1, "nodes: expected 1 or more"));
  SIDING_RETURN_IF_ERROR(Expect(!t.gpus.empty() && *std::min_element(t.gpus.begin(), t.gpus.end()) >= 0,
                                "gpus: expected 0 or more"));
  SIDING_RETURN_IF_ERROR(Expect(!t.failures_per_node_year.empty(), "failure-rates: expected one at least"));
  for (const auto& [option, value] : {std::pair("gpu-drain", t.gpu_drain),
                                      {"gpu-refill", t.gpu_refill},
                                      {"host-bandwidth", t.host_bandwidth},
                                      {"node-bandwidth", t.node_bandwidth},
                                      {"shared-bandwidth", t.shared_bandwidth}})
    SIDING_RETURN_IF_ERROR(Expect(IsAmount(value), absl::StrCat(option, ": expected a number, more than 0")));
  for (const auto& [option, value] : {std::pair("memory", t.memory),
                                      {"gpu-memory", t.gpu_memory},
                                      {"gpu-failure-rate", t.failures_per_gpu_year},
                                      {"overhead", t.overhead},
                                      {"image-stop", t.image_stop},
                                      {"image-stop-per-gib", t.image_stop_per_gib},
                                      {"page-fault", t.page_fault}})
    SIDING_RETURN_IF_ERROR(Expect(IsTime(value), absl::StrCat(option, ": expected a number, 0 or more")));
  for (double rate : t.failures_per_node_year)
    SIDING_RETURN_IF_ERROR(Expect(IsTime(rate), "failure-rates: expected numbers, 0 or more"));
  return Expect(t.written_share >= 0 && t.written_share <= 1, "written-share: expected 0 to 1");
}

double MeanTimeToFailure(const EfficiencyTerms& t, int gpus, double failures_per_node_year) {
  const double rate = t.nodes * (failures_per_node_year + gpus * t.failures_per_gpu_year);
  return rate > 0 ? kYear / rate : kNoFailures;
}

std::vector<CheckpointWay> WaysOf(const EfficiencyTerms& t, int gpus) {
  const double on_gpus = gpus * t.gpu_memory, image = t.memory + on_gpus;
  const auto moved = [&](double bandwidth) {
    return std::max(t.gpu_memory / bandwidth, on_gpus / t.host_bandwidth);
  };
  const double drain = gpus > 0 ? moved(t.gpu_drain) : 0, refill = gpus > 0 ? moved(t.gpu_refill) : 0;
  const auto stored = [&](double share) {
    return share * image / std::min(t.node_bandwidth, t.shared_bandwidth / t.nodes);
  };
  const double restore = t.overhead + stored(1) + refill;
  const ImageRow& row = RowOf(t.written_share);
  const double faults = t.page_fault * t.written_share * t.memory / kPageSize;
  // One that shares pages is read and written once more before.
  const double united = restore + 2 * stored(1) * row.Sharing();
  const double whole = drain + t.overhead + stored(1) + refill;
  const double stop = drain + t.image_stop + t.image_stop_per_gib * t.memory / kGib + faults + refill;
  const double changed = stop + t.overhead + stored(row.MeanShare());
  return {{"whole", whole, whole, restore},
          {"changes", changed, changed, united},
          {"changes-beside", stop, changed, united}};
}

json EfficiencyJson(const EfficiencyTerms& t) {
  json rows = json::array();
  for (int gpus : t.gpus) {
    const std::vector<CheckpointWay> ways = WaysOf(t, gpus);
    for (double rate : t.failures_per_node_year) {
      const double mean = MeanTimeToFailure(t, gpus, rate);
      json row = {{"gpus", gpus}, {"failures_per_node_year", rate}, {"ways", json::array()}};
      if (!std::isinf(mean)) row["mean_time_to_failure"] = mean;
      for (const CheckpointWay& way : ways) {
        const double interval = BestInterval(way, mean);
        json its = {{"name", way.name},
                    {"stop", way.stop},
                    {"latency", way.latency},
                    {"restore", way.restore},
                    {"efficiency", Efficiency(way, mean, interval)}};
        if (!std::isinf(interval)) its["interval"] = interval;
        row["ways"].push_back(std::move(its));
      }
      rows.push_back(std::move(row));
    }
  }
  return {{"terms", TermsJson(t)}, {"rows", rows}};
}

std::string EfficiencyText(const json& result) {
  std::string text;
  for (const json& term : result.at("terms"))
    absl::StrAppendFormat(&text, "  %-34s %-14g %s\n", term.at("name").get<std::string>(),
                          term.at("value").get<double>(), term.at("from").get<std::string>());
  absl::StrAppend(
      &text,
      "a job on all nodes. Assumed: GPUs are drained and refilled at every image, all of a node at once. Not "
      "counted: the first\ntwo images after each restore stop a job for longer\n"
      "as built, jobs on GPUs are not tracked: they stand still until all of an image is written (whole).\n"
      "Both kinds of changes are as if they were tracked, which siding does not do yet\n"
      "by whole images, by changes, and by changes that are written while it computes, each at its best "
      "interval: the efficiency,\nand seconds: for which an image costs the job, until it counts, and the "
      "interval\n");
  absl::StrAppendFormat(&text, "%4s %15s %8s", "GPUs", "fail./node-year", "MTTF");
  for (const char* name : {"whole", "changes", "changes beside"})
    absl::StrAppendFormat(&text, "   %14s %6s %6s %5s", name, "costs", "counts", "every");
  text += "\n";
  for (const json& row : result.at("rows")) {
    const std::string mean = row.contains("mean_time_to_failure")
                                 ? absl::StrFormat("%.0f", row.at("mean_time_to_failure").get<double>())
                                 : "never";
    absl::StrAppendFormat(&text, "%4d %15g %8s", row.at("gpus").get<int>(),
                          row.at("failures_per_node_year").get<double>(), mean);
    for (const json& way : row.at("ways"))
      absl::StrAppendFormat(
          &text, "   %13.2f%% %6.1f %6.1f %5s", 100 * way.at("efficiency").get<double>(),
          way.at("stop").get<double>(), way.at("latency").get<double>(),
          way.contains("interval") ? absl::StrFormat("%.0f", way.at("interval").get<double>()) : "never");
    text += "\n";
  }
  return text;
}

}  // namespace siding::sim
