#include <prometheus/check_names.h>

#include <set>

#include "absl/strings/match.h"
#include "controller/engine/engine_fixture.h"
#include "controller/metrics/table.h"

namespace siding {
namespace {

class MetricsTest : public EngineTest {
 protected:
  // The value of the only sample, or of the one with these values of its labels.
  double Value(const std::string& name, const std::vector<std::string>& labels = {}) {
    const Samples::Sample* const sample = Find(name, labels);
    EXPECT_NE(sample, nullptr) << name;
    return sample == nullptr ? -1e9 : sample->value;
  }
  bool IsThere(const std::string& name) { return Find(name, {}) != nullptr; }
  int64_t CountOf(const std::string& name, const std::vector<std::string>& labels = {}) {
    const Samples::Sample* const sample = Find(name, labels);
    EXPECT_NE(sample, nullptr) << name;
    return sample == nullptr ? -1 : sample->buckets.back().second;
  }
  // A batch job of one node makes way for a request.
  void Preempt() {
    AddNodes({"a"});
    Settle();
    victim_ = Submit(Batch());
    Settle();
    request_ = Submit(OnDemand(1));
    Settle(10);
    ASSERT_EQ(State(request_), JobState::kRunning);
  }

  JobId victim_, request_;

 private:
  const Samples::Sample* Find(const std::string& name, const std::vector<std::string>& labels) {
    look_ = TakeLook({*engine_, [] { return 3; }, [] { return 4096; },
                      [] {
                        return std::map<std::string, int64_t>{{"ok", 5}};
                      }});
    for (const Metric& metric : AllMetrics()) {
      if (metric.name != name) continue;
      samples_ = Samples();
      metric.read(look_, samples_);
      for (const Samples::Sample& sample : samples_.all()) {
        if (sample.labels == labels) return &sample;
      }
    }
    return nullptr;
  }

  Look look_;
  Samples samples_;
};

TEST_F(MetricsTest, NamesFollowPrometheus) {
  std::set<std::string> names;
  for (const Metric& metric : AllMetrics()) {
    const std::string name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(absl::StartsWith(name, "siding_") && prometheus::CheckMetricName(name)) << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), metric.kind == MetricKind::kCounter) << name;
    for (const char* label : metric.labels)
      EXPECT_TRUE(prometheus::CheckLabelName(label)) << name << " " << label;
  }
}
TEST_F(MetricsTest, EachValueHasItsLabels) {
  AddNodes({"a"});
  Settle();
  const Look look = TakeLook(
      {*engine_, [] { return 0; }, [] { return 0; }, [] { return std::map<std::string, int64_t>(); }});
  for (const Metric& metric : AllMetrics()) {
    Samples samples;
    metric.read(look, samples);
    for (const Samples::Sample& sample : samples.all()) {
      EXPECT_EQ(sample.labels.size(), metric.labels.size()) << metric.name;
      EXPECT_EQ(sample.buckets.empty(), metric.kind != MetricKind::kHistogram) << metric.name;
    }
  }
}
TEST_F(MetricsTest, WhatNeverHappenedIsZeroAndNotAbsent) {
  EXPECT_EQ(Value("siding_requests_total", {"missed"}), 0);
  EXPECT_EQ(Value("siding_actions_total", {"restore", "failed"}), 0);
  EXPECT_EQ(Value("siding_lost_node_seconds_total", {"kill"}), 0);
  EXPECT_EQ(CountOf("siding_deadline_margin_seconds"), 0);
  EXPECT_EQ(Value("siding_deadline_last_missed_timestamp_seconds"), 0);
}
TEST_F(MetricsTest, APreemptionAndItsMargin) {
  Preempt();
  EXPECT_EQ(Value("siding_preemptions_total"), 1);
  EXPECT_EQ(Value("siding_job_preemptions_max"), 1);
  EXPECT_EQ(Value("siding_requests_total", {"met"}), 1);
  EXPECT_EQ(CountOf("siding_deadline_margin_seconds"), 1);
  EXPECT_EQ(Value("siding_deadline_last_margin_seconds"),
            ToSeconds(Job(request_).spec.start_by - *Job(request_).first_started));
  EXPECT_EQ(CountOf("siding_release_ratio"), 1);
  EXPECT_EQ(CountOf("siding_plan_victims"), 1);
  EXPECT_EQ(Value("siding_plan_victims"), 1);
  EXPECT_EQ(Value("siding_plans_total", {"yes"}), 1);
  EXPECT_EQ(Value("siding_actions_total", {"start", "done"}), 2);
}
TEST_F(MetricsTest, AfterARestartTheyAreTheSame) {
  Preempt();
  const double started = Value("siding_actions_total", {"start", "done"}),
               margin = Value("siding_deadline_last_margin_seconds");
  StartController();
  EXPECT_EQ(Value("siding_actions_total", {"start", "done"}), started);
  EXPECT_EQ(Value("siding_deadline_last_margin_seconds"), margin);
  EXPECT_EQ(CountOf("siding_plan_victims"), 1);
}
TEST_F(MetricsTest, ARequestThatIsRefusedDoesNotWait) {
  AddNodes({"a"});
  Settle();
  Submit(Batch(1, {}));
  Settle();
  ASSERT_FALSE(engine_->Submit(kAda, OnDemand(1)).ok()) << "nothing can make way";
  EXPECT_EQ(Value("siding_requests_total", {"refused"}), 1);
  for (const char* outlook : {"in_time", "at_risk", "late"})
    EXPECT_EQ(Value("siding_requests_waiting", {outlook}), 0) << outlook;
}
TEST_F(MetricsTest, ARequestThatWaitsIsInTimeAtRiskAndLate) {
  AddNodes({"a"});
  Settle();
  JobSpec spec = OnDemand(1, 1h);
  spec.not_before = clock_.Now() + 30min;
  Submit(spec);
  Settle();
  EXPECT_EQ(Value("siding_requests_waiting", {"in_time"}), 1);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  Settle();
  EXPECT_EQ(Value("siding_requests_waiting", {"at_risk"}), 1);
  clock_.Advance(2h);
  EXPECT_EQ(Value("siding_requests_waiting", {"late"}), 1);
  EXPECT_EQ(Value("siding_requests_waiting", {"in_time"}) + Value("siding_requests_waiting", {"at_risk"}), 0);
}
TEST_F(MetricsTest, TheAgeOfAStateIsThatOfItsOldestJobThatIsNotHeld) {
  const JobId held = Submit(Batch());
  ASSERT_TRUE(engine_->Hold(kAda, held).ok());
  clock_.Advance(10s);
  Submit(Batch());
  clock_.Advance(5s);
  Submit(Batch());
  EXPECT_EQ(Value("siding_job_state_age_seconds", {"pending"}), 5);
  EXPECT_EQ(Value("siding_jobs_held"), 1);
  EXPECT_EQ(Value("siding_jobs", {"pending"}), 3);
  EXPECT_EQ(Value("siding_job_state_age_seconds", {"parked"}), 0);
}
TEST_F(MetricsTest, TiersAndNodes) {
  EXPECT_FALSE(IsThere("siding_shared_tier_free_bytes"));
  AddNodes({"a", "b"});
  for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
  Settle();
  EXPECT_EQ(Value("siding_nodes", {"up"}), 2);
  EXPECT_EQ(Value("siding_local_tier_free_bytes", {"b"}), static_cast<double>(cluster_.local_disk_free));
  EXPECT_EQ(Value("siding_shared_tier_free_bytes"), static_cast<double>(cluster_.shared_disk_free));
  cluster_.local_disk_free = cluster_.shared_disk_free = 0;
  for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
  Settle();
  EXPECT_EQ(Value("siding_local_tier_free_bytes", {"a"}), 0);
  EXPECT_EQ(Value("siding_shared_tier_free_bytes"), 0) << "it is full, and not given up";
}
TEST_F(MetricsTest, ANodeThatHasMeasuredNothingIsNotFull) {
  v1::Hello hello;
  hello.set_node("a");
  ASSERT_TRUE(engine_->OnConnected(NodeId("a"), hello).ok());
  EXPECT_EQ(Value("siding_nodes", {"up"}), 1);
  EXPECT_FALSE(IsThere("siding_local_tier_free_bytes"));
  EXPECT_FALSE(IsThere("siding_copied_bytes_total"));
}
TEST_F(MetricsTest, ANoticeIsNoPartOfTheAge) {
  AddNodes({"a"});
  Settle();
  JobSpec spec = Batch();
  spec.notice = 1h;
  const JobId job = Submit(spec);
  Settle();
  cluster_.long_notice = {"a"};
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  clock_.Advance(30min);
  ASSERT_EQ(State(job), JobState::kSuspending);
  EXPECT_EQ(Value("siding_job_state_age_seconds", {"suspending"}), 0);
}
TEST_F(MetricsTest, ACheckpointIsInItsTierAndMeasured) {
  AddNodes({"a"});
  Settle();
  const JobId job = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(Value("siding_checkpoints", {"good"}), 1);
  EXPECT_GT(Value("siding_checkpoint_bytes", {"shared"}), 0);
  EXPECT_EQ(Value("siding_checkpoint_bytes", {"local"}), 0);
  EXPECT_EQ(CountOf("siding_checkpoint_duration_seconds", {"shared"}), 1);
  EXPECT_EQ(CountOf("siding_checkpoint_written_bytes", {"local"}), 0);
}
TEST_F(MetricsTest, WhatTheProcessKnows) {
  EXPECT_EQ(Value("siding_leader"), 1);
  EXPECT_EQ(Value("siding_calls_total", {"ok"}), 5);
  EXPECT_EQ(Value("siding_lost_messages_total"), 3);
  EXPECT_EQ(Value("siding_journal_bytes"), 4096);
  EXPECT_EQ(Value("siding_journal_writable"), 1);
  EXPECT_FALSE(IsThere("siding_manager_up"));
}
TEST_F(MetricsTest, AJournalThatCannotBeWritten) {
  auto journal = std::make_unique<FullJournal>();
  FullJournal& full = *journal;
  journal_ = std::move(journal);
  StartController();
  full.full = true;
  EXPECT_FALSE(engine_->Submit(kAda, Batch()).ok());
  EXPECT_EQ(Value("siding_journal_writable"), 0);
}
TEST(Histograms, BucketsAreCumulativeAndInUnits) {
  Histogram histogram;
  constexpr int64_t kBounds[] = {1000, 2000};
  for (const int64_t value : {500, 1500, 9000}) Observe(histogram, kBounds, value);
  Samples samples;
  samples.Add({}, histogram, kBounds, 1000);
  const Samples::Sample& sample = samples.all().front();
  EXPECT_EQ(sample.value, 11);
  ASSERT_EQ(sample.buckets.size(), 3u);
  EXPECT_EQ(sample.buckets[0], (std::pair<double, int64_t>(1, 1)));
  EXPECT_EQ(sample.buckets[1], (std::pair<double, int64_t>(2, 2)));
  EXPECT_EQ(sample.buckets[2].second, 3);
}

}  // namespace
}  // namespace siding
