// What share of its time a job that has the whole machine computes, by how it is checkpointed, how dense its
// nodes are with GPUs, and how often they fail. A model: nothing is replayed. Pure functions; times are
// seconds.
//
// The expected time to the end where failures are exponential, also while it is restored: J. T. Daly, "A
// higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
// Systems 22 (2006). An image that counts only later, while the job computes, makes every failure dearer by
// that time: N. H. Vaidya, "Impact of checkpoint latency on overhead ratio of a checkpointing scheme", IEEE
// Transactions on Computers 46 (1997); where the job stands still all the while both are the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sim/draw.h"

namespace siding::sim {

struct CheckpointWay {
  std::string name;
  double stop = 0;     // the job stands still, or has page faults
  double latency = 0;  // from the order until the image counts, the stop included
  double restore = 0;
};

// 0 if it never ends. `mean_time_to_failure` may be infinite. `interval`: of work.
double Efficiency(const CheckpointWay& way, double mean_time_to_failure, double interval);
// The one with the highest efficiency in which an image counts before the next one is begun. Without failures
// there are no checkpoints: infinite.
double BestInterval(const CheckpointWay& way, double mean_time_to_failure);

struct EfficiencyTerms {
  int nodes = 4000;
  std::vector<int> gpus = {1, 2, 4, 8, 16};                     // of a node: densities
  std::vector<double> failures_per_node_year = {0.05, 0.2, 1};  // GPUs left out
  double failures_per_gpu_year = 0.05;
  double memory = 64 * kGib;       // bytes in an image of a node, GPUs left out
  double gpu_memory = 64 * kGib;   // of each GPU
  double gpu_drain = 3.25e9;       // bytes/s of one GPU into RAM
  double gpu_refill = 8.1e9;       // and back
  double host_bandwidth = 50e9;    // bytes/s of all GPUs of a node together
  double node_bandwidth = 10e9;    // bytes/s of a node to and from storage
  double shared_bandwidth = 5e12;  // bytes/s of all nodes together
  double overhead = 2;             // seconds of every image and of every restore
  double image_stop = Parameters{}.image_stop, image_stop_per_gib = Parameters{}.image_stop_per_gib;
  double written_share = Parameters{}.written_share;
  double page_fault = Parameters{}.page_fault;
};

// Impossible values are named.
absl::Status Check(const EfficiencyTerms& terms);

double MeanTimeToFailure(const EfficiencyTerms& terms, int gpus, double failures_per_node_year);
// By whole images, and by what has changed, standing still; and by what has changed, written while the job
// computes.
std::vector<CheckpointWay> WaysOf(const EfficiencyTerms& terms, int gpus);

// Of each density and rate of failures.
nlohmann::json EfficiencyJson(const EfficiencyTerms& terms);
std::string EfficiencyText(const nlohmann::json& result);

}  // namespace siding::sim
