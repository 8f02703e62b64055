// Tasks with GPUs, on real processes and with a driver that has none: a job whose state on the GPU is not
// what it should be makes no steps.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/gpu_fixture.h"
#include "agent/host/task_record.pb.h"
#include "agent/launch/json_file.h"
#include "agent/launch/processes.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSteps = kGpuSteps;

TEST_F(GpuTest, JobGetsItsGpuByName) {
  StartHostWith(2);
  LaunchCounter(GpuJob());
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kFirst));
  const auto record =
      ReadJsonFile<agent::TaskRecord>(tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json");
  const auto environment = ReadFile("/proc/" + std::to_string(record->init().pid()) + "/environ");
  EXPECT_THAT(environment.value_or(""), HasSubstr(std::string("CUDA_VISIBLE_DEVICES=") + kFirst));
}

TEST_F(GpuTest, TwoJobsHaveTwoGpus) {
  StartHostWith(2);
  LaunchCounter(GpuJob());
  LaunchNeighbour();
  EXPECT_THAT(sink_.Await(neighbour_, [](const auto& r) { return r.gpus_size() == 1; }).gpus(),
              ElementsAre(kSecond));
}

TEST_F(GpuTest, JobForWhichThereIsNoGpuDoesNotStart) {
  StartHostWith(1);
  LaunchNeighbour();
  Launch(GpuJob());
  EXPECT_THAT(AwaitPhase(v1::LAUNCH_FAILED).error(), HasSubstr("GPUs are free"));
}

TEST_F(GpuTest, SuspendedJobIsOffItsGpuAndComesBack) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  EXPECT_THAT(AwaitPhase(v1::SUSPENDED).gpus(), IsEmpty());
  EXPECT_EQ(GpuState(), kCheckpointed);
  Resume(3);
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kFirst));
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput(kSteps);
}

TEST_F(GpuTest, SuspendedJobGoesOnOnAnotherGpuIfItsOwnIsTaken) {
  StartHostWith(2);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  LaunchNeighbour();  // gets the first
  Resume(3);
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kSecond));
  EXPECT_EQ(gpu_.Read("moves"), "1 to 2");  // and the other way round
  AwaitMoreLines();
}

TEST_F(GpuTest, JobStaysSuspendedWhileNoGpuIsFree) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  LaunchNeighbour();
  Resume(3);
  EXPECT_THAT(AwaitFailureIn(v1::SUSPENDED, 3).error(), HasSubstr("GPUs are free"));
  EXPECT_EQ(GpuState(), kCheckpointed);
}

TEST_F(GpuTest, JobStaysSuspendedWhileItsGpuIsTooFull) {
  StartHostWith(1, 600);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  EXPECT_THAT(AwaitFailureIn(v1::SUSPENDED, 3).error(), HasSubstr("GPU memory are needed"));
  SetInUse(1, 0);
  Resume(4);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

// Each step of the way off the GPU fails once: the job runs on.
class SuspendFault : public GpuTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(SuspendFault, LeavesTheJobRunning) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  gpu_.Fault(GetParam());
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("GPU"));
  gpu_.NoFault();
  EXPECT_EQ(GpuState(), kRunning);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput(kSteps);
}

INSTANTIATE_TEST_SUITE_P(Steps, SuspendFault,
                         ::testing::Values("lock 600", "lock crash", "checkpoint 801", "checkpoint crash"));

TEST_F(GpuTest, ResumeThatFailsLeavesItSuspendedAndCanBeTriedAgain) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  gpu_.Fault("restore 999");
  Resume(3);
  AwaitFailureIn(v1::SUSPENDED, 3);
  gpu_.NoFault();
  Resume(4);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

TEST_F(GpuTest, DumpedJobIsRestoredOntoAGpu) {
  StartHostWith(2);
  LaunchCounter(GpuJob());
  DumpAndCommit(2, "1.1");
  EXPECT_EQ(GpuState(), kCheckpointed);
  LaunchNeighbour();
  Restore(GpuJob(), "1.1");
  EXPECT_THAT(AwaitPhase(v1::RUNNING, 2).gpus(), ElementsAre(kSecond));
  EXPECT_EQ(gpu_.Read("moves"), "1 to 2");  // and the other way round
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput(kSteps);
}

TEST_F(GpuTest, DumpThatIsCalledOffPutsTheJobBack) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  EXPECT_EQ(GpuState(), kCheckpointed);
  Abort(2);
  AwaitFailure(2);
  EXPECT_EQ(GpuState(), kRunning);
  AwaitMoreLines();
}

TEST_F(GpuTest, JobThatGoesOnAfterItsDumpIsBackOnItsGpu) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Dump(2, "1.1", /*keep_running=*/true);
  AwaitPhase(v1::PREPARED);
  Commit(2);
  sink_.Await(Task(), [](const auto& r) { return r.committed_op() == 2 && r.phase() == v1::RUNNING; });
  EXPECT_EQ(GpuState(), kRunning);
  AwaitMoreLines();
}

TEST_F(GpuTest, SuspendedJobCanBeDumpedWhileAnotherHasItsGpu) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  LaunchNeighbour();
  DumpAndCommit(3, "1.1");
}

TEST_F(GpuTest, DumpOfASuspendedJobThatFailsLeavesItSuspended) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  LaunchNeighbour();
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
  Abort(3);
  AwaitFailureIn(v1::SUSPENDED, 3);
  EXPECT_EQ(GpuState(), kCheckpointed);
}

TEST_F(GpuTest, RestoreThatFailsOnTheGpuLeavesNoProcesses) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  DumpAndCommit(2, "1.1");
  gpu_.Fault("restore 2");
  Restore(GpuJob(), "1.1");
  const v1::TaskReport failed = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(failed.error(), HasSubstr("GPU driver, restore"));
  EXPECT_THAT(failed.gpus(), IsEmpty());
  EXPECT_FALSE(failed.image_damaged());
  gpu_.NoFault();
  Restore(GpuJob(), "1.1", 3, 300);
  AwaitPhase(v1::RUNNING, 3);
  AwaitMoreLines();
}

TEST_F(GpuTest, AgentThatDiesInTheMiddleOfADrainFindsTheJobAndPutsItBack) {
  SetInUse(1, 100);
  const std::string record = tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json";
  const auto recorded = [&] { return ReadJsonFile<agent::TaskRecord>(record).value_or(agent::TaskRecord()); };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    StartHost();
    LaunchCounter(GpuJob());
    gpu_.Fault("checkpoint hang");
    Suspend(2);
    for (;;) pause();
  }
  EXPECT_TRUE(
      PollUntil([&] { return recorded().gpu().drained() && GpuState() == "1"; }, std::chrono::seconds(60)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  gpu_.NoFault();
  StartHost();
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kFirst));
  EXPECT_EQ(GpuState(), kRunning);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput(kSteps);
}

TEST_F(GpuTest, SuspendedJobIsFoundSuspendedByTheNextAgent) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  host_.reset();
  StartHost();
  EXPECT_THAT(AwaitPhase(v1::SUSPENDED).gpus(), IsEmpty());
  LaunchNeighbour();
  EXPECT_EQ(GpuState(), kCheckpointed);
}

TEST_F(GpuTest, KilledAfterARestoreItIsTakenOffItsGpuFirst) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  DumpAndCommit(2, "1.1");
  Restore(GpuJob(100000), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  v1::ToAgent kill = Command(200, 2);
  kill.mutable_kill();
  Order(kill);
  AwaitPhase(v1::EXITED, 2);
  EXPECT_EQ(GpuState(), kCheckpointed);
}

}  // namespace
}  // namespace siding
