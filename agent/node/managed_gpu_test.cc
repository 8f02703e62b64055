// Tasks that a cluster manager has started, and given GPUs to.
#include <future>

#include "agent/node/gpu_fixture.h"
#include "agent/os/processes.h"
#include "agent/shim/shim_process.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ManagedGpuTest : public GpuTest {
 protected:
  // As the cluster manager does: it starts the shim itself, when the orders are there.
  absl::Status Start(const v1::ToAgent& command, const GpuAllocation& gpus) {
    std::promise<absl::Status> ready;
    const auto folder =
        host().ExpectShim(command, gpus, [&](const absl::Status& status) { ready.set_value(status); });
    if (!folder.ok()) return folder.status();
    std::future<absl::Status> orders = ready.get_future();
    if (!Comes(orders)) return absl::DeadlineExceededError("no orders");
    if (absl::Status status = orders.get(); !status.ok()) return status;
    const std::string program = Options("n1").shim_path;
    // The agent looks at the lock now and then.
    const bool started = PollUntil([&] { return StartShim(program, *folder).ok(); }, kPatience);
    return started ? absl::OkStatus() : absl::InternalError("no shim");
  }
  // Slurm's jobs do not say how many GPUs they want: the list does.
  v1::JobSpec ManagedJob() const {
    v1::JobSpec spec = GpuJob();
    spec.clear_per_node();
    spec.set_cluster_manager("slurm");
    return spec;
  }
  void LaunchManaged(const GpuAllocation& gpus) {
    v1::ToAgent command = Command(1);
    *command.mutable_launch()->mutable_spec() = ManagedJob();
    ASSERT_EQ(Start(command, gpus), absl::OkStatus());
    AwaitPhase(v1::RUNNING);
    AwaitLines(3);
  }
  absl::Status RestoreManaged(const GpuAllocation& gpus) {
    v1::ToAgent command = Command(100, 2);
    v1::Restore& restore = *command.mutable_restore();
    *restore.mutable_spec() = ManagedJob();
    restore.set_checkpoint("1.1");
    restore.set_tier(v1::SHARED);
    return Start(command, gpus);
  }
  v1::TaskReport Report() {
    const auto reports = host().Reports();
    return reports.empty() ? v1::TaskReport() : reports.front();
  }
  agent::TaskRecord Record(int incarnation) const {
    const std::string name = absl::StrCat(job_, ".", incarnation, ".0");
    return ReadJsonFile<agent::TaskRecord>(tasks_folder() + "/" + name + "/task.json")
        .value_or(agent::TaskRecord());
  }
};

TEST_F(ManagedGpuTest, ReportsTheGpusThatItWasGiven) {
  StartHostWith(2);
  LaunchManaged({"1", ""});
  const v1::TaskReport report = Report();
  EXPECT_THAT(report.gpus(), ElementsAre(kSecond));
  EXPECT_EQ(report.spec().per_node().gpus(), 1);
  EXPECT_EQ(report.gpu_memory(), 100 << 20);
  EXPECT_EQ(report.cannot_drain(), "");
}

// Tasks outlive the agent, and the version of it, that wrote their records.
TEST(ManagedGpuRecord, IsReadAndWrittenAsByEarlierVersions) {
  const std::string text = R"({"hosted":true,"onlyGivenGpus":true,"givenGpus":["GPU-a"]})";
  const auto record = FromJson<agent::TaskRecord>(text);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(record->allocated_gpus(), ElementsAre("GPU-a"));
  EXPECT_TRUE(record->only_allocated_gpus());
  EXPECT_TRUE(record->externally_managed());
  EXPECT_THAT(*ToJson(*record),
              AllOf(HasSubstr("\"hosted\""), HasSubstr("\"givenGpus\""), HasSubstr("\"onlyGivenGpus\"")));
}

TEST_F(ManagedGpuTest, WithoutGpusItIsAnOrdinaryTask) {
  StartHostWith(2);
  LaunchManaged({});
  const v1::TaskReport report = Report();
  EXPECT_THAT(report.gpus(), IsEmpty());
  EXPECT_EQ(report.spec().per_node().gpus(), 0);
  EXPECT_EQ(report.cannot_drain(), "");
}

TEST_F(ManagedGpuTest, SuspendedItIsOffItsGpuAndComesBackToIt) {
  StartHostWith(2);
  LaunchManaged({"1", ""});
  Suspend(2);
  EXPECT_THAT(AwaitPhase(v1::SUSPENDED).gpus(), IsEmpty());
  EXPECT_EQ(GpuState(), kCheckpointed);
  Resume(3);
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kSecond));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(ManagedGpuTest, DumpedItIsRestoredOntoTheGpuThatItsNextStartWasGiven) {
  StartHostWith(2);
  LaunchManaged({"0", ""});
  DumpAndCommit(2, "1.1");
  EXPECT_EQ(GpuState(), kCheckpointed);
  ASSERT_EQ(RestoreManaged({"1", ""}), absl::OkStatus());
  EXPECT_THAT(AwaitPhase(v1::RUNNING, 2).gpus(), ElementsAre(kSecond));
  EXPECT_EQ(gpu_.Read("moves"), "1 to 2");  // and the other way round
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(ManagedGpuTest, TheDevicesThatItMayOpenSayWhichGpusItHas) {
  StartHostWith(2);
  LaunchManaged({"0", "1"});
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kSecond));
}

TEST_F(ManagedGpuTest, OfGpusThatItMayNotOpenTheDriverIsNotTold) {
  StartHostWith(2);
  LaunchManaged({"0", "0"});
  DumpAndCommit(2, "1.1");
  ASSERT_EQ(RestoreManaged({"0", "1"}), absl::OkStatus());
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_EQ(ReadFile(gpu_.path() + "/moves").value_or(""), "1 to 2\n");
}

TEST_F(ManagedGpuTest, TwoTasksMayHaveOneGpuTogether) {
  StartHostWith(2);
  LaunchManaged({"0", ""});
  LaunchNeighbour();  // siding's own: it gets the other
  EXPECT_THAT(sink_.Await(neighbour_, [](const auto& r) { return r.gpus_size() == 1; }).gpus(),
              ElementsAre(kSecond));
}

TEST_F(ManagedGpuTest, WhoseGpusAreNotKnownRunsAndStaysWhereItIs) {
  StartHostWith(1);
  LaunchManaged({"7", ""});
  EXPECT_EQ(Report().cannot_drain(), "it was given GPU 7, and the GPU driver knows 1");
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("it was given GPU 7"));
  Dump(3, "1.1");
  EXPECT_THAT(AwaitFailure(3).error(), HasSubstr("it was given GPU 7"));
  EXPECT_EQ(GpuState(), kRunning);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(ManagedGpuTest, OnAnAgentWithoutGpusItRunsAndStaysWhereItIs) {
  StartHostWith(0);
  LaunchManaged({"0", ""});
  EXPECT_EQ(Report().cannot_drain(), "this node's agent drains no GPUs");
}

TEST_F(ManagedGpuTest, IsNotRestoredOntoFewerGpusThanItHad) {
  StartHostWith(2);
  LaunchManaged({"0-1", ""});
  DumpAndCommit(2, "1.1");
  EXPECT_EQ(RestoreManaged({"1", ""}),
            absl::FailedPreconditionError("it is off its 2 GPUs, and has been given 1"));
  AwaitPhase(v1::RESTORE_FAILED, 2);
}

TEST_F(ManagedGpuTest, IsNotRestoredWithoutAGpuIfItHadOne) {
  StartHostWith(1);
  LaunchManaged({"0", ""});
  DumpAndCommit(2, "1.1");
  EXPECT_EQ(RestoreManaged({}), absl::FailedPreconditionError("it is off its 1 GPUs, and has been given 0"));
}

TEST_F(ManagedGpuTest, RestoreThatFailsOnTheGpuIsNoEndOfTheJob) {
  StartHostWith(1);
  LaunchManaged({"0", ""});
  DumpAndCommit(2, "1.1");
  gpu_.Fault("restore 2");
  ASSERT_EQ(RestoreManaged({"0", ""}), absl::OkStatus());
  EXPECT_THAT(AwaitPhase(v1::RESTORE_FAILED, 2).error(), HasSubstr("GPU driver, restore"));
  EXPECT_TRUE(Record(2).put_off());
  EXPECT_TRUE(Record(2).restored());
}

TEST_F(ManagedGpuTest, TheNextAgentKnowsItsGpus) {
  StartHostWith(2);
  LaunchManaged({"1", ""});
  host_.reset();
  StartHost();
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kSecond));
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  EXPECT_EQ(GpuState(), kCheckpointed);
}

}  // namespace
}  // namespace siding
