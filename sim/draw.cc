#include "sim/draw.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "model/checkpoint_interval.h"

namespace siding::sim {
namespace {

// The standard's generators are the same everywhere, its distributions are not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0; }
  double Between(double least, double most) { return least + (most - least) * Uniform(); }
  double Normal() { return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * M_PI * Uniform()); }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }

 private:
  std::mt19937_64 random_;
};

double NoticeOf(const std::map<double, double>& mix, double dice) {
  double sum = 0;
  for (const auto& [seconds, share] : mix) sum += share;
  double passed = 0;
  for (const auto& [seconds, share] : mix) {
    passed += share / sum;
    if (dice < passed) return seconds;
  }
  return mix.rbegin()->first;
}

Job DrawJob(const TraceJob& trace, const Parameters& p, int nodes, Dice& dice) {
  Job job;
  job.trace = trace;
  const bool chosen = dice.Uniform() < p.on_demand_share;
  job.on_demand = chosen && trace.nodes <= p.on_demand_most_nodes * nodes;
  job.notice = NoticeOf(p.notice_mix, dice.Uniform());
  job.bytes = p.node_memory * dice.Between(p.checkpoint_least, p.checkpoint_most);
  job.speed = std::exp(p.spread * dice.Normal());
  if (dice.Uniform() < p.self_checkpointing && p.failures_per_node_year > 0) {
    const double cost =
        p.overhead + std::max(job.bytes / p.node_bandwidth, job.bytes * trace.nodes / p.shared_bandwidth);
    const double mean_time = kYear / p.failures_per_node_year / trace.nodes;
    job.own_interval = ToSeconds(CheckpointInterval(FromSeconds(cost), FromSeconds(mean_time)));
  }
  return job;
}

// Of shares that are written in decimals, as 0.33:0.33:0.33.
constexpr double kShareError = 0.02;

}  // namespace

absl::Status Expect(bool good, const std::string& what) {
  return good ? absl::OkStatus() : absl::InvalidArgumentError(what);
}

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
bool IsAmount(double value) { return std::isfinite(value) && value > 0; }

absl::Status Check(const Parameters& p) {
  SIDING_RETURN_IF_ERROR(
      Expect(p.on_demand_share >= 0 && p.on_demand_share <= 1, "on-demand-share: expected 0 to 1"));
  SIDING_RETURN_IF_ERROR(Expect(p.on_demand_most_nodes > 0 && p.on_demand_most_nodes <= 1,
                                "on-demand-most-nodes: expected more than 0, at most 1"));
  double shares = 0;
  for (const auto& [seconds, share] : p.notice_mix) {
    SIDING_RETURN_IF_ERROR(
        Expect(IsTime(seconds) && IsTime(share), "notice-mix: expected numbers that are not negative"));
    shares += share;
  }
  SIDING_RETURN_IF_ERROR(Expect(std::abs(shares - 1) <= kShareError,
                                absl::StrCat("notice-mix: expected shares that add up to 1, got ", shares)));
  SIDING_RETURN_IF_ERROR(Expect(IsTime(p.tolerance), "tolerance: expected a time, not negative"));
  SIDING_RETURN_IF_ERROR(Expect(p.nodes >= 0, "nodes: expected 1 or more"));
  SIDING_RETURN_IF_ERROR(
      Expect(p.checkpoint_least >= 0 && p.checkpoint_least <= p.checkpoint_most && p.checkpoint_most <= 1,
             "checkpoint-fraction: expected LEAST:MOST between 0 and 1"));
  for (const auto& [option, value] : {std::pair("node-memory", p.node_memory),
                                      {"node-bandwidth", p.node_bandwidth},
                                      {"shared-bandwidth", p.shared_bandwidth},
                                      {"local-bandwidth", p.local_bandwidth}})
    SIDING_RETURN_IF_ERROR(Expect(IsAmount(value), absl::StrCat(option, ": expected a number, more than 0")));
  SIDING_RETURN_IF_ERROR(Expect(p.spread >= 0 && p.spread <= 2, "spread: expected 0 to 2"));
  SIDING_RETURN_IF_ERROR(
      Expect(p.self_checkpointing >= 0 && p.self_checkpointing <= 1, "self-checkpointing: expected 0 to 1"));
  SIDING_RETURN_IF_ERROR(
      Expect(IsTime(p.image_stop) && IsTime(p.image_stop_per_gib) && IsTime(p.untracked_stop_per_gib) &&
                 IsTime(p.page_fault),
             "image-stop, image-stop-per-gib, untracked-stop-per-gib and page-fault: expected a time, not "
             "negative"));
  SIDING_RETURN_IF_ERROR(
      Expect(p.written_share >= 0 && p.written_share <= 1, "written-share: expected 0 to 1"));
  SIDING_RETURN_IF_ERROR(Expect(p.disks_lost >= 0 && p.disks_lost <= 1, "disks-lost: expected 0 to 1"));
  return Expect(p.failures_per_node_year >= 0 && p.failures_per_node_year < 1e4,
                "failure-rate: expected 0 to 10000 a node and year");
}

double NodeTransferTime(const Parameters& p, double bytes) { return p.overhead + bytes / p.node_bandwidth; }

double LocalTransferTime(const Parameters& p, double bytes) { return p.overhead + bytes / p.local_bandwidth; }

double SharedPart(const Parameters& p, const Job& job, int machine) {
  const double nodes = job.trace.nodes;
  return std::min(nodes * p.node_bandwidth, p.shared_bandwidth * nodes / machine);
}

absl::StatusOr<Workload> Draw(const Trace& trace, const Parameters& parameters) {
  SIDING_RETURN_IF_ERROR(Check(parameters));
  Workload workload;
  workload.parameters = parameters;
  workload.nodes = parameters.nodes > 0 ? parameters.nodes : trace.nodes;
  if (workload.nodes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(trace.name, ": it does not say how many nodes the machine has; expected --nodes"));
  }
  Dice dice(parameters.seed);
  double last = 0;
  for (const TraceJob& job : trace.jobs) {
    const Job drawn = DrawJob(job, parameters, workload.nodes, dice);
    if (job.nodes > workload.nodes) {
      workload.dropped.push_back(
          absl::StrCat("a job of ", job.nodes, " nodes; the machine has ", workload.nodes));
      continue;
    }
    workload.jobs.push_back(drawn);
    last = std::max(last, job.submit + job.runtime);
  }
  if (workload.jobs.empty())
    return absl::InvalidArgumentError(absl::StrCat(trace.name, ": every job is larger than the machine"));
  if (parameters.failures_per_node_year > 0) {
    const double mean = kYear / parameters.failures_per_node_year / workload.nodes;
    // Of their own: whatever the share is, all else is drawn as ever, and a larger one loses more disks, no
    // others.
    Dice disks(~parameters.seed);
    double at = dice.Exponential(mean);
    while (at < last) {
      const int node = static_cast<int>(dice.Uniform() * workload.nodes);
      workload.failures.push_back({at, node, disks.Uniform() < parameters.disks_lost});
      at += dice.Exponential(mean);
    }
  }
  return workload;
}

}  // namespace siding::sim
