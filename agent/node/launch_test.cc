#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "agent/shim/shim.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "store/disk.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// What ends within it does so by itself.
constexpr int64_t kLongGraceUs = std::chrono::microseconds(kPatience).count();

class LaunchTest : public HostTest {
 protected:
  void SetUp() override {
    NeedRoot();
    if (!IsSkipped()) StartHost();
  }
  std::string forgotten() const { return folder_ + "/n1/forgotten"; }
  // Temporary folders of jobs that are being removed.
  static std::set<std::string> Removed() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
      if (entry.path().filename().string().starts_with("siding-removed-")) names.insert(entry.path());
    }
    return names;
  }
  // As soon as it may be.
  void Forget(v1::ToAgent command) {
    command.mutable_forget();
    const size_t before = host().Reports().size();
    const auto forgotten = [&] {
      Order(command);
      return host().Reports().size() < before;
    };
    EXPECT_TRUE(PollUntil(forgotten, kPatience));
  }
  v1::JobSpec Shell(const std::string& script) const {
    v1::JobSpec spec = Job({});
    spec.clear_command();
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script})
      spec.add_command(word);
    return spec;
  }
};

TEST_F(LaunchTest, ExitCodeIsReported) {
  Launch(Job({"-x", "7", "3"}));
  const auto report = AwaitPhase(v1::EXITED);
  EXPECT_EQ(report.exit_code(), 7);
  EXPECT_EQ(report.exit_signal(), 0);
  EXPECT_GT(report.started_us(), 0);
  EXPECT_EQ(ReadFile(output()).value_or(""), Steps(1, 3));
}

TEST_F(LaunchTest, TaskThatCannotBeRememberedIsNotStarted) {
  host_.reset();  // faults are armed before there are threads
  ASSERT_TRUE(ArmFaults("agent.record=error", "", {}).ok());
  StartHost();
  Launch(Counter());
  EXPECT_TRUE(AwaitPhase(v1::LAUNCH_FAILED).node_problem());
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(LaunchTest, ANodeSaysWhyNothingCanStart) {
  EXPECT_EQ(host().Measure().problem(), "");
  host_.reset();
  TaskHostOptions options = Options();
  options.shim_path = folder_ + "/no-shim";
  host_ = NewTaskHost(options, sink_, SystemClock()).value();
  EXPECT_THAT(host().Measure().problem(), HasSubstr(options.shim_path));
  EXPECT_THAT(host().Describe().problem(), HasSubstr(options.shim_path));
}

TEST_F(LaunchTest, SignalThatEndedItIsReported) {
  Launch(Shell("kill -SEGV $$"));
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_signal(), SIGSEGV);
}

TEST_F(LaunchTest, AnEndOfItsOwnIsToldFromOneByAKill) {
  Launch(Shell("true"));
  EXPECT_TRUE(AwaitPhase(v1::EXITED).own_end());
}

TEST_F(LaunchTest, AnEndByAKillIsNotItsOwn) {
  Launch(Shell("sleep 1000"));
  AwaitPhase(v1::RUNNING);
  v1::ToAgent kill = Command(2);
  kill.mutable_kill();
  Order(kill);
  EXPECT_FALSE(AwaitPhase(v1::EXITED).own_end());
}

TEST_F(LaunchTest, AnEndByAKillDuringTheStartIsNotItsOwn) {
  Launch(Shell("sleep 1000"));
  v1::ToAgent kill = Command(2);
  kill.mutable_kill();
  Order(kill);
  const auto over = [](const auto& r) { return r.phase() == v1::EXITED || r.phase() == v1::LAUNCH_FAILED; };
  EXPECT_FALSE(sink_.Await(Task(), over).own_end());
}

TEST_F(LaunchTest, AStoreThatIsNotThereAtTheStartIsOpenedLater) {
  host_.reset();
  std::filesystem::rename(folder_ + "/shared", folder_ + "/away");
  StartHost();
  EXPECT_EQ(host_->Measure().shared_disk_free(), 0);
  std::filesystem::rename(folder_ + "/away", folder_ + "/shared");
  EXPECT_TRUE(PollUntil([&] { return host_->Measure().shared_disk_free() > 0; }, kPatience));
}

// The local tier is where the test says.
class LocalTierTest : public LaunchTest {
 protected:
  LocalTierTest() {
    for (std::string* folder : {&in_memory_, &on_disk_}) EXPECT_NE(mkdtemp(folder->data()), nullptr);
  }
  ~LocalTierTest() override {
    host_.reset();
    for (const std::string& folder : {in_memory_, on_disk_}) std::filesystem::remove_all(folder);
  }
  TaskHostOptions Options(const std::string& node) const override {
    TaskHostOptions options = LaunchTest::Options(node);
    options.local_dir = local_;
    return options;
  }
  void StartAt(const std::string& folder) {
    host_.reset();
    std::filesystem::remove(folder_ + "/n1/local-tier");  // of the one that it had before
    local_ = folder;
    StartHost();
  }
  std::string local_, in_memory_ = "/dev/shm/siding-local-XXXXXX", on_disk_ = "/var/tmp/siding-local-XXXXXX";
};

TEST_F(LocalTierTest, OneInMemoryNamesItsImagesOnceAConnection) {
  StartAt(in_memory_);
  host_->Describe();
  EXPECT_TRUE(host_->Measure().local_in_memory());
  EXPECT_FALSE(host_->Measure().has_kept()) << "not with each heartbeat";
  host_->Describe();
  EXPECT_TRUE(host_->Measure().has_kept());
}

TEST_F(LocalTierTest, OneInMemoryTakesItsRoomFromJobs) {
  StartAt(in_memory_);
  ASSERT_TRUE(PollUntil([&] { return host_->Measure().local_disk_free() > 0; }, kPatience));
  const v1::Heartbeat heartbeat = host_->Measure();
  if (heartbeat.local_disk_free() < 2LL << 30) GTEST_SKIP() << "too little to be seen beside other programs";
  EXPECT_LT(heartbeat.ram_available(), AvailableMemory().value + (1 << 20) - heartbeat.local_disk_free() / 2);
}

TEST_F(LocalTierTest, OneOnADiskNamesNone) {
  if (store::IsInMemory(on_disk_)) GTEST_SKIP() << on_disk_ << " is in memory";
  StartAt(on_disk_);
  host_->Describe();
  const v1::Heartbeat heartbeat = host_->Measure();
  EXPECT_FALSE(heartbeat.local_in_memory());
  EXPECT_FALSE(heartbeat.has_kept());
}

TEST_F(LocalTierTest, AFolderThatOthersMayWriteToIsNotUsed) {
  std::filesystem::permissions(in_memory_, std::filesystem::perms::all);
  StartAt(in_memory_);
  EXPECT_THAT(std::string(host_->Images(v1::LOCAL).status().message()), HasSubstr("mode=0700"));
  EXPECT_TRUE(std::filesystem::is_empty(in_memory_));
}

TEST_F(LaunchTest, WhatTheNodeCannotDoIsNotTheJobsFault) {
  host_.reset();  // faults are armed before there are threads
  ASSERT_TRUE(ArmFaults("agent.start.cgroup=error", "", {}).ok());
  StartHost();
  Launch(Shell("true"));
  EXPECT_TRUE(AwaitPhase(v1::LAUNCH_FAILED).node_problem());
}

TEST_F(LaunchTest, AMissingProgramIsNotTheNodesFault) {
  v1::JobSpec spec = Job({});
  spec.set_command(0, "/x/y");
  Launch(spec);
  EXPECT_FALSE(AwaitPhase(v1::LAUNCH_FAILED).node_problem());
}

TEST_F(LaunchTest, MissingProgramIsNamed) {
  v1::JobSpec spec = Job({});
  spec.set_command(0, "/x/y");
  Launch(spec);
  EXPECT_EQ(AwaitPhase(v1::LAUNCH_FAILED).error(), "cannot run /x/y: No such file or directory");
}

TEST_F(LaunchTest, MissingWorkingFolderIsNamed) {
  v1::JobSpec spec = Job({"1"});
  spec.set_workdir("/x/y");
  Launch(spec);
  EXPECT_THAT(AwaitPhase(v1::LAUNCH_FAILED).error(), HasSubstr("working folder /x/y: No such file"));
}

TEST_F(LaunchTest, RunsAsItsUser) {
  v1::JobSpec spec = Shell("id -u; id -g; id -G");
  spec.set_uid(65534);
  spec.set_gid(65534);
  Launch(spec);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  EXPECT_EQ(*ReadFile(output()), "65534\n65534\n65534\n");
  struct stat info {};
  ASSERT_EQ(stat(output().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
}

TEST_F(LaunchTest, OutputThatTheUserMayNotWriteFails) {
  v1::JobSpec spec = Job({"1"});
  spec.set_uid(65534);
  spec.set_gid(65534);
  spec.set_output("/etc/siding-test-output");
  Launch(spec);
  EXPECT_THAT(AwaitPhase(v1::LAUNCH_FAILED).error(), HasSubstr("/etc/siding-test-output: Permission denied"));
}

TEST_F(LaunchTest, EnvironmentIsTheJobsOwn) {
  v1::JobSpec spec = Shell(
      "echo $SIDING_RANK/$SIDING_NODES/$SIDING_SLOTS/$WORD/$SIDING_CRIU; test -d $TMPDIR -a -w $TMPDIR");
  (*spec.mutable_env())["WORD"] = "hello";
  spec.mutable_per_node()->set_slots(3);
  Launch(spec);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  EXPECT_EQ(*ReadFile(output()), "0/1/3/hello/\n");
}

TEST_F(LaunchTest, OrphansEndWithTheJob) {
  Launch(Shell("sleep 1000 & echo $!; exit 3"));
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 3);
}

TEST_F(LaunchTest, KillWithGraceLetsItCleanUp) {
  Launch(Shell("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"));
  AwaitPhase(v1::RUNNING);  // before that a kill ends it without grace
  AwaitLines(1);
  v1::ToAgent kill = Command(2);
  kill.mutable_kill()->set_grace_us(kLongGraceUs);
  Order(kill);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 5);
  EXPECT_THAT(*ReadFile(output()), HasSubstr("bye\n"));
}

TEST_F(LaunchTest, KillWithoutGraceEndsTheStubborn) {
  Launch(Shell("trap '' TERM; echo up; while :; do sleep 0.01; done"));
  AwaitLines(1);
  v1::ToAgent kill = Command(2);
  kill.mutable_kill();
  Order(kill);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_signal(), SIGKILL);
}

TEST_F(LaunchTest, SuspendStopsProgressAndResumeGoesOn) {
  LaunchCounter(Counter());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  const auto reports = host().Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_GT(reports[0].memory(), 4 << 20);
  const int lines = Lines();
  // A frozen job does nothing, however often one looks; a running one writes every few milliseconds.
  EXPECT_FALSE(PollUntil([&] { return Lines() != lines; }, std::chrono::milliseconds(200)));
  Resume(3);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

TEST_F(LaunchTest, SuspendedJobCanBeKilled) {
  LaunchCounter(Counter());
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  v1::ToAgent kill = Command(3);
  kill.mutable_kill()->set_grace_us(kLongGraceUs);
  Order(kill);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_signal(), SIGTERM);
}

TEST_F(LaunchTest, LaunchTwiceStartsOnce) {
  LaunchCounter(Counter());
  Launch(Counter());
  AwaitMoreLines();
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
  ExpectCompleteOutput();
}

TEST_F(LaunchTest, ForgetLeavesNothing) {
  Launch(Job({"1"}));
  AwaitPhase(v1::EXITED);
  v1::ToAgent forget = Command(2);
  forget.mutable_forget();
  // Refused while the end is still being dealt with.
  EXPECT_TRUE(PollUntil(
      [&] {
        Order(forget);
        return host().Reports().empty();
      },
      kPatience));
  EXPECT_FALSE(std::filesystem::exists((ProgramNames{cluster(), job_, 0}).Tmpdir(getuid())));
  EXPECT_TRUE(std::filesystem::is_empty(tasks_folder()));
  EXPECT_TRUE(PollUntil([&] { return std::filesystem::is_empty(forgotten()); }, kPatience));
}

// Cluster managers use numbers again. How long the removal of the job's temporary folder takes is up to the
// job.
TEST_F(LaunchTest, ATaskOfAForgottenOnesNameIsNotRemovedWithIt) {
  const std::string go_on = folder_ + "/go-on";
  ASSERT_TRUE(ArmFaults("agent.forgotten=hold=" + go_on, "", {}).ok());
  const std::set<std::string> before = Removed();
  Launch(Job({"1"}));
  AwaitPhase(v1::EXITED);
  Forget(Command(2));
  LaunchCounter(Counter());
  const std::set<std::string> removed = Removed();
  ASSERT_EQ(removed.size(), before.size() + 1);
  ASSERT_TRUE(WriteFileAtomically(go_on, "").ok());
  EXPECT_TRUE(PollUntil([&] { return Removed() != removed; }, kPatience));
  EXPECT_TRUE(PollUntil([&] { return std::filesystem::is_empty(forgotten()); }, kPatience));
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  host_.reset();
  StartHost();
  ASSERT_EQ(host().Reports().size(), 1u);
  EXPECT_EQ(host().Reports()[0].phase(), v1::RUNNING);
  EXPECT_TRUE(std::filesystem::exists((ProgramNames{cluster(), job_, 0}).Tmpdir(getuid())));
}

TEST_F(LaunchTest, TheNextAgentRemovesWhatAForgottenTaskHasLeft) {
  host_.reset();
  const std::string folder = forgotten() + "/a", left = absl::StrCat("/tmp/siding-removed-", job_);
  ASSERT_TRUE(MakeDirectories(folder).ok());
  ASSERT_TRUE(MakeDirectories(left).ok());
  ASSERT_EQ(chown(left.c_str(), kUser, kUser), 0);
  agent::TaskRecord record;
  *record.mutable_spec() = Somebodys();
  ASSERT_TRUE(WriteJsonFile(folder + "/task.json", record).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/removed", left).ok());
  StartHost();
  EXPECT_TRUE(PollUntil([&] { return std::filesystem::is_empty(forgotten()); }, kPatience));
  EXPECT_FALSE(std::filesystem::exists(left));
}

// A controller that was set up anew counts jobs from 1.
TEST_F(LaunchTest, AnOrderIsForTheTaskOfItsCluster) {
  Welcome(0xabc);
  LaunchCounter(Counter());
  Welcome(0xdef);
  v1::JobSpec other = Counter();
  other.set_output(folder_ + "/other");
  Launch(other);
  v1::TaskRef theirs = Task(), own = Task();
  theirs.set_cluster(0xabc);
  own.set_cluster(0xdef);
  const auto is = [](v1::TaskPhase phase) {
    return [phase](const v1::TaskReport& report) { return report.phase() == phase; };
  };
  sink_.Await(own, is(v1::RUNNING));
  v1::ToAgent kill = Command(2);
  kill.mutable_kill();
  Order(kill);
  sink_.Await(own, is(v1::EXITED));
  AwaitMoreLines();
  host_.reset();
  StartHost();  // it finds both again
  EXPECT_EQ(host().Reports().size(), 2u);
  AwaitMoreLines();
  *kill.mutable_task() = theirs;
  Order(kill);
  sink_.Await(theirs, is(v1::EXITED));
}

// Before there were clusters.
TEST_F(LaunchTest, AnOrderIsForATaskOfWhichTheClusterIsNotKnown) {
  LaunchCounter(Counter());
  Welcome(0xabc);
  Launch(Counter(), 1);
  EXPECT_EQ(host().Reports().size(), 1u);
  v1::ToAgent kill = Command(2);
  kill.mutable_kill();
  Order(kill);
  AwaitPhase(v1::EXITED);
}

TEST_F(LaunchTest, ALaterTaskOfTheJobKeepsWhatHasItsName) {
  Launch(Job({"1"}));
  AwaitPhase(v1::EXITED);
  v1::ToAgent again = Command(100, 2);
  *again.mutable_launch()->mutable_spec() = Job({"100000"});
  Order(again);
  AwaitPhase(v1::RUNNING, 2);
  v1::ToAgent forget = Command(2);
  forget.mutable_forget();
  EXPECT_TRUE(PollUntil(
      [&] {
        Order(forget);
        return host().Reports().size() == 1;
      },
      kPatience));
  EXPECT_TRUE(PollUntil(
      [&] { return !std::filesystem::exists(tasks_folder() + "/" + std::to_string(job_) + ".1.0"); },
      kPatience));
  EXPECT_TRUE(std::filesystem::exists((ProgramNames{cluster(), job_, 0}).Tmpdir(getuid())));
}

v1::ToAgent SaveByExit(v1::ToAgent save, int64_t grace_us) {
  save.mutable_save()->mutable_app()->set_signal(SIGUSR1);
  save.mutable_save()->mutable_app()->set_grace_us(grace_us);
  return save;
}

TEST_F(LaunchTest, SaveByExitIsSaved) {
  LaunchCounter(Counter({"-s", "-"}));
  Order(SaveByExit(Command(2), kLongGraceUs));
  AwaitPhase(v1::SAVED);
}

TEST_F(LaunchTest, AProgramThatDoesNotHandleTheSignalIsNotSentIt) {
  LaunchCounter(Counter());
  Order(SaveByExit(Command(2), 100'000));
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("does not handle signal"));
  AwaitMoreLines();
}

TEST_F(LaunchTest, AnEndBeforeTheProgramCouldBeToldToSaveIsItsOwn) {
  LaunchCounter(Counter());
  Order(SaveByExit(Command(2), kLongGraceUs));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
}

TEST_F(LaunchTest, SaveByMarkerEndsTheProgram) {
  LaunchCounter(Counter({"-s", folder_ + "/marker"}));
  v1::ToAgent save = Command(2);
  save.mutable_save()->mutable_app()->set_signal(SIGUSR1);
  save.mutable_save()->mutable_app()->set_marker("marker");
  save.mutable_save()->mutable_app()->set_grace_us(kLongGraceUs);
  Order(save);
  AwaitPhase(v1::SAVED);
}

TEST_F(LaunchTest, SaveOnScheduleLeavesTheProgramRunning) {
  LaunchCounter(Counter({"-s", folder_ + "/marker"}));
  v1::ToAgent save = Command(2);
  save.mutable_save()->mutable_app()->set_signal(SIGUSR1);
  save.mutable_save()->mutable_app()->set_marker("marker");
  save.mutable_save()->mutable_app()->set_grace_us(kLongGraceUs);
  save.mutable_save()->set_keep_running(true);
  Order(save);
  sink_.Await(Task(), [](const auto& r) { return r.committed_op() == 2 && r.phase() == v1::RUNNING; });
  AwaitMoreLines();
}

TEST_F(LaunchTest, SaveThatIsIgnoredFailsAndTheJobGoesOn) {
  LaunchCounter(Counter({"-s", folder_ + "/elsewhere"}));
  v1::ToAgent save = Command(2);
  save.mutable_save()->mutable_app()->set_signal(SIGUSR1);
  save.mutable_save()->mutable_app()->set_marker("marker");
  save.mutable_save()->mutable_app()->set_grace_us(100'000);
  Order(save);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("did not save itself in time"));
  AwaitMoreLines();
}

TEST_F(LaunchTest, UnknownTaskIsLost) {
  Suspend(2);
  AwaitPhase(v1::LOST);
}

}  // namespace
}  // namespace siding
