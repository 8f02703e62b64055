// The two phases against a CRIU and a store that do as they are told; the process dumped is this one.
#include "agent/checkpoint/dump.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Writes one file and asks; `before` and `after` are what it fails with at these moments.
class FaultyCriu final : public Criu {
 public:
  absl::StatusOr<CriuTraits> Check() override { return CriuTraits{"1.0", true}; }
  absl::Status Dump(const CriuDump& dump,
                    const std::function<absl::Status(const StillHeld&)>& post_dump) override {
    ++tries;
    if (!before.ok() && tries <= fails) return before;
    if (dump.on_ready) SIDING_RETURN_IF_ERROR(dump.on_ready([] { return absl::OkStatus(); }));
    if (!when_ready.ok() && tries <= fails) return when_ready;
    when_stopped();
    SIDING_RETURN_IF_ERROR(dump.on_stopped([] { return absl::OkStatus(); }));
    SIDING_RETURN_IF_ERROR(WriteFileAtomically(dump.image_folder + "/pages-1.img", "pages"));
    while_frozen();
    const absl::Status asked = post_dump([this] { return held; });
    if (!held.ok() || !after.ok()) dump.on_end();
    SIDING_RETURN_IF_ERROR(asked);
    at_the_end();
    return after;
  }
  absl::StatusOr<pid_t> Restore(const CriuRestore&) override { return absl::UnimplementedError("not here"); }

  absl::Status held;
  absl::Status before;
  int tries = 0, fails = 1 << 10;  // how often it was tried, and fails with `before`
  absl::Status when_ready;
  absl::Status after;
  std::function<void()> while_frozen = [] {};
  std::function<void()> when_stopped = [] {};
  std::function<void()> at_the_end = [] {};
};

// A process that does nothing; with a number of that choice, if it is not 0. -1: it cannot be made.
pid_t Idle(pid_t number = 0) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  if (number != 0) {
    arguments.set_tid = reinterpret_cast<uint64_t>(&number);
    arguments.set_tid_size = 1;
  }
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid == 0) {
    for (;;) pause();
  }
  return pid;
}

void End(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

class Observer final : public DumpObserver {
 public:
  void OnProgress(Bytes) override {}
  absl::Status WhyStopped() const override { return stopped; }
  absl::Status OnBarrier(DumpBarrier barrier) override {
    steps.push_back(barrier == DumpBarrier::kStop    ? "stop"
                    : barrier == DumpBarrier::kHold  ? "hold"
                    : barrier == DumpBarrier::kLeave ? "leave"
                                                     : "run on");
    return absl::OkStatus();
  }
  std::chrono::steady_clock::time_point Limit() const override { return limit; }
  absl::StatusOr<bool> MayPass(DumpBarrier barrier, Duration most, const StillHeld&) override {
    if (barrier == DumpBarrier::kStop) return most > Duration(0) && waits-- <= 0;
    SIDING_RETURN_IF_ERROR(others);
    still_at_most = most;
    return others_come;
  }
  void OnRunsOn(Duration) override { steps.push_back("runs on"); }
  absl::Status OnPrepared(const Manifest& manifest, const StillHeld&) override {
    steps.push_back("prepared");
    metadata = manifest.metadata;
    return decision;
  }
  absl::Status OnCommitting() override {
    steps.push_back("committing");
    return steps.size() - 1 <= record_fails ? record : absl::OkStatus();
  }
  void OnCommitted() override { steps.push_back("committed"); }

  int waits = 0;        // how often it is asked at the first barrier before all have come to it
  absl::Status others;  // do not come to the last one
  bool others_come = true;
  Duration still_at_most{0};
  std::chrono::steady_clock::time_point limit = std::chrono::steady_clock::time_point::max();
  absl::Status decision;
  absl::Status stopped;
  absl::Status record;
  size_t record_fails = SIZE_MAX;  // so often, in a dump that is tried once
  std::vector<std::string> steps;
  std::map<std::string, std::string> metadata;
};

class RunDumpTest : public ::testing::Test {
 protected:
  RunDumpTest() {
    char name[] = "/tmp/siding-dump-XXXXXX";
    folder_ = mkdtemp(name);
    store_ = *OpenDirectoryStore(folder_ + "/store");
    plan_.key = {CheckpointId("1.1"), 0};
    plan_.init = getpid();
    plan_.work_folder = folder_;
    plan_.keep_running = true;
  }
  ~RunDumpTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::Status Run() { return RunDump(criu_, *store_, plan_, observer_, abandon_); }
  std::vector<ImageKey> Images() const { return *store_->List(); }
  bool DraftsLeft() const {
    const std::string staging = folder_ + "/store/staging";
    return std::filesystem::exists(staging) && !std::filesystem::is_empty(staging);
  }

  std::string folder_;
  std::unique_ptr<ImageStore> store_;
  FaultyCriu criu_;
  Observer observer_;
  DumpPlan plan_;
  std::atomic<bool> abandon_{false};
};

TEST_F(RunDumpTest, CommitMakesTheImageVisibleWithItsRecordOfFiles) {
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(observer_.steps, ElementsAre("prepared", "committing", "committed"));
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
  EXPECT_EQ(observer_.metadata.count(kMetadataFiles), 1u);
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, AnImageOfATaskThatRunsAgainDoesNotCount) {
  criu_.held = absl::UnavailableError("criu is dead");
  EXPECT_TRUE(absl::IsUnavailable(Run()));
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

// A socket to which datagrams can be sent, and from which they can be read.
class Datagrams {
 public:
  Datagrams() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(bind(socket_.get(), name(), size), 0);
    EXPECT_EQ(getsockname(socket_.get(), name(), &size), 0);
  }
  void Send() { EXPECT_EQ(sendto(socket_.get(), "x", 1, 0, name(), sizeof address_), 1); }
  void Read() {
    char byte;
    EXPECT_EQ(recv(socket_.get(), &byte, 1, 0), 1);
  }

 private:
  sockaddr* name() { return reinterpret_cast<sockaddr*>(&address_); }
  const UniqueFd socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_ = {};
};

TEST_F(RunDumpTest, ADatagramThatNobodyReadsIsNotLost) {
  Datagrams datagrams;
  datagrams.Send();
  EXPECT_THAT(std::string(Run().message()), HasSubstr("has not read the datagrams"));
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, OneThatIsReadAtTheNextTryDoesNotMatter) {
  Datagrams datagrams;
  criu_.when_stopped = [&] { criu_.tries == 1 ? datagrams.Send() : datagrams.Read(); };
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(criu_.tries, 2);
}

// It comes from outside, as what comes when the job is away.
TEST_F(RunDumpTest, NorOneThatComesToAJobThatIsFrozen) {
  Datagrams datagrams;
  criu_.while_frozen = [&] { datagrams.Send(); };
  EXPECT_TRUE(Run().ok());
}

TEST_F(RunDumpTest, RefusalLeavesNothing) {
  observer_.decision = absl::AbortedError("called off");
  EXPECT_EQ(Run().message(), "called off");
  EXPECT_THAT(observer_.steps, ElementsAre("prepared"));
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, CommitThatCannotBeRecordedIsNone) {
  observer_.record = absl::ResourceExhaustedError("disk full");
  EXPECT_FALSE(Run().ok());
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, ATaskThatIsToRunOnIsNotHeldForTheRecord) {
  observer_.record = absl::ResourceExhaustedError("disk full");
  EXPECT_FALSE(Run().ok());
  EXPECT_THAT(observer_.steps, ElementsAre("prepared", "committing"));
}

// What a CRIU holds a task by that is about to die.
class Hold {
 public:
  explicit Hold(const std::string& folder) : folder_(folder + "/cgroup") {
    EXPECT_TRUE(std::filesystem::create_directory(folder_));
    EXPECT_TRUE(WriteFileAtomically(file(), "1").ok());
  }
  const std::string& folder() const { return folder_; }
  bool ended() const { return ReadFile(file()).value() == "0"; }

 private:
  std::string file() const { return folder_ + "/cgroup.freeze"; }
  const std::string folder_;
};

TEST_F(RunDumpTest, ATaskWhoseCriuHasDiedIsLetGo) {
  const Hold hold(folder_);
  plan_.hold = hold.folder();
  criu_.held = absl::UnavailableError("criu is dead");
  observer_.decision = criu_.held;
  EXPECT_FALSE(Run().ok());
  EXPECT_TRUE(hold.ended());
}

class LeavingTest : public RunDumpTest {
 protected:
  LeavingTest() {
    plan_.init = Idle();
    plan_.keep_running = false;
    plan_.commit_patience = std::chrono::minutes(5);
  }
  ~LeavingTest() override { End(plan_.init); }
};

TEST_F(LeavingTest, WithOthersItMeetsThemWhenItsImageCounts) {
  plan_.leaves_together = true;
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(observer_.steps, ElementsAre("prepared", "committing", "committed", "leave"));
}

TEST_F(LeavingTest, AndRunsOnIfTheirsDoNot) {
  const Hold hold(folder_);
  plan_.hold = hold.folder();
  plan_.leaves_together = true;
  observer_.others = absl::AbortedError("called off");
  EXPECT_EQ(Run().message(), "called off");
  EXPECT_TRUE(hold.ended());
  EXPECT_EQ(kill(plan_.init, 0), 0);
}

TEST_F(LeavingTest, TheyHaveTenMinutes) {
  plan_.leaves_together = true;
  observer_.others_come = false;
  EXPECT_EQ(std::string(Run().message()), "its other ranks could not be saved within 10m00s");
  EXPECT_EQ(observer_.still_at_most, std::chrono::minutes(10));
  EXPECT_EQ(kill(plan_.init, 0), 0);
}

TEST_F(LeavingTest, WhoMayLeaveDoesNotRunOnWhenCriuDies) {
  const Hold hold(folder_);
  plan_.hold = hold.folder();
  plan_.leaves_together = true;
  criu_.after = absl::UnavailableError("criu ended");
  EXPECT_TRUE(Run().ok());
  EXPECT_FALSE(hold.ended());
}

TEST_F(LeavingTest, IsHeldUntilTheCommitCanBeRecorded) {
  observer_.record = absl::ResourceExhaustedError("disk full");
  observer_.record_fails = 2;
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(observer_.steps,
              ElementsAre("prepared", "committing", "committing", "committing", "committed"));
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
}

TEST_F(LeavingTest, AndUntilTheImageCanBePutInItsPlace) {
  ASSERT_TRUE(ArmFaults("store.commit=error", "", {}).ok());
  EXPECT_TRUE(Run().ok());
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_THAT(observer_.steps, ElementsAre("prepared", "committing", "committing", "committed"));
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
}

TEST_F(LeavingTest, ButNotForEver) {
  plan_.commit_patience = std::chrono::milliseconds(1);
  observer_.record = absl::ResourceExhaustedError("disk full");
  EXPECT_EQ(Run().message(), "disk full");
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(LeavingTest, DoesNotRunOnWhenCriuDiesAfterTheCommit) {
  const Hold hold(folder_);
  plan_.hold = hold.folder();
  criu_.after = absl::UnavailableError("criu ended");
  EXPECT_TRUE(Run().ok());
  EXPECT_FALSE(hold.ended());
}

TEST_F(LeavingTest, RunsOnWhenCriuDiesBefore) {
  const Hold hold(folder_);
  plan_.hold = hold.folder();
  criu_.held = absl::UnavailableError("criu is dead");
  EXPECT_FALSE(Run().ok());
  EXPECT_TRUE(hold.ended());
}

TEST_F(LeavingTest, IsNotHeldWhenTheCheckpointIsCalledOff) {
  observer_.record = absl::AbortedError("killed meanwhile");
  EXPECT_EQ(Run().message(), "killed meanwhile");
  EXPECT_THAT(observer_.steps, ElementsAre("prepared", "committing"));
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(LeavingTest, NorWhenItRunsAgain) {
  observer_.record = absl::ResourceExhaustedError("disk full");
  criu_.held = absl::UnavailableError("criu is dead");
  EXPECT_TRUE(absl::IsUnavailable(Run()));
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(RunDumpTest, FailureOfCriuIsPassedOnAndLeavesNothing) {
  criu_.before = absl::InternalError("criu: no");
  EXPECT_EQ(Run().message(), "criu: no");
  EXPECT_THAT(observer_.steps, IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, AFullDiskIsTheTiersProblem) {
  criu_.before = absl::ResourceExhaustedError("criu: No space left on device");
  EXPECT_TRUE(IsTierProblem(Run()));
}

TEST_F(RunDumpTest, AnotherFailureOfCriuIsNot) {
  criu_.before = absl::InternalError("criu: no");
  EXPECT_FALSE(IsTierProblem(Run()));
}

// It is to keep running, and does so while its image is finished.
class BehindTest : public RunDumpTest {
 protected:
  BehindTest() {
    plan_.finish_behind = true;
    criu_.at_the_end = [this] { observer_.steps.push_back("let go"); };
  }
};

TEST_F(BehindTest, RunsBeforeItsImageIsWhole) {
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(observer_.steps, ElementsAre("let go", "runs on", "prepared", "committing", "committed"));
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
  EXPECT_EQ(observer_.metadata.count(kMetadataFiles), 1u);
}

TEST_F(BehindTest, ItsImageIsThatOfTheFreeze) {
  criu_.at_the_end = [this] { criu_.held = absl::UnavailableError("it runs"); };
  EXPECT_TRUE(Run().ok());
}

TEST_F(BehindTest, RefusalLeavesNothing) {
  observer_.decision = absl::AbortedError("called off");
  EXPECT_TRUE(absl::IsAborted(Run()));
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(BehindTest, NobodyWaitsForAnImageThatIsNotWantedAnyMore) {
  observer_.stopped = absl::AbortedError("the task has ended");
  EXPECT_EQ(Run().message(), "the task has ended");
  EXPECT_THAT(observer_.steps, ElementsAre("let go", "runs on"));
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(BehindTest, NothingFollowsWhereCriuDidNotLetGo) {
  criu_.after = absl::UnavailableError("criu was killed");
  EXPECT_TRUE(absl::IsUnavailable(Run()));
  EXPECT_THAT(observer_.steps, ElementsAre("let go"));
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(BehindTest, ADiskThatIsFullByThenIsTheTiersProblem) {
  criu_.at_the_end = [this] {
    std::filesystem::remove_all(folder_ + "/store/images");
    std::ofstream(folder_ + "/store/images") << "no folder";
  };
  EXPECT_TRUE(IsTierProblem(Run()));
  EXPECT_FALSE(DraftsLeft());
}

// No file can be written while it lives.
class NoFiles {
 public:
  NoFiles() {
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit none = {0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;

 private:
  rlimit before_ = {};
};

TEST_F(RunDumpTest, ButWhereTheTierTakesNothingMoreItIsTheTiers) {
  criu_.before = absl::InternalError("criu: Input/output error");
  const NoFiles no_files;
  const absl::Status status = Run();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Input/output error"));
  EXPECT_TRUE(IsTierProblem(status));
}

TEST_F(RunDumpTest, AnImageThatTheTierDoesNotTakeIsItsProblem) {
  criu_.while_frozen = [this] {
    std::filesystem::remove_all(folder_ + "/store/images");
    std::ofstream(folder_ + "/store/images") << "no folder";
  };
  EXPECT_TRUE(IsTierProblem(Run()));
}

// It is one of several ranks.
class TogetherTest : public BehindTest {
 protected:
  TogetherTest() { plan_.together = true; }
};

TEST_F(TogetherTest, MeetsTheOthersBeforeItIsStoppedAndBeforeItRunsOn) {
  criu_.when_stopped = [this] { observer_.steps.push_back("stopped"); };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(observer_.steps, ElementsAre("stop", "stopped", "run on", "let go", "runs on", "prepared",
                                           "committing", "committed"));
}

TEST_F(TogetherTest, WaitsForAsLongAsItTakes) {
  observer_.waits = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(std::count(observer_.steps.begin(), observer_.steps.end(), "stop"), 1);
  EXPECT_LT(observer_.waits, 0);
}

TEST_F(TogetherTest, ButDoesNotStandStillForAsLong) {
  observer_.others_come = false;
  observer_.limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  EXPECT_EQ(std::string(Run().message()), "its other ranks could not be captured within 30.0s");
  EXPECT_EQ(observer_.still_at_most, std::chrono::seconds(30));
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(TogetherTest, RunsOnIfTheOthersDoNotCome) {
  observer_.others = absl::AbortedError("called off");
  EXPECT_TRUE(absl::IsAborted(Run()));
  EXPECT_FALSE(DraftsLeft());
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(TogetherTest, IsTriedAgainWhileTheOthersStandStill) {
  criu_.when_ready = PassingError("a connection waits");
  criu_.fails = 2;
  EXPECT_TRUE(Run().ok());
}

TEST_F(TogetherTest, ButNotOnceTheyMayRunOn) {
  criu_.after = PassingError("a connection waits");
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(criu_.tries, 1);
}

// It has a network of its own.
class PacketsTest : public RunDumpTest, protected PacketHold {
 protected:
  PacketsTest() { plan_.packets = this; }
  void Drain() override { observer_.steps.push_back("drained"); }
  absl::Status Hold() override {
    observer_.steps.push_back("held");
    return held_;
  }
  void LetGo() override { observer_.steps.push_back("let in"); }
  auto Steps() const { return observer_.steps; }

  absl::Status held_;
};

TEST_F(PacketsTest, AreKeptFromATaskUntilItRunsAgain) {
  plan_.finish_behind = true;
  criu_.when_stopped = [this] { observer_.steps.push_back("stopped"); };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Steps(),
              ElementsAre("stopped", "held", "let in", "runs on", "prepared", "committing", "committed"));
}

TEST_F(PacketsTest, AreLetInAlsoWhenItStoodStillToTheEnd) {
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Steps(), ElementsAre("held", "prepared", "committing", "committed", "let in"));
}

TEST_F(PacketsTest, AreLetInWhenItIsNotDumped) {
  plan_.finish_behind = true;
  criu_.after = absl::InternalError("criu failed");
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(Steps().back(), "let in");
}

TEST_F(PacketsTest, ThatCannotBeKeptFromItAreAReasonNotToDump) {
  held_ = absl::UnavailableError("it has closed a connection");
  EXPECT_EQ(Run().message(), "it has closed a connection");
  EXPECT_THAT(Steps(), ElementsAre("held", "let in"));
}

TEST_F(PacketsTest, AreKeptFromNoneBeforeAllRanksAreStopped) {
  plan_.holds_together = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Steps(),
              ElementsAre("drained", "hold", "held", "prepared", "committing", "committed", "let in"));
}

TEST_F(PacketsTest, AreNotKeptFromItIfTheOthersAreNotStopped) {
  plan_.holds_together = true;
  observer_.others_come = false;
  EXPECT_EQ(std::string(Run().message()), "its other ranks could not be stopped within 30.0s");
  EXPECT_THAT(Steps(), ElementsAre("drained", "hold", "let in"));
}

class LeavingPacketsTest : public PacketsTest {
 protected:
  LeavingPacketsTest() {
    plan_.init = Idle();
    plan_.keep_running = false;
  }
  ~LeavingPacketsTest() override { End(plan_.init); }
};

TEST_F(LeavingPacketsTest, AreNeverLetInToOneThatLeaves) {
  criu_.at_the_end = [this] { End(plan_.init); };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Steps(), ElementsAre("held", "prepared", "committing", "committed"));
}

TEST_F(LeavingPacketsTest, AreLetInIfTheImageCannotCountAfterAll) {
  plan_.commit_patience = std::chrono::milliseconds(1);
  observer_.record = absl::ResourceExhaustedError("disk full");
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(Steps().back(), "let in");
}

TEST_F(LeavingPacketsTest, OrThoseOfOthersDoNotCount) {
  plan_.leaves_together = true;
  observer_.others = absl::AbortedError("called off");
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(Steps().back(), "let in");
}

TEST_F(LeavingPacketsTest, NorIfCriuDiesWhenItsImageCounts) {
  criu_.after = absl::UnavailableError("criu ended");
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Steps(), ElementsAre("held", "prepared", "committing", "committed"));
}

TEST_F(RunDumpTest, WhatPassesByItselfIsTriedAgain) {
  criu_.before = PassingError("a connection waits");
  criu_.fails = 2;
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
}

TEST_F(RunDumpTest, AndGivenUpAfterAFewTries) {
  criu_.before = PassingError("a connection waits");
  EXPECT_EQ(Run().message(), "a connection waits, at each of 4 tries");
  EXPECT_EQ(criu_.tries, 4);
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(RunDumpTest, WhatDoesNotPassIsNotTriedAgain) {
  criu_.before = absl::InternalError("criu: no");
  EXPECT_FALSE(Run().ok());
  EXPECT_EQ(criu_.tries, 1);
}

TEST_F(RunDumpTest, DeathOfCriuAfterTheCommitDoesNotUndoIt) {
  criu_.after = absl::UnavailableError("criu ended");
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(Images(), ElementsAre(plan_.key));
}

TEST_F(RunDumpTest, DeathOfCriuEndsNobodyWhoHasTheNumberOfATaskThatHasEnded) {
  const pid_t task = plan_.init = Idle();
  plan_.keep_running = false;
  pid_t other = -1;
  criu_.at_the_end = [&] {
    End(task);
    other = Idle(task);
  };
  criu_.after = absl::UnavailableError("criu ended");
  EXPECT_TRUE(Run().ok());
  if (other < 0) GTEST_SKIP() << "cannot choose a process's number: " << strerror(errno);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it lives";
  End(other);
}

TEST_F(RunDumpTest, OfATaskThatHasEndedThatIsSaid) {
  plan_.init = Idle();
  End(plan_.init);
  EXPECT_EQ(Run().message(), "the task has ended");
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(RunDumpTest, TheImageSaysWhatOnlyOurCriuRestores) {
  plan_.criu.kind = CriuKind::kOurs;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(observer_.metadata.count(kMetadataNeedsOurs), 0u);
  const UniqueFd semaphore(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(observer_.metadata[kMetadataNeedsOurs], HasSubstr("(EFD_SEMAPHORE)"));
}

// It was not there when it was looked for: no node of that kind would restore the image.
TEST_F(RunDumpTest, WhatAnotherCriuWouldLoseAndComesJustBeforeTheFreezeEndsTheDump) {
  plan_.criu.kind = CriuKind::kAny;
  UniqueFd semaphore;
  criu_.when_stopped = [&] { semaphore.Reset(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)); };
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("(EFD_SEMAPHORE)"));
  EXPECT_EQ(criu_.tries, 1);
  EXPECT_THAT(observer_.steps, IsEmpty());
  EXPECT_THAT(Images(), IsEmpty());
  EXPECT_FALSE(DraftsLeft());
}

// The leader of a session on a terminal whose foreground group can end, as of a shell between two commands.
class Shell {
 public:
  Shell() {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    master_ = UniqueFd(terminal);
    EXPECT_EQ(grantpt(terminal) | unlockpt(terminal), 0);
    const std::string name = ptsname(terminal);
    int told[2];
    EXPECT_EQ(pipe2(told, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) BeLeader(name.c_str(), told[1]);
    close(told[1]);
    EXPECT_EQ(read(told[0], &command_, sizeof command_), static_cast<ssize_t>(sizeof command_));
    close(told[0]);
  }
  ~Shell() {
    EndCommand();
    End(pid_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  pid_t pid() const { return pid_; }
  // Nobody waits for it: the kernel takes it away.
  void EndCommand() {
    if (command_ <= 0) return;
    kill(command_, SIGKILL);
    while (kill(command_, 0) == 0) sched_yield();
    command_ = -1;
  }

 private:
  [[noreturn]] static void BeLeader(const char* terminal, int told) {
    signal(SIGCHLD, SIG_IGN);
    setsid();
    const int fd = open(terminal, O_RDWR);
    const pid_t command = fork();
    if (command == 0) {
      for (;;) pause();
    }
    setpgid(command, command);
    tcsetpgrp(fd, command);
    if (write(told, &command, sizeof command) != sizeof command) _exit(1);
    for (;;) pause();
  }

  UniqueFd master_;
  pid_t pid_ = -1;
  pid_t command_ = -1;
};

class ShellTest : public RunDumpTest {
 protected:
  ShellTest() {
    plan_.init = shell_.pid();
    plan_.criu.kind = CriuKind::kAny;
  }
  Shell shell_;
};

TEST_F(ShellTest, NorIsOneBetweenTwoCommandsDumpedThatComesThereJustBeforeTheFreeze) {
  criu_.when_stopped = [&] { shell_.EndCommand(); };
  EXPECT_THAT(std::string(Run().message()), HasSubstr("foreground group has ended"));
  EXPECT_THAT(observer_.steps, IsEmpty());
  EXPECT_THAT(Images(), IsEmpty());
}

TEST_F(RunDumpTest, LaterDumpOfTheSameRankReplacesTheEarlier) {
  ASSERT_TRUE(Run().ok());
  plan_.metadata["attempt"] = "2";
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(store_->Read(plan_.key)->metadata["attempt"], "2");
}

}  // namespace
}  // namespace siding
