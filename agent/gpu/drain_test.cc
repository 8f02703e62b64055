#include "agent/gpu/drain.h"

#include "agent/gpu/fake_gpu_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const GpuTimes kTimes{std::chrono::seconds(1), std::chrono::seconds(1), std::chrono::milliseconds(1),
                      std::chrono::seconds(1), std::chrono::milliseconds(1)};
const std::vector<pid_t> kTree = {7, 8, 9};

class DrainTest : public testing::Test {
 protected:
  DrainTest() {
    for (pid_t pid : kTree) driver_.states[pid] = GpuState::kRunning;
  }
  // The calls of one moment come in any order.
  std::vector<std::string> Calls(size_t begin, size_t count) const {
    return {driver_.calls.begin() + static_cast<ptrdiff_t>(begin),
            driver_.calls.begin() + static_cast<ptrdiff_t>(begin + count)};
  }
  void ExpectAll(GpuState state) { EXPECT_THAT(driver_.states, Each(Pair(testing::_, state))); }

  FakeGpuDriver driver_;
};

TEST_F(DrainTest, LocksAllBeforeTheFirstIsTaken) {
  ASSERT_TRUE(DrainGpus(driver_, kTree, kTimes).ok());
  ASSERT_EQ(driver_.calls.size(), 6u);
  EXPECT_THAT(Calls(0, 3), UnorderedElementsAre("lock 7", "lock 8", "lock 9"));
  EXPECT_THAT(Calls(3, 3), ElementsAre("checkpoint 7", "checkpoint 8", "checkpoint 9"));
  ExpectAll(GpuState::kCheckpointed);
}

TEST_F(DrainTest, WhereOneCannotBeLockedAllAreUnlockedAndTriedAgain) {
  driver_.late = {2};  // the third lock, whosever it is
  GpuStall stall;
  ASSERT_TRUE(DrainGpus(driver_, kTree, kTimes, {}, &stall).ok());
  EXPECT_EQ(stall.tries, 2);
  ASSERT_EQ(driver_.calls.size(), 3u + 2 + 3 + 3);
  EXPECT_THAT(Calls(3, 2), Each(HasSubstr("unlock ")));
  EXPECT_THAT(Calls(5, 3), UnorderedElementsAre("lock 7", "lock 8", "lock 9"));
  ExpectAll(GpuState::kCheckpointed);
}

TEST_F(DrainTest, ProcessesThatCannotBeLockedTogetherRunOnWhenTheTimeIsUp) {
  for (size_t call = 0; call < 1000; ++call) driver_.late.insert(call);
  GpuTimes times = kTimes;
  times.lock = Duration(0);
  const absl::Status status = DrainGpus(driver_, kTree, times);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 processes on GPUs could not be locked in"));
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, CalledOffBetweenTriesAllRunOn) {
  driver_.late = {0};
  EXPECT_TRUE(absl::IsAborted(DrainGpus(driver_, kTree, kTimes, {.cancelled = [] { return true; }})));
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, OneProcessAloneIsTriedAgainAsWell) {
  driver_.late = {0};
  GpuStall stall;
  EXPECT_TRUE(DrainGpus(driver_, {7}, kTimes, {}, &stall).ok());
  EXPECT_EQ(stall.tries, 2);
}

TEST_F(DrainTest, OneThatCannotBeLockedAtAllIsNotTriedAgain) {
  driver_.late = {0};
  driver_.failing = {1};
  GpuStall stall;
  EXPECT_TRUE(absl::IsInternal(DrainGpus(driver_, kTree, kTimes, {}, &stall)));
  EXPECT_EQ(stall.tries, 1);
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, WhatIsSeenOnlyWhenAllAreLockedUndoesTheDrain) {
  const auto refuse = [&] {
    ExpectAll(GpuState::kLocked);
    return absl::FailedPreconditionError("shares memory by now");
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(DrainGpus(driver_, kTree, kTimes, {.when_locked = refuse})));
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, ProcessThatOnlyInheritedDescriptorsIsNotOnGpus) {
  driver_.states = {{7, GpuState::kRunning}, {8, GpuState::kCheckpointed}};
  EXPECT_THAT(ProcessesOnGpus(driver_, {7, 8, 9}).value(), ElementsAre(7));
}

MATCHER_P2(Moves, before, after, "") { return arg.before == before && arg.after == after; }

TEST(PlanMoves, NothingIsSaidWhereNothingMoves) {
  EXPECT_THAT(PlanMoves({"a"}, {"a"}, {"a", "b"}, {"a", "b"}), testing::IsEmpty());
}
TEST(PlanMoves, OthersOfTheMachineAreExchanged) {
  EXPECT_THAT(PlanMoves({"a"}, {"b"}, {"a", "b"}, {"a", "b"}), ElementsAre(Moves("a", "b"), Moves("b", "a")));
}
TEST(PlanMoves, OthersThatAreNotInTheWayStay) {
  EXPECT_THAT(PlanMoves({"a"}, {"c"}, {"a", "b", "c"}, {"a", "b", "c"}),
              ElementsAre(Moves("a", "c"), Moves("b", "b"), Moves("c", "a")));
}
TEST(PlanMoves, OthersFindAPlaceOnAnotherMachine) {
  EXPECT_THAT(PlanMoves({"b"}, {"x"}, {"a", "b"}, {"x", "y"}), ElementsAre(Moves("b", "x"), Moves("a", "y")));
}
TEST(PlanMoves, OthersWithoutAPlaceAreLeftOut) {
  EXPECT_THAT(PlanMoves({"b"}, {"x"}, {"a", "b"}, {"x"}), ElementsAre(Moves("b", "x")));
}

TEST_F(DrainTest, AllAreBackBeforeTheFirstRuns) {
  ASSERT_TRUE(DrainGpus(driver_, kTree, kTimes).ok());
  driver_.calls.clear();
  ASSERT_TRUE(RefillGpus(driver_, kTree, {}, kTimes).ok());
  EXPECT_THAT(driver_.calls,
              ElementsAre("restore 7", "restore 8", "restore 9", "unlock 7", "unlock 8", "unlock 9"));
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, OnlyProcessesThatUseGpusAreTouched) {
  ASSERT_TRUE(DrainGpus(driver_, {1, 7, 2, 9}, kTimes).ok());
  ASSERT_EQ(driver_.calls.size(), 4u);
  EXPECT_THAT(Calls(0, 2), UnorderedElementsAre("lock 7", "lock 9"));
  EXPECT_THAT(Calls(2, 2), ElementsAre("checkpoint 7", "checkpoint 9"));
}

TEST_F(DrainTest, ProcessThatIsDrainedAlreadyStaysSo) {
  driver_.states[8] = GpuState::kCheckpointed;
  ASSERT_TRUE(DrainGpus(driver_, kTree, kTimes).ok());
  ExpectAll(GpuState::kCheckpointed);
}

TEST_F(DrainTest, RefillOfAHalfDrainedTreeSetsAllGoing) {
  driver_.states = {{7, GpuState::kCheckpointed}, {8, GpuState::kLocked}, {9, GpuState::kRunning}};
  ASSERT_TRUE(RefillGpus(driver_, kTree, {}, kTimes).ok());
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, NoneRunsOnBeforeAllAreBackAndTheOthersCanBeTriedAgain) {
  ASSERT_TRUE(DrainGpus(driver_, kTree, kTimes).ok());
  driver_.calls.clear();
  driver_.failing = {1};  // restore 8
  EXPECT_FALSE(RefillGpus(driver_, kTree, {}, kTimes).ok());
  EXPECT_EQ(driver_.states[7], GpuState::kLocked);
  EXPECT_EQ(driver_.states[8], GpuState::kCheckpointed);
  ASSERT_TRUE(RefillGpus(driver_, kTree, {}, kTimes).ok());
  ExpectAll(GpuState::kRunning);
}

TEST_F(DrainTest, LostStateIsAnError) {
  driver_.states[8] = GpuState::kFailed;
  EXPECT_TRUE(absl::IsDataLoss(DrainGpus(driver_, kTree, kTimes)));
  EXPECT_EQ(driver_.states[7], GpuState::kRunning);
}

// Whichever of the six steps fails, with or without effect, all processes run afterwards.
class DrainFaultTest : public DrainTest, public testing::WithParamInterface<size_t> {};

TEST_P(DrainFaultTest, StepThatFailsLeavesAllRunning) {
  driver_.failing = {GetParam()};
  EXPECT_EQ(DrainGpus(driver_, kTree, kTimes).code(), absl::StatusCode::kInternal);
  ExpectAll(GpuState::kRunning);
}

TEST_P(DrainFaultTest, StepThatWorkedAndSaidOtherwiseLeavesAllRunning) {
  driver_.failing_after_effect = {GetParam()};
  EXPECT_EQ(DrainGpus(driver_, kTree, kTimes).code(), absl::StatusCode::kUnavailable);
  ExpectAll(GpuState::kRunning);
}

INSTANTIATE_TEST_SUITE_P(Steps, DrainFaultTest, testing::Range<size_t>(0, 6));

}  // namespace
}  // namespace siding
