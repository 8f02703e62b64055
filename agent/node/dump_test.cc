#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/shim.pb.h"
#include "agent/task/task_record.pb.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

class DumpTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (!IsSkipped()) StartHost();
  }
  void DumpAndCommit(int64_t op, const std::string& checkpoint, bool keep_running = false) {
    Dump(op, checkpoint, keep_running);
    EXPECT_EQ(AwaitPhase(v1::PREPARED).op(), op);
    Commit(op);
    if (!keep_running) AwaitPhase(v1::CHECKPOINTED);
  }
};

TEST_F(DumpTest, RestoredJobGoesOnAndWritesEachLineOnce) {
  LaunchCounter(Counter());
  Dump(2, "1.1");
  const auto prepared = AwaitPhase(v1::PREPARED);
  EXPECT_EQ(prepared.checkpoint(), "1.1");
  EXPECT_GT(prepared.image_bytes(), 4 << 20);
  Commit(2);
  EXPECT_EQ(AwaitPhase(v1::CHECKPOINTED).committed_op(), 2);
  const int lines = Lines();
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  AwaitLines(lines + 2);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

// Its shim has seen the end, and does not say so before the dump has failed.
TEST_F(DumpTest, OneThatEndsJustBeforeItsDumpHasEndedAndNoDumpHasFailed) {
  const std::string failed = folder_ + "/failed";
  {
    const FaultOfShims fault("shim.ended=hold=" + failed);
    LaunchCounter(Counter());
  }
  const auto record =
      ReadJsonFile<agent::TaskRecord>(absl::StrCat(tasks_folder(), "/", job_, ".1.0/task.json"));
  ASSERT_TRUE(record.ok());
  const pid_t init = record->init().pid();
  OpenGate();
  ASSERT_TRUE(PollUntil([&] { return kill(init, 0) != 0; }, kPatience));
  ASSERT_TRUE(ArmFaults("agent.dump=error", failed, {"shim"}).ok());
  Dump(2, "1.1");
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_EQ(sink_.WhyFailed(2), "");
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(DumpTest, RestoredJobCanBeDumpedAgain) {
  LaunchCounter(Counter());
  DumpAndCommit(2, "1.1");
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  v1::ToAgent dump = Command(200, 2);
  dump.mutable_dump()->set_checkpoint("1.2");
  dump.mutable_dump()->set_tier(v1::LOCAL);
  Order(dump);
  AwaitPhase(v1::PREPARED, 2);
  v1::ToAgent commit = Command(200, 2);
  commit.mutable_commit();
  Order(commit);
  AwaitPhase(v1::CHECKPOINTED, 2);
}

// The folder for temporary files is one that it has in its environment, and may have files open in.
TEST_F(DumpTest, ARestoredJobKeepsItsNamesWhateverTheNodesClusterIsByThen) {
  LaunchCounter(Counter());
  const std::string begun = (ProgramNames{cluster(), job_, 0}).Tmpdir(getuid());
  DumpAndCommit(2, "1.1");
  std::filesystem::remove_all(begun);
  Welcome(0xabc);
  ASSERT_EQ(cluster(), "0000000000000abc");
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_TRUE(std::filesystem::exists(begun));
  EXPECT_FALSE(std::filesystem::exists((ProgramNames{cluster(), job_, 0}).Tmpdir(getuid())));
  std::filesystem::remove_all(begun);
}

// Such as a job of Slurm's that it has started again, after the controller was set up anew.
TEST_F(DumpTest, WhatARestoredTaskHasFromAnotherClusterStaysWhenThatOnesTaskIsForgotten) {
  Welcome(0xabc);
  const std::string begun = (ProgramNames{cluster(), job_, 0}).Tmpdir(getuid());
  LaunchCounter(Counter());
  Dump(2, "1.1", true);
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitPhase(v1::RUNNING);
  OpenGate();
  AwaitPhase(v1::EXITED);
  CloseGate();
  Welcome(0xdef);
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  v1::ToAgent forget = Command(3);
  forget.mutable_task()->set_cluster(0xabc);
  forget.mutable_forget();
  EXPECT_TRUE(PollUntil(
      [&] {
        Order(forget);
        return host().Reports().size() == 1;
      },
      kPatience));
  EXPECT_TRUE(std::filesystem::exists(begun));
  std::filesystem::remove_all(begun);
}

TEST_F(DumpTest, AJobBegunByAnEarlierVersionKeepsItsNames) {
  LaunchCounter(Counter());
  host_.reset();
  const std::string path = tasks_folder() + "/" + std::to_string(job_) + ".1.0/task.json";
  auto record = ReadJsonFile<agent::TaskRecord>(path);
  ASSERT_TRUE(record.ok());
  record->clear_begun_in();
  ASSERT_TRUE(WriteJsonFile(path, *record, 0600).ok());
  StartHost();
  DumpAndCommit(2, "1.1");
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  const std::string old = (ProgramNames{"", job_, 0}).Tmpdir(getuid());
  EXPECT_TRUE(std::filesystem::exists(old));
  std::filesystem::remove_all(old);
}

TEST_F(DumpTest, AbortLetsTheJobGoOn) {
  LaunchCounter(Counter());
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("called off"));
  EXPECT_FALSE(DraftsLeft());
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

class TracedDumpTest : public DumpTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(TracedDumpTest, JobIsNotDumpedAndGoesOnWithItsDebugger) {
  const auto traced = HasSubstr("(siding-test-job) is being traced by process");
  LaunchCounter(Counter({"-d", GetParam(), "-x", "4"}));
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), traced);
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), traced);
  AwaitMoreLines();
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 4) << "as the debugger passes it on";
}
INSTANTIATE_TEST_SUITE_P(AnyThread, TracedDumpTest, ::testing::Values("main", "thread"));

// CRIU has all sockets in repair mode then.
TEST_F(DumpTest, ConnectionsOfAJobWorkAfterTheDeathOfItsCriu) {
  LaunchCounter(Counter({"-c"}));
  ASSERT_TRUE(ArmFaults("agent.dump.frozen=kill-criu", "", {}).ok());
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("2 of its sockets in repair mode"));
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

// A server outside of the job that sends back what it gets on one connection.
class Echo {
 public:
  Echo() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] {
      const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      connection_ = connection.get();
      for (char text; recv(connection.get(), &text, 1, 0) == 1;)
        send(connection.get(), &text, 1, MSG_NOSIGNAL);
      connection_ = -1;
    });
  }
  // When the job has ended.
  ~Echo() {
    shutdown(listener_.get(), SHUT_RDWR);
    shutdown(connection_, SHUT_RDWR);  // of a job that has not ended, as its test has failed
    thread_.join();
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  const std::string& port() const { return port_; }

 private:
  const UniqueFd listener_;
  std::string port_;
  std::atomic<int> connection_ = -1;
  std::thread thread_;
};

TEST_F(DumpTest, AConnectionToOutsideGoesOnAfterACheckpoint) {
  const Echo echo;
  LaunchCounter(Somebodys({"-o", echo.port()}));
  Dump(2, "1.1", true);
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitPhase(v1::RUNNING);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
}

// Its packets were being kept from it.
TEST_F(DumpTest, AConnectionToOutsideGoesOnAfterTheDeathOfItsCriu) {
  const Echo echo;
  LaunchCounter(Somebodys({"-o", echo.port()}));
  ASSERT_TRUE(ArmFaults("agent.dump.frozen=kill-criu", "", {}).ok());
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("1 of its sockets in repair mode"));
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
}

TEST_F(DumpTest, ConnectionsOfAJobWorkAfterItsRestore) {
  LaunchCounter(Counter({"-c"}));
  Vacate("1.1");
  Restore(Counter({"-c"}), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
}

TEST_F(DumpTest, ConnectionThatNobodyAcceptsIsTheReasonAfterSomeTries) {
  LaunchCounter(Counter({"-l"}));
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("has not accepted a connection that has come to it"));
  AwaitMoreLines();
}

TEST_F(DumpTest, JobThatReadsAsynchronouslyIsRestored) {
  const v1::JobSpec spec = Somebodys({"-a"});
  LaunchCounter(spec);
  Vacate("1.1");
  const int lines = Lines();
  Restore(spec, "1.1");
  AwaitPhase(v1::RUNNING, 2);
  AwaitLines(lines + 2);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(DumpTest, DeadlineLetsTheJobGoOn) {
  LaunchCounter(Counter());
  Dump(2, "1.1", false, 500'000);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("not committed in time"));
  EXPECT_FALSE(DraftsLeft());
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
}

TEST_F(DumpTest, FailedDumpIsNotTriedAgainUnderTheSameOperation) {
  LaunchCounter(Counter());
  Dump(2, "1.1", false, 1);
  AwaitFailure(2);
  Dump(2, "1.1");
  EXPECT_EQ(AwaitPhase(v1::RUNNING).failed_op(), 2);
  DumpAndCommit(3, "1.1");
}

TEST_F(DumpTest, SuspendedJobCanBeDumped) {
  LaunchCounter(Counter());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  DumpAndCommit(3, "1.1");
}

TEST_F(DumpTest, KeepRunningCommitsAndGoesOn) {
  LaunchCounter(Counter());
  DumpAndCommit(2, "1.1", /*keep_running=*/true);
  const auto report = sink_.Await(Task(), [](const auto& r) { return r.phase() == v1::RUNNING; });
  EXPECT_EQ(report.committed_op(), 2);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(DumpTest, GrownOutputIsCutBackAndNoted) {
  LaunchCounter(Counter());
  DumpAndCommit(2, "1.1", /*keep_running=*/true);
  OpenGate();
  AwaitPhase(v1::EXITED);
  CloseGate();
  Restore(Counter(), "1.1");
  const auto report = AwaitPhase(v1::RUNNING, 2);
  ASSERT_EQ(report.notes_size(), 1);
  EXPECT_THAT(report.notes(0), HasSubstr(output() + " cut back from "));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(DumpTest, ChangedInputFailsTheRestoreAndIsNamed) {
  const std::string input = folder_ + "/input";
  ASSERT_TRUE(WriteFileAtomically(input, "data").ok());
  const v1::JobSpec spec = Counter({"-r", input});
  LaunchCounter(spec);
  DumpAndCommit(2, "1.1");
  {
    UniqueFd fd(open(input.c_str(), O_WRONLY | O_APPEND));
    ASSERT_EQ(write(fd.get(), "!", 1), 1);
  }
  Restore(spec, "1.1");
  const auto report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(report.error(), HasSubstr(input + " has changed size (4 -> 5 bytes)"));
  EXPECT_FALSE(report.image_damaged());
}

TEST_F(DumpTest, CorruptImageIsDamagedAndTheFileNamed) {
  LaunchCounter(Counter());
  DumpAndCommit(2, "1.1");
  std::string pages;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/shared/images")) {
    if (entry.path().filename().string().rfind("pages-", 0) == 0) pages = entry.path();
  }
  ASSERT_FALSE(pages.empty());
  {
    UniqueFd fd(open(pages.c_str(), O_WRONLY));
    ASSERT_EQ(pwrite(fd.get(), "\x55\xaa", 2, 8000), 2);
  }
  Restore(Counter(), "1.1");
  const auto report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_TRUE(report.image_damaged());
  EXPECT_THAT(report.error(), HasSubstr("pages-"));
}

TEST_F(DumpTest, MissingImageIsNotDamagedAndCountsAgainstIt) {
  Restore(Counter(), "1.9");
  const auto report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_FALSE(report.image_damaged());
  EXPECT_FALSE(report.node_problem());
}

TEST_F(DumpTest, OfATierThatIsAwayNothingIsSaid) {
  std::filesystem::rename(folder_ + "/shared", folder_ + "/away");
  Restore(Counter(), "1.9");
  const auto report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_FALSE(report.image_damaged());
  EXPECT_TRUE(report.node_problem());
  EXPECT_THAT(report.error(), HasSubstr(folder_ + "/shared"));
}

TEST_F(DumpTest, ItIsToBlameForADumpThatFails) {
  LaunchCounter(Counter());
  std::filesystem::rename(folder_ + "/shared", folder_ + "/away");
  Dump(2, "1.1");
  EXPECT_TRUE(AwaitFailure(2).tier_problem());
  AwaitMoreLines();
}

TEST_F(DumpTest, AnEmptyFolderInPlaceOfTheTierIsNotUsed) {
  host_.reset();
  std::filesystem::remove_all(folder_ + "/shared");
  std::filesystem::create_directory(folder_ + "/shared");
  StartHost();
  Restore(Counter(), "1.9");
  EXPECT_TRUE(AwaitPhase(v1::RESTORE_FAILED, 2).node_problem());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/shared"));
}

TEST_F(DumpTest, IoUringIsSeenBeforehandAndRefused) {
  Launch(Counter({"-u"}));
  AwaitPhase(v1::RUNNING);
  const auto decided = [&] { return Lines() >= 1 || host().Reports().at(0).phase() == v1::EXITED; };
  ASSERT_TRUE(PollUntil(decided, kPatience));
  if (host().Reports().at(0).phase() == v1::EXITED) GTEST_SKIP() << "the kernel forbids io_uring";
  AwaitLines(1);
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("io_uring"));
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("io_uring"));
  AwaitMoreLines();
}

TEST_F(DumpTest, JobThatMayBeCheckpointedIsKeptFromIoUring) {
  v1::JobSpec spec = Counter({"-u"});
  spec.add_methods(v1::CHECKPOINT);
  Launch(spec);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 77);
}

TEST_F(DumpTest, JobThatIsAllowedIoUringHasIt) {
  v1::JobSpec spec = Counter({"-u"});
  spec.add_methods(v1::CHECKPOINT);
  spec.set_allow_io_uring(true);
  Launch(spec);
  AwaitPhase(v1::RUNNING);
  const auto decided = [&] { return Lines() >= 1 || host().Reports().at(0).phase() == v1::EXITED; };
  ASSERT_TRUE(PollUntil(decided, kPatience));
  if (host().Reports().at(0).phase() == v1::EXITED) GTEST_SKIP() << "the kernel forbids io_uring";
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("io_uring"));
}

TEST_F(DumpTest, RestoredJobIsKeptFromIoUringAsBefore) {
  v1::JobSpec spec = Somebodys();
  spec.add_methods(v1::CHECKPOINT);
  LaunchCounter(spec);
  Vacate("1.1");
  Restore(spec, "1.1");
  AwaitPhase(v1::RUNNING, 2);
  const auto record =
      ReadJsonFile<agent::TaskRecord>(tasks_folder() + "/" + std::to_string(job_) + ".2.0/task.json");
  EXPECT_EQ(ReadStatusNumber(MainProcess(record->init().pid(), first_process()), "Seccomp_filters"), 1);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(DumpTest, KillWhilePreparedEndsTheJob) {
  LaunchCounter(Counter());
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  v1::ToAgent kill = Command(3);
  kill.mutable_kill();
  Order(kill);
  AwaitPhase(v1::EXITED);
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(DumpTest, AnotherUsersJobIsDumpedAndRestored) {
  v1::JobSpec spec = Counter();
  spec.set_uid(65534);
  spec.set_gid(65534);
  LaunchCounter(spec);
  DumpAndCommit(2, "1.1");
  Restore(spec, "1.1");
  AwaitPhase(v1::RUNNING, 2);
  const auto running =
      ReadJsonFile<agent::ShimRunning>(absl::StrCat(tasks_folder(), "/", job_, ".2.0/running.json"));
  ASSERT_TRUE(running.ok());
  const auto status = ReadFile(absl::StrCat("/proc/", running->init().pid(), "/status"));
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("Uid:\t65534\t65534\t65534\t65534"));
  EXPECT_THAT(*status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(*status, HasSubstr("CapAmb:\t0000000000000000"));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(DumpTest, ImagesCanBeVerifiedAndDeleted) {
  LaunchCounter(Counter());
  DumpAndCommit(2, "1.1");
  v1::ToAgent verify;
  verify.set_op(50);
  verify.mutable_verify()->set_checkpoint("1.1");
  verify.mutable_verify()->set_tier(v1::SHARED);
  Order(verify);
  const auto verified = sink_.AwaitResult(50);
  EXPECT_EQ(verified.code(), 0) << verified.message();
  EXPECT_GT(verified.files_size(), 3);
  v1::ToAgent remove;
  remove.set_op(51);
  remove.mutable_delete_()->set_checkpoint("1.1");
  remove.mutable_delete_()->set_tier(v1::SHARED);
  Order(remove);
  EXPECT_EQ(sink_.AwaitResult(51).code(), 0);
  verify.set_op(52);
  Order(verify);
  EXPECT_EQ(sink_.AwaitResult(52).code(), static_cast<int>(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace siding
