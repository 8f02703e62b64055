// Tasks with GPUs, on real processes and with a driver that has none: a job whose state on the GPU is not
// what it should be makes no steps.
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "agent/node/gpu_fixture.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
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
  v1::ToAgent suspend = Command(2);
  suspend.mutable_suspend()->set_lock_patience_us(200'000);
  Order(suspend);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("GPU"));
  gpu_.NoFault();
  EXPECT_EQ(GpuState(), kRunning);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
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

TEST_F(GpuTest, StateThatTheDriverRefusesToPutBackThreeTimesIsLost) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  gpu_.Fault("restore 801");
  for (int64_t op : {3, 4}) {
    Resume(op);
    EXPECT_THAT(AwaitFailureIn(v1::SUSPENDED, op).gpu_state_lost(), IsEmpty());
  }
  Resume(5);
  EXPECT_THAT(AwaitFailureIn(v1::SUSPENDED, 5).gpu_state_lost(), HasSubstr("CUDA_ERROR_NOT_SUPPORTED"));
}

// Out of memory, and an unknown error: the driver may have another reason than this state.
class PassingRefusal : public GpuTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(PassingRefusal, LosesNothingHoweverOften) {
  StartHostWith(1);
  LaunchCounter(GpuJob());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  gpu_.Fault(GetParam());
  for (int64_t op : {3, 4, 5, 6}) {
    Resume(op);
    EXPECT_THAT(AwaitFailureIn(v1::SUSPENDED, op).gpu_state_lost(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, PassingRefusal, ::testing::Values("restore 2", "restore 999"));

// A device of the driver's name, for descriptors that workers inherit.
class InheritedTest : public GpuTest {
 protected:
  ~InheritedTest() override { unlink(kDevice); }
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    unlink(kDevice);
    gpu_.Write("follows", std::to_string(first_process()));
    ASSERT_EQ(mknod(kDevice, S_IFCHR | 0666, makedev(1, 3)), 0);
  }
  // The job, and a worker that has the device open and is none of the driver's.
  v1::JobSpec JobWithWorker() const {
    v1::JobSpec spec = GpuJob();
    const std::string job = spec.command(0);
    spec.mutable_command()->Clear();
    for (const std::string& word :
         {std::string("/bin/sh"), std::string("-c"),
          std::string("sleep 1000 3<") + kDevice + " & exec \"$0\" -g -e \"$1\"", job, gate()})
      spec.add_command(word);
    return spec;
  }
  static constexpr char kDevice[] = "/dev/nvidia-siding-test";
};

TEST_F(InheritedTest, WorkerWithDescriptorsOfAGpuIsFrozenLikeAnyOther) {
  StartHostWith(1);
  LaunchCounter(JobWithWorker());
  Suspend(2);
  EXPECT_THAT(AwaitPhase(v1::SUSPENDED).gpus(), IsEmpty());
  LaunchNeighbour();  // the GPU is free
  EXPECT_EQ(GpuState(), kCheckpointed);
}

TEST_F(InheritedTest, WhereTheGpuStaysFullTheJobRunsOn) {
  StartHostWith(1);
  LaunchCounter(JobWithWorker());
  gpu_.Write("follows", "nobody");
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("its GPUs still hold 100"));
  EXPECT_EQ(GpuState(), kRunning);
  AwaitMoreLines();
}

TEST_F(InheritedTest, ItIsNotCheckpointedAndSaysWhy) {
  StartHostWith(1);
  LaunchCounter(JobWithWorker());
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("(sleep) has the device"));
  EXPECT_EQ(GpuState(), kRunning);
  AwaitMoreLines();
}

TEST_F(InheritedTest, WithItsWorkerItComesBack) {
  StartHostWith(1);
  LaunchCounter(JobWithWorker());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kFirst));
  AwaitMoreLines();
}

TEST_F(InheritedTest, NextAgentKnowsThatTheWorkerIsOnNoGpu) {
  StartHostWith(1);
  LaunchCounter(JobWithWorker());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  host_.reset();
  StartHost();
  EXPECT_THAT(AwaitPhase(v1::SUSPENDED).gpus(), IsEmpty());
  LaunchNeighbour();
}

// Two processes that are the driver's clients, as it seems: both have its library, and NCCL's.
class SharingTest : public GpuTest {
 protected:
  v1::JobSpec TwoRanks() const {
    for (const char* name : {"libcuda.so.1", "libnccl.so.2"})
      std::ofstream(folder_ + "/" + name) << std::string(4096, 'x');
    v1::JobSpec spec = GpuJob();
    spec.mutable_command()->Clear();
    const std::string text =
        "import mmap, os, time\n"
        "files = [open(name, 'rb') for name in ('libcuda.so.1', 'libnccl.so.2')]\n"
        "kept = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]\n"
        "child = os.fork()\n"
        "open('%s/%d' % (os.environ['FAKE_GPU_STATES'], os.getpid()), 'w').write('0')\n"
        "while True:\n"
        "    if child: print(1, flush=True)\n"
        "    time.sleep(0.02)\n";
    for (const std::string& word : {std::string("/usr/bin/python3"), std::string("-c"), text})
      spec.add_command(word);
    return spec;
  }
  v1::TaskReport Look() {
    v1::TaskReport found;
    for (const v1::TaskReport& report : host().Reports()) {
      if (report.task().job() == job_) found = report;
    }
    return found;
  }
};

TEST_F(SharingTest, RanksThatMayShareMemoryAreNotTouched) {
  StartHostWith(1);
  LaunchCounter(TwoRanks());
  EXPECT_THAT(Look().cannot_drain(), HasSubstr("2 processes on GPUs may share GPU memory"));
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("NCCL_NVLS_ENABLE=0"));
  EXPECT_EQ(GpuState(), kRunning);
  AwaitMoreLines();
}

TEST_F(SharingTest, WithDrainableCollectivesTheyAreLockedTogetherAndComeBack) {
  gpu_.Write("peers", "2");  // neither can be locked without the other
  StartHostWith(1);
  v1::JobSpec spec = TwoRanks();
  spec.set_gpu_collectives(v1::DRAINABLE);
  (*spec.mutable_env())["NCCL_P2P_DISABLE"] = "0";  // overruled
  LaunchCounter(spec);
  EXPECT_THAT(Look().cannot_drain(), IsEmpty());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  EXPECT_EQ(GpuState(), kCheckpointed);
  EXPECT_EQ(gpu_.Read(std::to_string(first_process() + 1)), kCheckpointed);
  Resume(3);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

TEST_F(SharingTest, RankThatWaitsForAPeerOutsideIsGivenUpInTime) {
  gpu_.Write("peers", "3");  // the third is not of this task
  StartHostWith(1);
  v1::JobSpec spec = TwoRanks();
  spec.set_gpu_collectives(v1::DRAINABLE);
  LaunchCounter(spec);
  v1::ToAgent command = Command(2);
  command.mutable_suspend()->set_lock_patience_us(300'000);
  Order(command);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("2 processes on GPUs could not be locked in 300ms"));
  EXPECT_EQ(GpuState(), kRunning);
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
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
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
  EXPECT_TRUE(PollUntil([&] { return recorded().gpu().drained() && GpuState() == "1"; }, kPatience));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  gpu_.NoFault();
  StartHost();
  EXPECT_THAT(AwaitPhase(v1::RUNNING).gpus(), ElementsAre(kFirst));
  EXPECT_EQ(GpuState(), kRunning);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
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
  Restore(GpuJob(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  v1::ToAgent kill = Command(200, 2);
  kill.mutable_kill();
  Order(kill);
  AwaitPhase(v1::EXITED, 2);
  EXPECT_EQ(GpuState(), kCheckpointed);
}

}  // namespace
}  // namespace siding
