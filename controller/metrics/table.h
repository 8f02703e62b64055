// All metrics, as one table: a new one is a row. Names and labels are the same from the first scrape on,
// and so are their values but for nodes; no label has a job or a user. Pure.
//
// Where their history comes from: what is counted of jobs is in the engine's state, which is made of the
// journal (model/totals.h). So it survives a restart, and the next controller counts on where this one
// stopped. What only the process knows (calls, refusals, messages, errors of the policy's file) begins at 0
// with it, which is what Prometheus expects of a counter.
#pragma once

#include <string>
#include <vector>

#include "controller/metrics/look.h"

namespace siding {

enum class MetricKind : uint8_t { kGauge, kCounter, kHistogram };

// One metric's values.
class Samples {
 public:
  struct Sample {
    std::vector<std::string> labels;                  // values, in the order of the metric's names for them
    double value = 0;                                 // of a histogram: the sum
    std::vector<std::pair<double, int64_t>> buckets;  // cumulative, by upper bound; the last one has none
  };
  void Add(double value) { all_.push_back({{}, value, {}}); }
  void Add(std::vector<std::string> labels, double value) { all_.push_back({std::move(labels), value, {}}); }
  // `unit`: so many of what it counts are one of what is shown.
  void Add(std::vector<std::string> labels, const Histogram& histogram, Bounds bounds, double unit);
  const std::vector<Sample>& all() const { return all_; }

 private:
  std::vector<Sample> all_;
};

struct Metric {
  const char* name;
  MetricKind kind;
  std::vector<const char*> labels;
  const char* help;  // a line of docs/admin/metrics.md
  void (*read)(const Look& look, Samples& samples);
};
// siding_leader is the first, and the only one of a controller that stands by.
const std::vector<Metric>& AllMetrics();

// As lines of a table in Markdown.
std::string MetricsTable();

}  // namespace siding
