// The agent is killed; the next one finds everything as it should be. The host runs in a child process, which
// is killed with SIGKILL when its task has come to the phase that the test wants.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "agent/checkpoint/tracers.h"
#include "agent/node/host_fixture.h"
#include "agent/os/freezer.h"
#include "agent/os/processes.h"
#include "agent/shim/shim_process.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/fault.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

class RecoveryTest : public HostTest {
 protected:
  void SetUp() override { NeedCriu(); }

  // Runs `orders` with a host of its own in a child, waits until the task's record shows `phase`, calls
  // `before`, kills the child.
  void RunAndKillAt(
      v1::TaskPhase phase, const std::function<void()>& orders, const std::function<void()>& before = [] {}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      StartHost();
      orders();
      for (;;) pause();
    }
    EXPECT_TRUE(PollUntil([&] { return Recorded().report().phase() == phase; }, kPatience))
        << Recorded().DebugString();
    before();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  agent::TaskRecord Recorded() const {
    return ReadJsonFile<agent::TaskRecord>(tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json")
        .value_or(agent::TaskRecord());
  }
};

TEST_F(RecoveryTest, RunningTaskIsFoundRunning) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter()); });
  StartHost();
  AwaitPhase(v1::RUNNING);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(RecoveryTest, ARecordThatCouldNotBeWrittenIsWrittenLater) {
  StartHost();
  LaunchCounter(Counter());
  const std::string record = tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json";
  std::filesystem::remove(record);
  std::filesystem::create_directories(record + "/in the way");
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  std::filesystem::remove_all(record);
  host().Reports();
  EXPECT_EQ(Recorded().report().phase(), v1::SUSPENDED);
  Resume(3);
  AwaitPhase(v1::RUNNING);
}

// It lives on behind its task, of which the next agent knows that it has not been told how that ended.
TEST_F(RecoveryTest, AnEndThatTheShimCannotWriteIsWaitedFor) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter({"-x", "4"})); });
  const std::string exit = tasks_folder() + "/" + std::to_string(job_) + ".1.0/exit.json";
  std::filesystem::create_directories(exit + "/in the way");
  OpenGate();
  const agent::ProcessRef init = Recorded().init();
  EXPECT_TRUE(PollUntil([&] { return !IsAlive(init.pid(), init.start_time()); }, kPatience));
  StartHost();
  EXPECT_EQ(host().Reports().at(0).phase(), v1::RUNNING);
  std::filesystem::remove_all(exit);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 4);
}

TEST_F(RecoveryTest, DebuggerOfAJobIsLeftAlone) {
  RunAndKillAt(v1::RUNNING, [&] { LaunchCounter(Counter({"-d", "main", "-x", "4"})); });
  StartHost();
  AwaitPhase(v1::RUNNING);
  // What is ordered waits until it is adopted.
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  AwaitPhase(v1::RUNNING);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 4) << "as the debugger passes it on";
}

TEST_F(RecoveryTest, EndInTheAgentsAbsenceIsReported) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter({"-x", "4"})); });
  OpenGate();
  const std::string exit = tasks_folder() + "/" + std::to_string(job_) + ".1.0/exit.json";
  EXPECT_TRUE(PollUntil([&] { return std::filesystem::exists(exit); }, kPatience));
  StartHost();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 4);
}

TEST_F(RecoveryTest, SuspendedTaskIsFoundSuspended) {
  RunAndKillAt(v1::SUSPENDED, [&] {
    LaunchCounter(Counter());
    Suspend(2);
  });
  StartHost();
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

TEST_F(RecoveryTest, DumpingTaskGoesOn) {
  ASSERT_TRUE(ArmFaults("agent.dump.frozen=hold=" + folder_ + "/never", "", {}).ok());
  RunAndKillAt(v1::DUMPING, [&] {
    LaunchCounter(Counter());
    Dump(2, "1.1");
  });
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  StartHost();
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("the agent ended"));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(RecoveryTest, ATaskWithoutAgentAndCriuIsHeldUntilItsConnectionsWork) {
  const Freezer freezer = Freezer::Detect("n1");
  if (freezer.kind() != FreezerKind::kCgroup2) GTEST_SKIP() << "needs cgroup v2";
  pid_t criu = 0;
  RunAndKillAt(
      v1::PREPARED,
      [&] {
        LaunchCounter(Somebodys({"-c"}));
        Dump(2, "1.1");
      },
      [&] {
        const std::string folder = tasks_folder() + "/" + std::to_string(job_) + ".1.0";
        criu = FindCriuAtWork(Recorded().init().pid(), folder);
        ASSERT_GT(criu, 0);
        kill(criu, SIGSTOP);  // it undoes nothing when the agent is gone
      });
  ASSERT_GT(criu, 0);
  kill(criu, SIGKILL);
  const agent::ProcessRef init = Recorded().init();
  ASSERT_TRUE(PollUntil([&] { return FindTraced(init.pid()).empty(); }, kPatience));
  const std::string name = NameOutside(std::to_string(job_) + ".1.0", Recorded().cluster());
  EXPECT_TRUE(freezer.IsFrozen(name, init.pid()));
  StartHost();
  AwaitFailure(2);
  AwaitMoreLines();
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0) << "as its connection works";
  ExpectCompleteOutput();
}

TEST_F(RecoveryTest, PreparedTaskGoesOnAndCanBeDumpedAgain) {
  RunAndKillAt(v1::PREPARED, [&] {
    LaunchCounter(Counter());
    Dump(2, "1.1");
  });
  StartHost();
  AwaitFailure(2);
  EXPECT_FALSE(DraftsLeft());
  AwaitMoreLines();
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(3);
  AwaitPhase(v1::CHECKPOINTED);
}

TEST_F(RecoveryTest, CommittedTaskIsCheckpointed) {
  RunAndKillAt(v1::CHECKPOINTED, [&] {
    LaunchCounter(Counter());
    Dump(2, "1.1");
    AwaitPhase(v1::PREPARED);
    Commit(2);
  });
  // As if the agent had died right after its commit: the last thing that it wrote down.
  const std::string path = tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json";
  agent::TaskRecord record = Recorded();
  record.mutable_report()->set_phase(v1::PREPARED);
  ASSERT_TRUE(WriteJsonFile(path, record).ok());
  StartHost();
  EXPECT_EQ(AwaitPhase(v1::CHECKPOINTED).committed_op(), 2);
}

TEST_F(RecoveryTest, TaskWithoutItsShimIsEndedAndLost) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter()); });
  const auto shim =
      ReadJsonFile<agent::ProcessRef>(tasks_folder() + "/" + std::to_string(job_) + ".1.0/shim.json");
  ASSERT_TRUE(shim.ok());
  kill(shim->pid(), SIGKILL);
  EXPECT_TRUE(PollUntil([&] { return !IsAlive(shim->pid(), shim->start_time()); }, kPatience));
  StartHost();
  AwaitPhase(v1::LOST);
  const auto& init = Recorded().init();
  EXPECT_FALSE(IsAlive(init.pid(), init.start_time())) << "what is lost has ended";
}

TEST_F(RecoveryTest, TaskWhoseShimDiedBeforeItCouldTellIsEndedBeforeItIsLost) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter()); });
  const std::string folder = tasks_folder() + "/" + std::to_string(job_) + ".1.0";
  const auto init = Recorded().init();
  // As it is when the init runs and that is not recorded yet.
  agent::TaskRecord record = Recorded();
  record.mutable_report()->set_phase(v1::LAUNCHING);
  record.clear_init();
  record.set_externally_managed(true);  // in no cgroup of ours
  ASSERT_TRUE(WriteJsonFile(folder + "/task.json", record).ok());
  std::filesystem::remove(folder + "/running.json");
  ASSERT_TRUE(EndShim(folder).ok());
  ASSERT_TRUE(IsAlive(init.pid(), init.start_time()));
  StartHost();
  AwaitPhase(v1::LOST);
  EXPECT_FALSE(IsAlive(init.pid(), init.start_time()));
}

TEST_F(RecoveryTest, TaskWhoseRecordCannotBeReadIsEndedAndLost) {
  RunAndKillAt(v1::RUNNING, [&] { Launch(Counter()); });
  const std::string folder = tasks_folder() + "/" + std::to_string(job_) + ".1.0";
  const auto init = Recorded().init();
  ASSERT_TRUE(WriteFileAtomically(folder + "/task.json", "{").ok());
  StartHost();
  EXPECT_EQ(host().Reports().size(), 1u);
  AwaitPhase(v1::LOST);
  EXPECT_FALSE(IsAlive(init.pid(), init.start_time()));
}

TEST_F(RecoveryTest, AgentThatCannotListItsTasksDoesNotStart) {
  ASSERT_TRUE(WriteFileAtomically(tasks_folder(), "a file").ok());
  const auto host = NewTaskHost(Options(), sink_, SystemClock());
  EXPECT_THAT(std::string(host.status().message()), HasSubstr("list " + tasks_folder()));
}

TEST_F(RecoveryTest, TasksOfBeforeTheRestartOfTheMachineAreLost) {
  RunAndKillAt(v1::EXITED, [&] { Launch(Job({"1"})); });
  const std::string folder = tasks_folder() + "/" + std::to_string(job_) + ".1.0";
  agent::TaskRecord record = Recorded();
  record.mutable_report()->set_phase(v1::RUNNING);
  record.set_boot_id("another");
  ASSERT_TRUE(WriteJsonFile(folder + "/task.json", record).ok());
  std::filesystem::remove(folder + "/exit.json");
  StartHost();
  EXPECT_EQ(host().Reports().at(0).phase(), v1::LOST);
}

class ShutdownTest : public RecoveryTest {
 protected:
  // A task that ends while there is no agent. `told`: as it is when the machine shuts down.
  void EndTask(bool told) {
    RunAndKillAt(v1::RUNNING, [&] { Launch(Counter()); });
    const std::string folder = tasks_folder() + "/" + std::to_string(job_) + ".1.0";
    const auto shim = *ReadJsonFile<agent::ProcessRef>(folder + "/shim.json");
    ASSERT_TRUE(IsAlive(shim.pid(), shim.start_time()));
    if (told) kill(shim.pid(), SIGTERM);
    kill(Recorded().init().pid(), SIGKILL);
    ASSERT_TRUE(PollUntil([&] { return std::filesystem::exists(folder + "/exit.json"); }, kPatience));
  }
  void Reboot() {
    agent::TaskRecord record = Recorded();
    record.set_boot_id("another");
    ASSERT_TRUE(WriteJsonFile(tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json", record).ok());
  }
};

TEST_F(ShutdownTest, TaskThatAShutdownEndedIsLost) {
  EndTask(/*told=*/true);
  Reboot();
  StartHost();
  AwaitPhase(v1::LOST);
}
TEST_F(ShutdownTest, TaskThatHadEndedBeforeTheShutdownHasEnded) {
  EndTask(/*told=*/false);
  Reboot();
  StartHost();
  AwaitPhase(v1::EXITED);
}
TEST_F(ShutdownTest, WithoutARestartOfTheMachineTheEndIsTheTasksOwn) {
  EndTask(/*told=*/true);
  StartHost();
  AwaitPhase(v1::EXITED);
}

}  // namespace
}  // namespace siding
