#include "controller/metrics/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/trend_count.h"

namespace siding {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

class Family {
 public:
  Family(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }
  Family& Add(double value, const std::string& label = "", const std::string& label_value = "") {
    prometheus::ClientMetric metric;
    if (!label.empty()) metric.label.push_back({label, label_value});
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
    return *this;
  }
  operator MetricFamily() const { return family_; }

 private:
  MetricFamily family_;
};

Family Leader(int is) {
  return Family("siding_leader", "1: this controller is the active one; 0: it stands by.", MetricType::Gauge)
      .Add(is);
}

class StandbyMetrics final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override { return {Leader(0)}; }
};

class EngineMetrics final : public prometheus::Collectable {
 public:
  EngineMetrics(const Engine& engine, std::function<int64_t()> lost_messages)
      : engine_(engine), lost_messages_(std::move(lost_messages)) {}

  std::vector<MetricFamily> Collect() const override {
    std::map<std::string, int> jobs, nodes{{"up", 0}, {"down", 0}, {"silent", 0}, {"lost", 0}, {"faulty", 0}};
    std::map<std::string, double> scrubbed, copied;
    Family certificates("siding_certificate_end_timestamp_seconds",
                        "When a certificate expires: the controller's, or that of a node's agent.",
                        MetricType::Gauge);
    if (const auto ends = engine_.certificate_end())
      certificates.Add(static_cast<double>(ToMicros(*ends)) / 1e6, "holder", "controller");
    int unrestored = 0, unstarted = 0;
    Tally tally;  // of all jobs that there have ever been
    double bytes = 0, events = 0;
    // A gauge: the rate of what happens once in days reads 0.
    Family preempted("siding_job_preemptions",
                     "Times that a job made way, of those that did and are not over.", MetricType::Gauge);
    for (int i = 0; i < kJobStateCount; ++i) jobs[ToString(static_cast<JobState>(i))] = 0;
    engine_.Read([&](const ClusterState& state) {
      events = static_cast<double>(state.last_seq);
      tally = state.forgotten;
      for (const auto& [id, job] : state.jobs) {
        ++jobs[ToString(job.state)];
        AddTo(tally, job);
        // By its number alone: everybody may read this, and names are the business of users.
        if (job.preemptions > 0 && !job.ended)
          preempted.Add(job.preemptions, "job", absl::StrCat(id.value()));
        const bool parked = job.state == JobState::kParked;
        const bool waits_for_a_word = parked && ResumptionOf(state, job) == Resumption::kBeginning;
        unstarted += waits_for_a_word;
        unrestored +=
            (parked || job.state == JobState::kRestoring) && job.restore_failures > 0 && !waits_for_a_word;
      }
      for (const auto& [id, node] : state.observed_nodes) {
        if (!state.IsLost(id))
          ++nodes[!node.connected ? "down" : node.silent ? "silent" : node.faulty ? "faulty" : "up"];
        scrubbed[id.value()] = static_cast<double>(node.heartbeat.scrubbed_bytes());
        copied[id.value()] = static_cast<double>(node.heartbeat.copied_bytes());
        if (const int64_t ends = node.heartbeat.certificate_ends_us(); ends != 0 && !state.IsLost(id))
          certificates.Add(static_cast<double>(ends) / 1e6, "holder", "node/" + id.value());
      }
      for (const auto& [id, node] : state.nodes) nodes["lost"] += node.lost_since.has_value();
      for (const auto& [id, checkpoint] : state.checkpoints) {
        if (checkpoint.state == CheckpointState::kGood) bytes += static_cast<double>(checkpoint.bytes.value);
      }
    });
    Family job_family("siding_jobs", "Jobs by state.", MetricType::Gauge);
    for (const auto& [name, count] : jobs) job_family.Add(count, "state", name);
    Family node_family("siding_nodes", "Nodes by state.", MetricType::Gauge);
    for (const auto& [name, count] : nodes) node_family.Add(count, "state", name);
    Family scrub_family("siding_scrubbed_bytes_total", "Bytes of images read back, by node.",
                        MetricType::Counter);
    for (const auto& [name, count] : scrubbed) scrub_family.Add(count, "node", name);
    Family copy_family("siding_copied_bytes_total",
                       "Bytes of images copied from the node's own disk into shared storage, by node.",
                       MetricType::Counter);
    for (const auto& [name, count] : copied) copy_family.Add(count, "node", name);
    return {
        job_family,
        node_family,
        Family("siding_policy_load_errors_total", "Changed policy files that could not be put in force.",
               MetricType::Counter)
            .Add(engine_.policy_failures()),
        Family("siding_quota_refusals_total", "Requests beyond what the policy lets a user have journalled.",
               MetricType::Counter)
            .Add(static_cast<double>(engine_.quota_refusals())),
        Family("siding_requests_total", "Deadline jobs by what became of the deadline.", MetricType::Counter)
            .Add(static_cast<double>(tally.met), "result", "met")
            .Add(static_cast<double>(tally.missed), "result", "missed")
            .Add(static_cast<double>(tally.refused), "result", "refused"),
        Family("siding_preemptions_total", "Times a job was preempted.", MetricType::Counter)
            .Add(static_cast<double>(tally.preemptions)),
        preempted,
        Family("siding_stuck_jobs",
               "Parked jobs by what keeps them there: restore, their last restore failed; restart, nothing "
               "is left to restore.",
               MetricType::Gauge)
            .Add(unrestored, "why", "restore")
            .Add(unstarted, "why", "restart"),
        Family("siding_restarts_total", "Times a job that had run was started from the beginning.",
               MetricType::Counter)
            .Add(static_cast<double>(tally.restarts)),
        Family("siding_lost_node_seconds_total", "Node-seconds stopped or repeated.", MetricType::Counter)
            .Add(tally.lost_node_seconds),
        Family("siding_checkpoint_bytes", "Size of all good checkpoints.", MetricType::Gauge).Add(bytes),
        Family("siding_damaged_checkpoints_total", "Checkpoints that were found to be damaged.",
               MetricType::Counter)
            .Add(static_cast<double>(tally.damaged_checkpoints)),
        Family("siding_gpu_states_lost_total", "Times that what a job had on GPUs could not be put back.",
               MetricType::Counter)
            .Add(static_cast<double>(tally.gpu_states_lost)),
        scrub_family,
        copy_family,
        certificates,
        Family("siding_journal_events_total", "Events in the journal.", MetricType::Counter).Add(events),
        Family("siding_lost_messages_total",
               "What was to be said to users of the cluster manager, and was given up: it did not take it.",
               MetricType::Counter)
            .Add(static_cast<double>(lost_messages_())),
        Leader(1)};
  }

 private:
  const Engine& engine_;
  const std::function<int64_t()> lost_messages_;
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
                                                        const Engine& engine,
                                                        std::function<int64_t()> lost_messages) {
  return Serve(address, port, std::make_shared<EngineMetrics>(engine, std::move(lost_messages)));
}

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::StartStandingBy(const std::string& address, int port) {
  return Serve(address, port, std::make_shared<StandbyMetrics>());
}

}  // namespace siding
