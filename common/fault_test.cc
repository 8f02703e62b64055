#include "common/fault.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

absl::Status Step() { return FaultAt<"test.step: a step that can fail">(); }
void StepThatCannotFail() { FaultHere<"test.sure: a step that cannot fail">(); }
absl::Status StepOfCriu() { return FaultAtCriu<"test.criu: criu is at work">(); }

class FaultTest : public testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(Arm("").ok()); }
  static absl::Status Arm(const std::string& faults, const std::string& once = "") {
    return ArmFaults(faults, once, {"other"});
  }
};

TEST_F(FaultTest, NothingHappensUnlessArmed) { EXPECT_TRUE(Step().ok()); }

TEST_F(FaultTest, AnErrorIsReturnedOnce) {
  ASSERT_TRUE(Arm("test.step=error").ok());
  EXPECT_TRUE(absl::IsInternal(Step()));
  EXPECT_TRUE(Step().ok());
}

TEST_F(FaultTest, FiresTheNthTime) {
  ASSERT_TRUE(Arm("test.step=error@2").ok());
  EXPECT_TRUE(Step().ok());
  EXPECT_FALSE(Step().ok());
}

TEST_F(FaultTest, ADelayHoldsTheStep) {
  ASSERT_TRUE(Arm("test.sure=delay=20ms").ok());
  const auto begun = std::chrono::steady_clock::now();
  StepThatCannotFail();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(20));
}

TEST_F(FaultTest, AHoldLastsUntilThereIsTheFile) {
  const std::string file = testing::TempDir() + "/siding-fault-hold-" + std::to_string(getpid());
  ASSERT_TRUE(Arm("test.sure=hold=" + file + "@2").ok());
  StepThatCannotFail();  // not the second time yet
  // On a thread that is left behind if it does not end: the future of std::async would wait for it.
  std::packaged_task<void()> task(StepThatCannotFail);
  const std::future<void> step = task.get_future();
  std::thread(std::move(task)).detach();
  EXPECT_EQ(step.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  std::ofstream{file};
  EXPECT_TRUE(Comes(step)) << "the step to go on, as there is the file";
  std::filesystem::remove(file);
}

TEST_F(FaultTest, AKillEndsTheProcess) {
  ASSERT_TRUE(Arm("test.sure=kill").ok());
  EXPECT_EXIT(StepThatCannotFail(), testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FaultTest, CriuIsTheOneOfThisThread) {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  ASSERT_TRUE(Arm("test.criu=kill-criu").ok());
  const CriuOfThisThread criu(pid);
  EXPECT_TRUE(StepOfCriu().ok());
  int status = 0;
  ASSERT_TRUE(AwaitChild(pid, status)) << "criu's end";
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(FaultTest, WithAFileItFiresInOneProcessOnly) {
  const std::string file = testing::TempDir() + "/siding-fault-once-" + std::to_string(getpid());
  ASSERT_TRUE(Arm("test.step=error", file).ok());
  EXPECT_FALSE(Step().ok());
  ASSERT_TRUE(Arm("test.step=error", file).ok());
  EXPECT_TRUE(Step().ok());
  std::filesystem::remove(file);
}

TEST_F(FaultTest, ThePointsOfOtherProgramsAreLeftToThem) { EXPECT_TRUE(Arm("other.step=kill").ok()); }

TEST_F(FaultTest, IsListed) {
  EXPECT_THAT(ListFaultPoints(), HasSubstr("test.step\tkill,error,delay\ta step that can fail\n"));
}

TEST_F(FaultTest, WhatIsMisspelledIsRefused) {
  for (const char* const wrong :
       {"test.nothing=kill", "test.step", "test.step=explode", "test.step=delay=3",
        "test.step=hold=", "test.step=kill@0", "test.sure=error", "test.step=kill-criu"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Arm(wrong))) << wrong;
    EXPECT_TRUE(Step().ok());
  }
}

}  // namespace
}  // namespace siding
