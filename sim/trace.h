// Workload traces: what was submitted when, for how many nodes, and how long it ran.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding::sim {

struct TraceJob {
  double submit = 0;     // seconds from the first job's
  double runtime = 0;    // seconds, > 0
  double requested = 0;  // seconds; what the user said it would take at most, no less than runtime
  int nodes = 1;
};

struct Trace {
  std::string name;
  int nodes = 0;               // of the machine; 0: the trace does not say
  std::vector<TraceJob> jobs;  // by time of submission
  std::vector<std::string>
      skipped;  // "line 7: runtime: expected more than 0, got -1"; what was left out, and why
};

// Standard Workload Format (Feitelson, Parallel Workloads Archive): 18 fields a line, ';' begins a comment,
// "; MaxNodes:" says how large the machine is. A processor is taken for a node where MaxNodes equals
// MaxProcs.
absl::StatusOr<Trace> ReadSwf(std::istream& in, const std::string& name);
// CSV with a header line: timestamp, duration [s], num_gpus, ...; a GPU is taken for a node, and the
// requested time is twice the duration, as the trace does not say.
absl::StatusOr<Trace> ReadPhilly(std::istream& in, const std::string& name);
// By the file's ending: .swf or .csv. `strict`: the first line that is broken is an error instead of being
// skipped.
absl::StatusOr<Trace> ReadTrace(const std::string& path, bool strict);

}  // namespace siding::sim
