#include "agent/launch/failed_start.h"

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
  EXPECT_EQ(JudgeFailedStart(0, nullptr, kAway), StepWord::kNotStarted);
}

TEST(JudgeFailedStart, NeitherHasOneForWhichThereIsNoCheckpoint) {
  const agent::TaskRecord launching;
  EXPECT_EQ(JudgeFailedStart(1, &launching, kAway), StepWord::kNotStarted);
}

TEST(JudgeFailedStart, ACheckpointOfSomebodyElseIsNoneOfTheJob) {
  const agent::TaskRecord record = RestoringFrom(1);
  EXPECT_EQ(JudgeFailedStart(1, &record, absl::PermissionDeniedError("another user's")),
            StepWord::kNotStarted);
}

TEST(JudgeFailedStart, ACheckpointThatCannotBeUsedNowIsTriedAgain) {
  const agent::TaskRecord record = RestoringFrom(1);
  EXPECT_EQ(JudgeFailedStart(1, &record, kAway), StepWord::kComeBack);
}

TEST(JudgeFailedStart, SoIsOneOfWhichNothingIsKnown) {
  EXPECT_EQ(JudgeFailedStart(1, nullptr, kAway), StepWord::kComeBack);
}

TEST(JudgeFailedStart, AfterManyStartsInVainTheJobIsHeld) {
  const agent::TaskRecord record = RestoringFrom(3);
  EXPECT_EQ(JudgeFailedStart(3 + spank::kMostStarts - 2, &record, kAway), StepWord::kComeBack);
  EXPECT_EQ(JudgeFailedStart(3 + spank::kMostStarts - 1, &record, kAway), StepWord::kHold);
}

TEST(JudgeFailedStart, PreemptionsThatWentWellDoNotCount) {
  const agent::TaskRecord record = RestoringFrom(100);
  EXPECT_EQ(JudgeFailedStart(100, &record, kAway), StepWord::kComeBack);
}

TEST(TellFailedStart, SaysWhyAndWhatBecomesOfTheJob) {
  EXPECT_EQ(TellFailedStart(StepWord::kComeBack, kAway),
            "siding: the tier is away; the job goes back into the queue, to be tried again\n");
}

}  // namespace
}  // namespace siding
