#include "bench/load_bench/latencies.h"

#include <algorithm>

namespace siding {
namespace {

// The smallest that so large a part is not above; `sorted` is not empty.
double Quantile(const std::vector<float>& sorted, double part) {
  const auto at = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

Latencies::Row RowOf(std::string what, std::vector<float> ms, size_t failed) {
  Latencies::Row row{std::move(what), ms.size(), failed};
  if (ms.empty()) return row;
  std::sort(ms.begin(), ms.end());
  row.p50 = Quantile(ms, 0.5);
  row.p90 = Quantile(ms, 0.9);
  row.p99 = Quantile(ms, 0.99);
  row.max = ms.back();
  return row;
}

}  // namespace

void Latencies::Add(const std::string& what, Duration took, bool answered) {
  MutexLock lock(mutex_);
  Series& series = by_what_[what];
  series.ms.push_back(static_cast<float>(1e3 * ToSeconds(took)));
  series.failed += !answered;
}

std::vector<Latencies::Row> Latencies::Rows() const {
  MutexLock lock(mutex_);
  std::vector<Row> rows;
  Series all;
  for (const auto& [what, series] : by_what_) {
    rows.push_back(RowOf(what, series.ms, series.failed));
    all.ms.insert(all.ms.end(), series.ms.begin(), series.ms.end());
    all.failed += series.failed;
  }
  rows.push_back(RowOf("all calls", std::move(all.ms), all.failed));
  return rows;
}

}  // namespace siding
