#include "agent/shim/failed_start.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

using spank::StepWord;

const absl::Status kAway = absl::UnavailableError("the tier is away");

agent::TaskRecord RestoringFrom(int incarnation) {
  agent::TaskRecord record;
  record.set_restored(true);
  record.set_image_incarnation(incarnation);
  return record;
}

TEST(JudgeFailedStart, TheFirstStartHasNothingToLose) {
  EXPECT_EQ(JudgeFailedStart(0, nullptr), StepWord::kNotStarted);
}

TEST(JudgeFailedStart, NeitherHasOneForWhichThereIsNoCheckpoint) {
  const agent::TaskRecord launching;
  EXPECT_EQ(JudgeFailedStart(1, &launching), StepWord::kNotStarted);
}

TEST(JudgeFailedStart, ACheckpointThatCannotBeUsedNowIsTriedAgain) {
  const agent::TaskRecord record = RestoringFrom(1);
  EXPECT_EQ(JudgeFailedStart(1, &record), StepWord::kComeBack);
}

TEST(JudgeFailedStart, SoIsOneOfWhichNothingIsKnown) {
  EXPECT_EQ(JudgeFailedStart(1, nullptr), StepWord::kComeBack);
}

TEST(JudgePutOff, OneThatHasRunIsTriedAgainThoughThereIsNoCheckpoint) {
  const agent::TaskRecord launched;
  EXPECT_EQ(JudgePutOff(0, &launched), StepWord::kComeBack);
  EXPECT_EQ(JudgePutOff(spank::kMostStarts, &launched), StepWord::kHold);
}

TEST(JudgeFailedStart, AfterManyStartsInVainTheJobIsHeld) {
  const agent::TaskRecord record = RestoringFrom(3);
  EXPECT_EQ(JudgeFailedStart(3 + spank::kMostStarts - 2, &record), StepWord::kComeBack);
  EXPECT_EQ(JudgeFailedStart(3 + spank::kMostStarts - 1, &record), StepWord::kHold);
}

TEST(JudgeFailedStart, PreemptionsThatWentWellDoNotCount) {
  const agent::TaskRecord record = RestoringFrom(100);
  EXPECT_EQ(JudgeFailedStart(100, &record), StepWord::kComeBack);
}

TEST(TellFailedStart, SaysWhyAndWhatBecomesOfTheJob) {
  EXPECT_EQ(TellFailedStart(StepWord::kComeBack, kAway),
            "the tier is away; the job goes back into the queue, to be tried again");
}

}  // namespace
}  // namespace siding
