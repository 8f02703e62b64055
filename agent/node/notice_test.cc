#include "absl/strings/match.h"
#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class NoticeTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (!IsSkipped()) StartHost();
  }
  // A job that does this when it is told.
  void LaunchListener(const std::string& does = "echo told") {
    v1::JobSpec spec = Job({});
    spec.clear_command();
    spec.add_command("sh");
    spec.add_command("-c");
    spec.add_command("trap '" + does + "' URG; while :; do echo on; sleep 0.02; done");
    LaunchCounter(spec);
  }
  void SuspendWith(int64_t op, Duration notice) {
    v1::ToAgent command = Command(op);
    command.mutable_suspend()->set_notice_us(notice.count());
    Order(command);
  }
  void DumpWith(int64_t op, Duration notice) {
    v1::ToAgent command = Command(op);
    command.mutable_dump()->set_checkpoint("1.1");
    command.mutable_dump()->set_tier(v1::SHARED);
    command.mutable_dump()->set_notice_us(notice.count());
    Order(command);
  }
  bool IsTold() const { return absl::StrContains(ReadFile(output()).value_or(""), "told"); }
  void AwaitTold() {
    EXPECT_TRUE(PollUntil([&] { return IsTold(); }, kPatience));
  }
  v1::TaskReport Now() { return host().Reports().at(0); }
};

TEST_F(NoticeTest, ATaskIsToldAndRunsOn) {
  LaunchListener();
  SuspendWith(2, hours(1));
  AwaitTold();
  AwaitMoreLines();
  EXPECT_EQ(Now().phase(), v1::RUNNING);
  EXPECT_EQ(Now().op(), 2);
}

TEST_F(NoticeTest, AtItsEndTheTaskIsFrozen) {
  LaunchListener();
  SuspendWith(2, milliseconds(100));
  EXPECT_EQ(AwaitPhase(v1::SUSPENDED).op(), 0);
}

TEST_F(NoticeTest, AtItsEndTheTaskIsDumped) {
  LaunchListener();
  DumpWith(2, milliseconds(100));
  AwaitPhase(v1::PREPARED);
}

TEST_F(NoticeTest, ATaskIsToldBeforeItIsDumped) {
  LaunchListener();
  DumpWith(2, hours(1));
  AwaitTold();
  EXPECT_EQ(Now().phase(), v1::DUMPING);
}

TEST_F(NoticeTest, WithoutOneATaskIsNotTold) {
  LaunchListener();
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
  EXPECT_FALSE(IsTold());
}

TEST_F(NoticeTest, AFrozenTaskIsDumpedAtOnce) {
  LaunchListener();
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  DumpWith(3, hours(1));
  AwaitPhase(v1::PREPARED);
}

TEST_F(NoticeTest, AFreezeThatIsCalledOffLeavesTheTaskRunning) {
  LaunchListener();
  SuspendWith(2, hours(1));
  AwaitTold();
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("called off"));
  EXPECT_EQ(Now().op(), 0);
  AwaitMoreLines();
}

TEST_F(NoticeTest, ADumpThatIsCalledOffLeavesTheTaskRunning) {
  LaunchListener();
  DumpWith(2, hours(1));
  AwaitTold();
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("called off"));
  AwaitMoreLines();
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(NoticeTest, AKillDoesNotWaitForItsEnd) {
  LaunchListener();
  DumpWith(2, hours(1));
  AwaitTold();
  v1::ToAgent kill = Command(3);
  kill.mutable_kill();
  Order(kill);
  AwaitPhase(v1::EXITED);
}

TEST_F(NoticeTest, TheTasksOwnEndIsTheEndOfIt) {
  LaunchListener("exit 7");
  SuspendWith(2, hours(1));
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 7);
}

// Its agent is asked again by the controller, under the same operation.
TEST_F(NoticeTest, AnAgentThatEndsMeanwhileLeavesTheTaskRunning) {
  LaunchListener();
  SuspendWith(2, hours(1));
  AwaitTold();
  host_.reset();
  StartHost();
  const auto found =
      sink_.Await(Task(), [](const auto& r) { return r.phase() == v1::RUNNING && r.op() == 0; });
  EXPECT_EQ(found.failed_op(), 0);
  SuspendWith(2, milliseconds(100));
  AwaitPhase(v1::SUSPENDED);
}

}  // namespace
}  // namespace siding
