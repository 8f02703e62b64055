// What a trace does not say and a study has to draw: which jobs are on demand, with how much notice, how
// large checkpoints are, who saves by itself, what fails when, and how far the real speeds are from the
// measured ones. Everything comes from one seed; a job's figures are drawn in the order of the trace, so
// every strategy meets the same.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/trace.h"

namespace siding::sim {

inline constexpr double kYear = 365.25 * 86400;  // seconds
inline constexpr double kGib = 1LL << 30;
inline constexpr double kPageSize = 4096;  // bytes
inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct Parameters {
  uint64_t seed = 1;
  double on_demand_share = 0.1;       // of the jobs
  double on_demand_most_nodes = 0.5;  // of the machine; larger jobs are never on demand
  std::map<double, double> notice_mix = {
      {0, 0.25}, {60, 0.25}, {300, 0.25}, {900, 0.25}};  // seconds -> share
  double tolerance = 30;  // seconds after the notice within which the start still counts
  int nodes = 0;          // of the machine; 0: as the trace says
  double node_memory = 192.0 * (1LL << 30);
  double checkpoint_least = 0.1, checkpoint_most = 0.6;  // of the node's memory, uniform
  double node_bandwidth = 1e9;                           // of one node to shared storage, bytes/s
  double shared_bandwidth = 200e9;                       // of all together
  double local_bandwidth = 1e9;                          // of one node's own disk
  double overhead = 2;                                   // seconds of every dump and restore
  double spread = 0.2;              // standard deviation of the logarithm of real to measured time
  double kill_grace = 10;           // seconds
  double self_checkpointing = 0.5;  // share of jobs that save by themselves, at Daly's interval
  double failures_per_node_year = 0.2;
  double disks_lost = 1;           // share of failures that take the node's disk with them
  bool protect_on_demand = false;  // these get images on schedule as well
  bool whole_images = false;       // as if no job were tracked, as none on GPUs is
  bool images_alone = false;       // as if nobody else wrote beside an image on schedule
  // Images on schedule: lines that are not below the longest stop that docs/results/checkpoint-stop.md has
  // for 1 and 4 GiB (tracked 0.035 and 0.118 s, by criu 0.639 and 2.326 s). For larger images nothing was
  // measured.
  double image_stop = 0.01, image_stop_per_gib = 0.028;  // seconds for which one stops a tracked job
  double untracked_stop_per_gib = 0.65;                  // instead, where it stops the job as criu does
  double page_fault = 1e-6;    // seconds of the first store to a page after an image, of a tracked job
  double written_share = 0.1;  // of its memory, from one image to the next
  bool same_pages = false;     // as if these were the same each time; else anywhere
};

// Unless it is good, `what` is the error.
absl::Status Expect(bool good, const std::string& what);
// Finite, and not negative; finite, and more than 0.
bool IsTime(double seconds);
bool IsAmount(double value);
// Impossible values are named.
absl::Status Check(const Parameters& parameters);

struct Job {
  TraceJob trace;
  bool on_demand = false;
  double notice = 0;        // on-demand: known so long before it has to start
  double bytes = 0;         // of memory on each node: what a checkpoint holds
  double own_interval = 0;  // seconds of work between its own checkpoints; 0: none
  double speed = 1;         // real time of its dumps and restores over the measured
  double start_by() const { return trace.submit + notice; }
};

struct Failure {
  double at = 0;
  int node = 0;
  bool loses_disk = true;
};

struct Workload {
  Parameters parameters;
  int nodes = 0;
  std::vector<Job> jobs;
  std::vector<Failure> failures;     // by time
  std::vector<std::string> dropped;  // jobs larger than the machine
};

// Of so many bytes from a node to shared storage or back, where the node is the bottleneck, as measured.
double NodeTransferTime(const Parameters& parameters, double bytes);
// The same, to the node's own disk or back.
double LocalTransferTime(const Parameters& parameters, double bytes);
// Bytes/s that are a job's part of shared storage: what its nodes can write, or their share of what all can,
// if that is less. `machine`: nodes of all.
double SharedPart(const Parameters& parameters, const Job& job, int machine);

absl::StatusOr<Workload> Draw(const Trace& trace, const Parameters& parameters);

}  // namespace siding::sim
