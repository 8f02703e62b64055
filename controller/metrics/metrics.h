// Prometheus metrics over HTTP: read from the engine's state when they are asked for, so that nothing has to
// remember to count. table.h has them all.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/metrics/look.h"

namespace siding {

class Metrics {
 public:
  // Serves /metrics at `address` (an IPv4 address, or one of IPv6 in brackets) and `port` until destroyed;
  // port 0: serves nothing.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const std::string& address, int port,
                                                        MetricSources sources);
  // Of a controller that stands by: siding_leader 0, and nothing else.
  static absl::StatusOr<std::unique_ptr<Metrics>> StartStandingBy(const std::string& address, int port);
  virtual ~Metrics() = default;
};

}  // namespace siding
