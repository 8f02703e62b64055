// A restore that is rehearsed while the task is frozen for a checkpoint.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/node/host_fixture.h"
#include "agent/os/fence.h"
#include "agent/os/names.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/fault.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr char kCriuRefuses[] = "criu.restore.step=error";

class RehearsalTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (!IsSkipped()) StartHost();
  }
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = HostTest::Options(node);
    options.rehearsals = rehearsals_;
    return options;
  }
  // A checkpoint of the running task.
  void Checkpoint(int64_t op, const std::string& id) {
    Dump(op, id, true);
    ASSERT_EQ(AwaitPhase(v1::PREPARED).op(), op);
    Commit(op);
    ASSERT_EQ(AwaitPhase(v1::RUNNING).committed_op(), op);
  }
  agent::TaskRecord Record() const {
    for (const auto& folder : std::filesystem::directory_iterator(tasks_folder()))
      return ReadJsonFile<agent::TaskRecord>(folder.path().string() + "/task.json").value();
    return {};
  }
  static std::vector<pid_t> RehearsingShims() {
    std::vector<pid_t> shims;
    for (const pid_t pid : ProcessTree(getpid())) {
      const std::vector<std::string> line = CommandLineOf(pid);
      if (line.size() > 1 && line[1] == "--rehearse") shims.push_back(pid);
    }
    return shims;
  }
  void ExpectThatItRunsToItsEnd() {
    AwaitMoreLines();
    OpenGate();
    EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
    ExpectCompleteOutput();
  }

  Rehearsals rehearsals_ = Rehearsals::kFirst;
};

TEST_F(RehearsalTest, TheFirstCheckpointIsAndTheTaskRunsOn) {
  LaunchCounter(Counter());
  Checkpoint(2, "1.1");
  EXPECT_TRUE(Record().rehearsed());
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, SoIsThatOfOneWithConnections) {
  LaunchCounter(Counter({"-c", "-a"}));
  Checkpoint(2, "1.1");
  EXPECT_TRUE(Record().rehearsed());
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, OneThatCriuDoesNotTakeIsNoCheckpoint) {
  LaunchCounter(Counter());
  {
    const FaultOfShims fault(kCriuRefuses);
    Dump(2, "1.1", true);
    EXPECT_THAT(AwaitFailure(2).error(),
                HasSubstr("a restore of it was rehearsed, and CRIU does not take it: "));
  }
  EXPECT_FALSE(DraftsLeft());
  EXPECT_FALSE(Record().rehearsed());
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, NorDoesItLeaveByOneFromThenOn) {
  LaunchCounter(Counter());
  {
    const FaultOfShims fault(kCriuRefuses);
    Dump(2, "1.1", true);
    AwaitFailure(2);
  }
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("CRIU does not take it"));
  Dump(3, "1.2");
  EXPECT_THAT(AwaitFailure(3).error(), HasSubstr("CRIU does not take it"));
  Checkpoint(4, "1.3");
  EXPECT_EQ(host().Reports().at(0).cannot_checkpoint(), "") << "another rehearsal has shown that it does";
}

TEST_F(RehearsalTest, TheSecondIsNot) {
  LaunchCounter(Counter());
  Checkpoint(2, "1.1");
  const FaultOfShims fault(kCriuRefuses);
  Checkpoint(3, "1.2");
}

TEST_F(RehearsalTest, NorIsOneThatMakesRoom) {
  LaunchCounter(Counter());
  const FaultOfShims fault(kCriuRefuses);
  Vacate("1.1");
}

TEST_F(RehearsalTest, AFailureThatSaysNothingOfTheImageIsNoReasonAgainstIt) {
  LaunchCounter(Counter());
  {
    const FaultOfShims fault("shim.rehearse=error");
    Checkpoint(2, "1.1");
  }
  EXPECT_FALSE(Record().rehearsed());
  EXPECT_THAT(Record().report().notes(0), HasSubstr("is not rehearsed: "));
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, NorIsACriuThatDies) {
  LaunchCounter(Counter());
  {
    const FaultOfShims fault("criu.restore.step=kill-criu");
    Checkpoint(2, "1.1");
  }
  EXPECT_FALSE(Record().rehearsed());
  ExpectThatItRunsToItsEnd();
}

// In which it makes mounts for an order of this task.
bool CriuHasFolders(const std::string& temporary_name) {
  const std::filesystem::directory_iterator all("/tmp");
  return std::any_of(begin(all), end(all), [&](const auto& entry) {
    return entry.path().filename().string().starts_with(".criu.mntns." + temporary_name);
  });
}

TEST_F(RehearsalTest, ACriuThatDiesLeavesNoFolder) {
  LaunchCounter(Counter());
  {
    const FaultOfShims fault("criu.restore.step=kill-criu@3");
    Checkpoint(2, "1.1");
  }
  EXPECT_THAT(Record().report().notes(0), HasSubstr("is not rehearsed: "));
  const std::string name = NameOutside(std::to_string(job_) + ".1.0", cluster());
  EXPECT_TRUE(PollUntil([&] { return !CriuHasFolders(TemporaryName(name, 2)); }, kPatience));
}

TEST_F(RehearsalTest, WhatOneHasLeftGoesWithItsTaskAndNothingElse) {
  const std::string name = NameOutside(std::to_string(job_) + ".1.0", cluster());
  LaunchCounter(Counter());
  Checkpoint(2, "1.1");
  const std::string of_it = "/tmp/.criu.mntns." + TemporaryName(name, 3) + ".XXXXXX";
  const std::string of_another = "/tmp/.criu.mntns." + TemporaryName(name + "0", 3) + ".XXXXXX";
  for (const std::string& folder : {of_it, of_another}) ASSERT_TRUE(MakeDirectories(folder).ok());
  OpenGate();
  AwaitPhase(v1::EXITED);
  v1::ToAgent forget = Command(4);
  forget.mutable_forget();
  // Refused while the end is still being dealt with.
  const auto gone = [&] {
    Order(forget);
    return !std::filesystem::exists(of_it);
  };
  EXPECT_TRUE(PollUntil(gone, kPatience));
  EXPECT_TRUE(std::filesystem::remove(of_another)) << "that is not this task's";
}

TEST_F(RehearsalTest, OneOfATaskThatUsesMostOfItsMemoryTakesNoneOfThat) {
  constexpr Bytes kMost{128 << 20};
  v1::JobSpec spec = Counter({"-m", "96"});
  spec.mutable_per_node()->set_memory(kMost.value);
  LaunchCounter(spec);
  const Fence fence = Fence::Detect("n1", {});
  if (!fence.problem().empty()) GTEST_SKIP() << fence.problem();
  const std::string name = NameOutside(std::to_string(job_) + ".1.0", cluster());
  ASSERT_EQ(fence.For(name).MemoryLimit(), kMost);
  Checkpoint(2, "1.1");
  EXPECT_TRUE(Record().rehearsed());
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, WhatWouldDoHarmIsNotAndItIsSaid) {
  LaunchCounter(Counter({"-p", folder_ + "/pipe"}));
  Checkpoint(2, "1.1");
  EXPECT_FALSE(Record().rehearsed());
  EXPECT_THAT(Record().report().notes(0), HasSubstr("is not rehearsed: process "));
}

TEST_F(RehearsalTest, AnAgentThatEndsMeanwhileLeavesTheTaskRunningAndNothingElse) {
  LaunchCounter(Counter());
  const std::string never = folder_ + "/never";
  {
    const FaultOfShims fault("shim.rehearse=hold=" + never);
    Dump(2, "1.1", true);
    ASSERT_TRUE(PollUntil([&] { return !RehearsingShims().empty(); }, kPatience));
    host_.reset();
  }
  EXPECT_TRUE(PollUntil([&] { return RehearsingShims().empty(); }, kPatience));
  StartHost();
  AwaitPhase(v1::RUNNING);
  ExpectThatItRunsToItsEnd();
}

TEST_F(RehearsalTest, OneThatIsCalledOffEndsAtOnce) {
  LaunchCounter(Counter());
  const FaultOfShims fault("shim.rehearse=hold=" + folder_ + "/never");
  Dump(2, "1.1", true);
  ASSERT_TRUE(PollUntil([&] { return !RehearsingShims().empty(); }, kPatience));
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("the rehearsal was stopped"));
  EXPECT_TRUE(RehearsingShims().empty());
  EXPECT_FALSE(DraftsLeft());
  ExpectThatItRunsToItsEnd();
}

class EachIsRehearsedTest : public RehearsalTest {
 protected:
  EachIsRehearsedTest() { rehearsals_ = Rehearsals::kAlways; }
};

TEST_F(EachIsRehearsedTest, TheSecondIsToo) {
  LaunchCounter(Counter());
  Checkpoint(2, "1.1");
  const FaultOfShims fault(kCriuRefuses);
  Dump(3, "1.2", true);
  EXPECT_THAT(AwaitFailure(3).error(), HasSubstr("CRIU does not take it"));
}

class NoneIsRehearsedTest : public RehearsalTest {
 protected:
  NoneIsRehearsedTest() { rehearsals_ = Rehearsals::kNever; }
};

TEST_F(NoneIsRehearsedTest, TheFirstIsNot) {
  LaunchCounter(Counter());
  const FaultOfShims fault(kCriuRefuses);
  Checkpoint(2, "1.1");
}

}  // namespace
}  // namespace siding
