#include "controller/journal/lease_watch.h"

#include "common/clock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using Verdict = LeaseWatch::Verdict;

class LeaseWatchTest : public testing::Test {
 protected:
  Verdict Look(bool locked = true) { return watch_.Look(record_, locked, clock_.Now()); }

  FakeClock clock_;
  LeaseWatch watch_{"here"};
  LeaseRecord record_{.epoch = 7, .beat = 1, .shared = true, .host = "head2", .boot = "there", .pid = 9};
};

TEST_F(LeaseWatchTest, WhatNobodyHasIsFree) {
  record_ = {};
  EXPECT_EQ(Look(), Verdict::kFree);
}
TEST_F(LeaseWatchTest, WhatWasGivenBackIsFree) {
  record_.released = true;
  EXPECT_EQ(Look(), Verdict::kFree);
}

TEST_F(LeaseWatchTest, AtFirstNothingIsKnownOfAHolderElsewhere) { EXPECT_EQ(Look(), Verdict::kUnknown); }

TEST_F(LeaseWatchTest, AHolderWhoseBeatChangesLives) {
  Look();
  clock_.Advance(1s);
  ++record_.beat;
  EXPECT_EQ(Look(), Verdict::kHeld);
}

TEST_F(LeaseWatchTest, ASilentHolderIsReplaced) {
  Look();
  clock_.Advance(kLeaseLasts);
  EXPECT_EQ(Look(), Verdict::kFree);
}
TEST_F(LeaseWatchTest, NotAMomentEarlier) {
  Look();
  clock_.Advance(kLeaseLasts - 1us);
  EXPECT_EQ(Look(), Verdict::kUnknown);
}
TEST_F(LeaseWatchTest, EachBeatStartsItAfresh) {
  Look();
  clock_.Advance(kLeaseLasts - 1us);
  ++record_.beat;
  Look();
  clock_.Advance(kLeaseLasts - 1us);
  EXPECT_EQ(Look(), Verdict::kUnknown);
}
// One that was asleep itself has missed beats, and not the holder.
TEST_F(LeaseWatchTest, AWatchThatHasNotLookedForLongHasSeenNoSilence) {
  Look();
  clock_.Advance(100 * kLeaseLasts);
  record_.beat += 100;
  EXPECT_NE(Look(), Verdict::kFree);
}

TEST_F(LeaseWatchTest, AHolderThatDiedOnThisMachineIsReplacedAtOnce) {
  record_.boot = "here";
  EXPECT_EQ(Look(/*locked=*/false), Verdict::kFree);
}
TEST_F(LeaseWatchTest, OneThatLivesOnThisMachineHasItFromTheFirstLookOn) {
  record_.boot = "here";
  EXPECT_EQ(Look(), Verdict::kHeld);
}
TEST_F(LeaseWatchTest, OneThatWasStoppedOnThisMachineIsReplacedWhenItIsSilent) {
  record_.boot = "here";
  Look();
  clock_.Advance(kLeaseLasts);
  EXPECT_EQ(Look(), Verdict::kFree);
}
// Its locks may not reach us, as over NFS without them.
TEST_F(LeaseWatchTest, ThatThereIsNoLockOfAnotherHostSaysNothing) {
  EXPECT_EQ(Look(/*locked=*/false), Verdict::kUnknown);
}
TEST_F(LeaseWatchTest, AfterARestartOfTheMachineAJournalThatIsNotSharedIsFree) {
  record_.shared = false;
  EXPECT_EQ(Look(/*locked=*/false), Verdict::kFree);
}

}  // namespace
}  // namespace siding
