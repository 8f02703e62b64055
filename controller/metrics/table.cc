#include "controller/metrics/table.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siding {
namespace {

constexpr MetricKind kGauge = MetricKind::kGauge, kCounter = MetricKind::kCounter,
                     kHistogram = MetricKind::kHistogram;
constexpr double kMillis = 1000;  // that are a second, and thousandths that are one
constexpr Tier kTiers[] = {Tier::kLocal, Tier::kShared};
constexpr LossBy kLosses[] = {LossBy::kSuspend, LossBy::kCheckpoint, LossBy::kApp, LossBy::kKill,
                              LossBy::kFailure};

double Seconds(Time time) { return static_cast<double>(ToMicros(time)) / 1e6; }
double Number(int64_t number) { return static_cast<double>(number); }

template <class Map>
typename Map::mapped_type Of(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}

template <class Value>
void OfStates(Samples& samples, Value value) {
  for (int i = 0; i < kJobStateCount; ++i) {
    if (const auto state = static_cast<JobState>(i); !IsTerminal(state))
      samples.Add({ToString(state)}, value(i));
  }
}

void ReadImages(const std::map<Tier, ImageTotals>& images, bool bytes, Samples& samples) {
  for (const Tier tier : kTiers) {
    const ImageTotals of = Of(images, tier);
    bytes ? samples.Add({ToString(tier)}, of.bytes, kImageBytes, 1)
          : samples.Add({ToString(tier)}, of.ms, kImageMs, kMillis);
  }
}

void ReadActions(const Look& look, Samples& samples) {
  for (const JobAction action : kAllJobActions) {
    const ActionCount count = Of(look.totals.actions, action);
    samples.Add({ToString(action), "done"}, Number(count.done));
    samples.Add({ToString(action), "failed"}, Number(count.failed));
  }
}

std::vector<Metric> MakeTable() {
  return {
      {"siding_leader",
       kGauge,
       {},
       "1: this controller is the active one; 0: it stands by, and serves no other metric",
       [](const Look& l, Samples& s) { s.Add(l.leads); }},

      // ---- Deadlines. ----
      {"siding_requests_total",
       kCounter,
       {"result"},
       "deadline jobs by what became of the deadline: `met`, `missed`, `refused`",
       [](const Look& l, Samples& s) {
         s.Add({"met"}, Number(l.tally.met));
         s.Add({"missed"}, Number(l.tally.missed));
         s.Add({"refused"}, Number(l.tally.refused));
       }},
      {"siding_requests_waiting",
       kGauge,
       {"outlook"},
       "deadline jobs that have not started: by their newest plans they will `in_time`, or are `at_risk`; or "
       "the deadline is over (`late`)",
       [](const Look& l, Samples& s) {
         s.Add({"in_time"}, Of(l.outlooks, Outlook::kInTime));
         s.Add({"at_risk"}, Of(l.outlooks, Outlook::kAtRisk));
         s.Add({"late"}, Of(l.outlooks, Outlook::kLate));
       }},
      {"siding_deadline_margin_seconds",
       kHistogram,
       {},
       "of deadline jobs that have started: time from the start to the deadline; below 0: missed, so its sum "
       "may fall",
       [](const Look& l, Samples& s) { s.Add({}, l.totals.margins, kMarginMs, kMillis); }},
      {"siding_deadline_last_margin_seconds",
       kGauge,
       {},
       "the same of the last one; 0 before the first",
       [](const Look& l, Samples& s) { s.Add(ToSeconds(l.totals.last_margin)); }},
      {"siding_deadline_last_missed_timestamp_seconds",
       kGauge,
       {},
       "when the last deadline job started late; 0: none has",
       [](const Look& l, Samples& s) { s.Add(Seconds(l.totals.last_missed)); }},
      {"siding_quota_refusals_total",
       kCounter,
       {},
       "requests beyond what the policy lets a user have journalled; since the controller's start",
       [](const Look& l, Samples& s) { s.Add(Number(l.quota_refusals)); }},

      // ---- Decisions, and what came of them. ----
      {"siding_plans_total",
       kCounter,
       {"exact"},
       "plans for requests that were recorded and can be kept; `yes`: nothing better exists; `no`: something "
       "might",
       [](const Look& l, Samples& s) {
         s.Add({"yes"}, Number(l.totals.exact_plans));
         s.Add({"no"}, Number(l.totals.other_plans));
       }},
      {"siding_plan_victims",
       kHistogram,
       {},
       "jobs that make way, of each of these plans",
       [](const Look& l, Samples& s) { s.Add({}, l.totals.victims, kVictims, 1); }},
      {"siding_preemptions_total",
       kCounter,
       {},
       "times that a job made way",
       [](const Look& l, Samples& s) { s.Add(Number(l.tally.preemptions)); }},
      {"siding_job_preemptions_max",
       kGauge,
       {},
       "of the jobs that are not over, how often that one made way which did most often",
       [](const Look& l, Samples& s) { s.Add(l.most_preemptions); }},
      {"siding_actions_total",
       kCounter,
       {"action", "result"},
       "what was done to jobs (`start`, `suspend`, `resume`, `checkpoint`, `save`, `kill`, `restore`), and "
       "whether that was `done` or has `failed`",
       ReadActions},
      {"siding_action_last_failure_timestamp_seconds",
       kGauge,
       {"action"},
       "when that failed last; 0: it never has",
       [](const Look& l, Samples& s) {
         for (const JobAction action : kAllJobActions)
           s.Add({ToString(action)}, Seconds(Of(l.totals.actions, action).last_failed));
       }},
      {"siding_lost_node_seconds_total",
       kCounter,
       {"by"},
       "node-seconds that jobs stood still or have to repeat, by how they left their nodes: `suspend`, "
       "`checkpoint`, `app`, `kill`; or by a `failure`",
       [](const Look& l, Samples& s) {
         for (const LossBy by : kLosses)
           s.Add({ToString(by)}, Number(Of(l.totals.lost_node_ms, by)) / kMillis);
       }},
      {"siding_release_ratio",
       kHistogram,
       {},
       "of orders that free nodes: the time that it took, as a multiple of what was predicted",
       [](const Look& l, Samples& s) { s.Add({}, l.totals.release_ratios, kRatios, kMillis); }},
      {"siding_restarts_total",
       kCounter,
       {},
       "times that a job which had run was started from the beginning",
       [](const Look& l, Samples& s) { s.Add(Number(l.tally.restarts)); }},

      // ---- Jobs. ----
      {"siding_jobs",
       kGauge,
       {"state"},
       "jobs by state; those that are over for as long as they are known",
       [](const Look& l, Samples& s) {
         for (int i = 0; i < kJobStateCount; ++i)
           s.Add({ToString(static_cast<JobState>(i))}, l.jobs[static_cast<size_t>(i)].jobs);
       }},
      {"siding_job_state_age_seconds",
       kGauge,
       {"state"},
       "for how long that job has been in the state which has been longest, after a notice or a grace that "
       "it was promised, and but for those that are held; 0: there is none",
       [](const Look& l, Samples& s) {
         OfStates(s, [&](int state) {
           const Time oldest = l.jobs[static_cast<size_t>(state)].oldest;
           return oldest == Time{} ? 0 : ToSeconds(std::max(Duration(0), l.now - oldest));
         });
       }},
      {"siding_jobs_held",
       kGauge,
       {},
       "jobs that get no nodes until their users or operators release them",
       [](const Look& l, Samples& s) { s.Add(l.held); }},
      {"siding_stuck_jobs",
       kGauge,
       {"why"},
       "parked jobs: `restore`, their last restore has failed; `restart`, nothing is left to restore",
       [](const Look& l, Samples& s) {
         s.Add({"restore"}, l.unrestored);
         s.Add({"restart"}, l.unstarted);
       }},

      // ---- Nodes. ----
      {"siding_nodes",
       kGauge,
       {"state"},
       "nodes by state: `up`, `down`, `silent`, `lost`, `faulty` ([nodes](nodes.md))",
       [](const Look& l, Samples& s) {
         for (const auto& [state, nodes] : l.nodes) s.Add({state}, nodes);
       }},
      {"siding_nodes_cordoned",
       kGauge,
       {},
       "nodes on which nothing new is placed, as an operator has said",
       [](const Look& l, Samples& s) { s.Add(l.cordoned); }},
      {"siding_gpu_states_lost_total",
       kCounter,
       {},
       "times that what a job had on GPUs could not be put back",
       [](const Look& l, Samples& s) { s.Add(Number(l.tally.gpu_states_lost)); }},
      {"siding_certificate_end_timestamp_seconds",
       kGauge,
       {"holder"},
       "when the certificate of the `controller`, or of a node's agent (`node/NAME`), expires",
       [](const Look& l, Samples& s) {
         for (const auto& [holder, end] : l.certificate_ends) s.Add({holder}, Seconds(end));
       }},

      // ---- The store. ----
      {"siding_checkpoints",
       kGauge,
       {"state"},
       "checkpoints by state; those that are gone for as long as they are known",
       [](const Look& l, Samples& s) {
         for (int i = 0; i < kCheckpointStateCount; ++i)
           s.Add({ToString(static_cast<CheckpointState>(i))}, l.checkpoints[static_cast<size_t>(i)]);
       }},
      {"siding_checkpoint_bytes",
       kGauge,
       {"tier"},
       "bytes that all good checkpoints have written: what one shares with an earlier one counts there",
       [](const Look& l, Samples& s) {
         for (const Tier tier : kTiers) s.Add({ToString(tier)}, Number(Of(l.image_bytes, tier)));
       }},
      {"siding_checkpoint_duration_seconds",
       kHistogram,
       {"tier"},
       "of checkpoints that count: from the order, or the end of the notice, until they did",
       [](const Look& l, Samples& s) { ReadImages(l.totals.dumps, false, s); }},
      {"siding_checkpoint_written_bytes",
       kHistogram,
       {"tier"},
       "what each of them wrote: without what earlier ones have",
       [](const Look& l, Samples& s) { ReadImages(l.totals.dumps, true, s); }},
      {"siding_restore_duration_seconds",
       kHistogram,
       {"tier"},
       "from the choice of nodes until the job ran again from its checkpoint",
       [](const Look& l, Samples& s) { ReadImages(l.totals.restores, false, s); }},
      {"siding_restore_read_bytes",
       kHistogram,
       {"tier"},
       "bytes of the checkpoints that jobs were restored from",
       [](const Look& l, Samples& s) { ReadImages(l.totals.restores, true, s); }},
      {"siding_damaged_checkpoints_total",
       kCounter,
       {},
       "checkpoints that were found to be damaged",
       [](const Look& l, Samples& s) { s.Add(Number(l.tally.damaged_checkpoints)); }},
      {"siding_local_tier_free_bytes",
       kGauge,
       {"node"},
       "room for images on the node's own disk; 0: it is full, or away",
       [](const Look& l, Samples& s) {
         for (const auto& [id, node] : l.by_node) {
           if (node.connected) s.Add({id.value()}, Number(node.local_free));
         }
       }},
      {"siding_shared_tier_free_bytes",
       kGauge,
       {},
       "room in shared storage, as the node says that sees most; 0: it is full, or away everywhere; absent: "
       "no node has any",
       [](const Look& l, Samples& s) {
         if (l.shared_free) s.Add(Number(*l.shared_free));
       }},
      {"siding_scrubbed_bytes_total",
       kCounter,
       {"node"},
       "bytes of images that the node has read back, since its agent's start",
       [](const Look& l, Samples& s) {
         for (const auto& [id, node] : l.by_node) s.Add({id.value()}, Number(node.scrubbed));
       }},
      {"siding_copied_bytes_total",
       kCounter,
       {"node"},
       "bytes of images that the node has copied from its own disk into shared storage, since its agent's "
       "start",
       [](const Look& l, Samples& s) {
         for (const auto& [id, node] : l.by_node) s.Add({id.value()}, Number(node.copied));
       }},

      // ---- The controller itself. ----
      {"siding_journal_events_total",
       kCounter,
       {},
       "events that the journal has ever had",
       [](const Look& l, Samples& s) { s.Add(Number(l.events)); }},
      {"siding_journal_bytes",
       kGauge,
       {},
       "size of the journal on disk, with its log",
       [](const Look& l, Samples& s) { s.Add(Number(l.journal_bytes)); }},
      {"siding_journal_writable",
       kGauge,
       {},
       "0: the journal cannot be written, and nothing is decided",
       [](const Look& l, Samples& s) { s.Add(l.journal_can_be_written); }},
      {"siding_manager_up",
       kGauge,
       {},
       "1: Slurm, or Kubernetes, answers; 0: it does not; absent: siding has the queue",
       [](const Look& l, Samples& s) {
         if (l.manager_answers) s.Add(*l.manager_answers);
       }},
      {"siding_lost_messages_total",
       kCounter,
       {},
       "what was to be said to users of the cluster manager, and was given up: it did not take it; since the "
       "controller's start",
       [](const Look& l, Samples& s) { s.Add(Number(l.lost_messages)); }},
      {"siding_calls_total",
       kCounter,
       {"result"},
       "calls by gRPC, by the status that they ended with, such as `ok` or `failed_precondition`; the page's "
       "are not in it; since the controller's start",
       [](const Look& l, Samples& s) {
         for (const auto& [result, calls] : l.calls) s.Add({result}, Number(calls));
       }},
      {"siding_events_told_total",
       kCounter,
       {"to"},
       "events that a receiver of `events_to` has been told, by its name; since the controller's start",
       [](const Look& l, Samples& s) {
         for (const ToldCounts& told : l.told) s.Add({told.name}, Number(told.told));
       }},
      {"siding_events_told_failures_total",
       kCounter,
       {"to"},
       "times that it could not be told, each of which is tried again; since the controller's start",
       [](const Look& l, Samples& s) {
         for (const ToldCounts& told : l.told) s.Add({told.name}, Number(told.failures));
       }},
      {"siding_events_behind",
       kGauge,
       {"to"},
       "events of all kinds between the last one and how far it has been told",
       [](const Look& l, Samples& s) {
         for (const ToldCounts& told : l.told)
           s.Add({told.name}, Number(std::max<int64_t>(0, l.events - told.at)));
       }},
      {"siding_policy_load_errors_total",
       kCounter,
       {},
       "changed policy files that could not be put in force; since the controller's start",
       [](const Look& l, Samples& s) { s.Add(l.policy_failures); }},
  };
}

const char* NameOf(MetricKind kind) {
  return kind == kGauge ? "gauge" : kind == kCounter ? "counter" : "histogram";
}

}  // namespace

void Samples::Add(std::vector<std::string> labels, const Histogram& histogram, Bounds bounds, double unit) {
  Sample sample{std::move(labels), Number(histogram.sum) / unit, {}};
  for (const int64_t bound : bounds)
    sample.buckets.emplace_back(Number(bound) / unit, CountUpTo(histogram, bound));
  sample.buckets.emplace_back(std::numeric_limits<double>::infinity(), CountUpTo(histogram, kNoBound));
  all_.push_back(std::move(sample));
}

const std::vector<Metric>& AllMetrics() {
  static const std::vector<Metric> table = MakeTable();
  return table;
}

std::string MetricsTable() {
  std::string text = "| metric | type | labels | what it tells |\n|---|---|---|---|\n";
  for (const Metric& metric : AllMetrics()) {
    const std::string labels =
        metric.labels.empty() ? "" : absl::StrCat("`", absl::StrJoin(metric.labels, "`, `"), "`");
    absl::StrAppend(&text, "| `", metric.name, "` | ", NameOf(metric.kind), " | ", labels, " | ", metric.help,
                    " |\n");
  }
  return text;
}

}  // namespace siding
