// What tests of the engine start from.
#pragma once

#include <memory>

#include "controller/engine/engine.h"
#include "controller/engine/fake_cluster.h"
#include "controller/engine/journal_on_top.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {

using namespace std::chrono_literals;
using testing::HasSubstr;

inline const Caller kAda{1000, "ada", false};
inline const Caller kBob{1001, "bob", false};
inline const Caller kRoot{0, "root", true};

// Appends fail while it is told so.
class FullJournal final : public JournalOnTop {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    return full ? absl::ResourceExhaustedError("disk is full") : JournalOnTop::Append(events);
  }
  absl::Status Confirm() override { return Append({}); }
  bool full = false;
};

// An engine with a cluster of nodes of 4 slots, a journal that outlives it, and a clock that stands still
// unless it is told to move.
class EngineTest : public testing::Test {
 protected:
  EngineTest() { StartController(); }

  void StartController() {
    engine_.reset();
    engine_ = std::make_unique<Engine>(policy_, *journal_, *platform_, cluster_, clock_);
    ASSERT_TRUE(engine_->Start().ok());
    cluster_.Attach(*engine_);
  }
  void AddNodes(std::initializer_list<const char*> names) {
    for (const char* name : names) cluster_.AddNode(name);
  }
  // Lets the world settle: commands, reports and the periodic look, for some seconds.
  void Settle(int seconds = 3) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Run();
      clock_.Advance(1s);
      engine_->Tick();
      EXPECT_TRUE(engine_->IsConsistent());
    }
    cluster_.Run();
    EXPECT_TRUE(engine_->IsConsistent());
  }

  // Message by message.
  void StepUntil(JobId job, JobState state) {
    while (State(job) != state) ASSERT_TRUE(cluster_.Step());
  }
  // As an agent says it of the job's first start.
  void ReportExit(const std::string& node, JobId job, int code) {
    v1::FromAgent message;
    v1::TaskReport& report = *message.mutable_report();
    report.mutable_task()->set_job(job.value());
    report.mutable_task()->set_incarnation(1);
    report.set_phase(v1::EXITED);
    report.set_own_end(true);
    report.set_exit_code(code);
    engine_->OnMessage(NodeId(node), message);
  }

  static JobSpec Batch(int nodes = 1,
                       MethodSet methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill}) {
    JobSpec spec;
    spec.name = "batch";
    spec.nodes = nodes;
    spec.per_node.slots = 4;
    spec.command = {"work"};
    spec.methods = methods;
    return spec;
  }
  JobSpec OnDemand(int nodes, Duration within = 60s) {
    JobSpec spec = Batch(nodes, {});
    spec.kind = JobKind::kOnDemand;
    spec.name = "express";
    spec.start_by = clock_.Now() + within;
    return spec;
  }
  JobId Submit(JobSpec spec, const Caller& caller = kAda) {
    auto submitted = engine_->Submit(caller, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.ok() ? submitted->id : JobId();
  }
  JobRecord Job(JobId id) {
    JobRecord job;
    engine_->Read([&](const ClusterState& state) { job = state.jobs.at(id); });
    return job;
  }
  JobState State(JobId id) { return Job(id).state; }

  FakeClock clock_{FromMicros(1'700'000'000'000'000)};
  Policy policy_;
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  std::unique_ptr<Engine> engine_;
};

}  // namespace siding
