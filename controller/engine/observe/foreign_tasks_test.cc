// Tasks of another cluster: a controller that is set up anew, with a new journal, counts jobs from 1 beside
// those of the one before.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

constexpr int64_t kOwn = 0xabc, kForeign = 0xdef;

class NumberedJournal final : public JournalOnTop {
 public:
  int64_t cluster() const override { return kOwn; }
};

class ForeignTasksTest : public EngineTest {
 protected:
  ForeignTasksTest() {
    journal_ = std::make_unique<NumberedJournal>();
    StartController();
  }
  // Of job 1.
  static v1::TaskReport Task(int64_t cluster, v1::TaskPhase phase = v1::RUNNING) {
    v1::TaskReport report;
    report.mutable_task()->set_job(1);
    report.mutable_task()->set_incarnation(1);
    report.mutable_task()->set_cluster(cluster);
    report.set_phase(phase);
    return report;
  }
  static v1::TaskReport Ended(int64_t cluster) {
    v1::TaskReport report = Task(cluster, v1::EXITED);
    report.set_own_end(true);
    return report;
  }
  void Report(const v1::TaskReport& report) {
    v1::FromAgent message;
    *message.mutable_report() = report;
    engine_->OnMessage(NodeId("a"), message);
  }
};

TEST_F(ForeignTasksTest, IsNotTakenForTheJobOfItsNumber) {
  const JobId job = Submit(Batch());
  ASSERT_EQ(job, JobId(1));
  cluster_.others["a"] = {Task(kForeign)};
  AddNodes({"a"});
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 1);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kKill), 0);
}

TEST_F(ForeignTasksTest, ItsEndIsNotTheJobs) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  Report(Ended(kForeign));
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kForget), 0);
}

TEST_F(ForeignTasksTest, TheEndOfItsOwnIs) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  Report(Ended(kOwn));
  EXPECT_EQ(State(job), JobState::kDone);
}

// Of an agent of an earlier version, or started by one.
TEST_F(ForeignTasksTest, AndThatOfOneThatSaysNothingOfItsCluster) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  Report(Ended(0));
  EXPECT_EQ(State(job), JobState::kDone);
}

TEST_F(ForeignTasksTest, ItsNumberIsNotGivenToAnotherJob) {
  cluster_.others["a"] = {Task(kForeign)};
  AddNodes({"a"});
  EXPECT_EQ(Submit(Batch()), JobId(2));
}

// It would wait for ever.
TEST_F(ForeignTasksTest, AFrozenOneContinues) {
  cluster_.others["a"] = {Task(kForeign, v1::SUSPENDED)};
  AddNodes({"a"});
  Settle();
  const v1::ToAgent resume = cluster_.Last(v1::ToAgent::kResume);
  EXPECT_EQ(resume.task().job(), 1);
  EXPECT_EQ(resume.task().cluster(), kForeign);
}

TEST_F(ForeignTasksTest, ItsProgressIsNotTheJobs) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  v1::FromAgent message;
  *message.mutable_progress()->mutable_task() = Task(kForeign).task();
  message.mutable_progress()->set_bytes_done(1);
  engine_->OnMessage(NodeId("a"), message);
  engine_->Read([&](const ClusterState& state) {
    EXPECT_FALSE(state.observed_tasks.at(NodeId("a")).at({job, 1, 0}).progress.has_value());
  });
}

}  // namespace
}  // namespace siding
