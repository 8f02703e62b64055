#include "controller/metrics/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/metrics/table.h"

namespace siding {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric ToClient(const Metric& metric, const Samples::Sample& sample) {
  ClientMetric client;
  for (size_t i = 0; i < metric.labels.size(); ++i)
    client.label.push_back({metric.labels[i], sample.labels[i]});
  switch (metric.kind) {
    case MetricKind::kGauge:
      client.gauge.value = sample.value;
      break;
    case MetricKind::kCounter:
      client.counter.value = sample.value;
      break;
    case MetricKind::kHistogram:
      client.histogram.sample_sum = sample.value;
      for (const auto& [bound, count] : sample.buckets)
        client.histogram.bucket.push_back({static_cast<uint64_t>(count), bound});
      client.histogram.sample_count = client.histogram.bucket.back().cumulative_count;
  }
  return client;
}

MetricFamily FamilyOf(const Metric& metric, const Look& look) {
  MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = metric.kind == MetricKind::kGauge     ? MetricType::Gauge
                : metric.kind == MetricKind::kCounter ? MetricType::Counter
                                                      : MetricType::Histogram;
  Samples samples;
  metric.read(look, samples);
  for (const Samples::Sample& sample : samples.all()) family.metric.push_back(ToClient(metric, sample));
  return family;
}

class StandbyMetrics final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override { return {FamilyOf(AllMetrics().front(), Look())}; }
};

class EngineMetrics final : public prometheus::Collectable {
 public:
  explicit EngineMetrics(MetricSources sources) : sources_(std::move(sources)) {}

  std::vector<MetricFamily> Collect() const override {
    const Look look = TakeLook(sources_);
    std::vector<MetricFamily> families;
    for (const Metric& metric : AllMetrics()) families.push_back(FamilyOf(metric, look));
    // One without a value would be named and not be there.
    std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
    return families;
  }

 private:
  const MetricSources sources_;
};

// Of the HTTP server. Who connects and says nothing has a thread for so long, and others have the rest.
std::vector<std::string> OptionsFor(const std::string& place) {
  return {"listening_ports", place, "num_threads", "32", "request_timeout_ms", "1000"};
}

class NoMetrics final : public Metrics {};

class ServedMetrics final : public Metrics {
 public:
  ServedMetrics(const std::string& place, std::shared_ptr<prometheus::Collectable> metrics)
      : metrics_(std::move(metrics)), exposer_(OptionsFor(place)) {
    exposer_.RegisterCollectable(metrics_);
  }

 private:
  const std::shared_ptr<prometheus::Collectable> metrics_;
  prometheus::Exposer exposer_;
};

absl::StatusOr<std::unique_ptr<Metrics>> Serve(const std::string& address, int port,
                                               std::shared_ptr<prometheus::Collectable> metrics) {
  if (port == 0) return std::make_unique<NoMetrics>();
  const std::string place = absl::StrCat(address, ":", port);
  // The HTTP server throws when it cannot listen.
  try {
    return std::make_unique<ServedMetrics>(place, std::move(metrics));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("metrics on ", place, ": ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address, int port,
                                                        MetricSources sources) {
  return Serve(address, port, std::make_shared<EngineMetrics>(std::move(sources)));
}

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::StartStandingBy(const std::string& address, int port) {
  return Serve(address, port, std::make_shared<StandbyMetrics>());
}

}  // namespace siding
