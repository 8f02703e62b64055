#include "agent/task/ending.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr auto kVisible = [] { return true; };

agent::TaskRecord Committing() {
  agent::TaskRecord record;
  record.mutable_dump()->set_committing(true);
  return record;
}

agent::ShimExit Killed() {
  agent::ShimExit exit;
  exit.set_signal(SIGKILL);
  return exit;
}

TEST(JudgeEnding, AKillAfterTheCommitIsTheCheckpoints) {
  const agent::ShimExit exit = Killed();
  EXPECT_EQ(JudgeEnding(Committing(), &exit, kVisible), Ending::kCheckpointed);
}

TEST(JudgeEnding, AnEndThatNobodySawAfterTheCommitIsTheCheckpoints) {
  EXPECT_EQ(JudgeEnding(Committing(), nullptr, kVisible), Ending::kCheckpointed);
}

TEST(JudgeEnding, WithoutTheImageThereIsNoCheckpoint) {
  const agent::ShimExit exit = Killed();
  EXPECT_EQ(JudgeEnding(Committing(), &exit, [] { return false; }), Ending::kItsOwn);
}

TEST(JudgeEnding, AKillThatWasOrderedIsForGood) {
  agent::TaskRecord record = Committing();
  record.set_kill_ordered(true);
  const agent::ShimExit exit = Killed();
  EXPECT_EQ(JudgeEnding(record, &exit, kVisible), Ending::kItsOwn);
}

TEST(JudgeEnding, ACommandThatEndedInTheMomentOfTheCommitHasEnded) {
  EXPECT_EQ(JudgeEnding(Committing(), &agent::ShimExit::default_instance(), kVisible), Ending::kItsOwn);
}

TEST(JudgeEnding, AProgramThatWasToldToSaveItselfAndEndedWellDidSo) {
  agent::TaskRecord record;
  record.set_saving(true);
  EXPECT_EQ(JudgeEnding(record, &agent::ShimExit::default_instance(), kVisible), Ending::kSaved);
  const agent::ShimExit exit = Killed();
  EXPECT_EQ(JudgeEnding(record, &exit, kVisible), Ending::kItsOwn);
}

agent::ShimExit Trapped() {
  agent::ShimExit exit;
  exit.set_signal(SIGTRAP);
  return exit;
}

TEST(JudgeEnding, ABreakpointAfterTheCommitIsTheCheckpoints) {
  agent::TaskRecord record = Committing();
  record.mutable_dump()->set_op(7);
  const agent::ShimExit exit = Trapped();
  EXPECT_EQ(JudgeEnding(record, &exit, kVisible), Ending::kCheckpointed);
}

TEST(ReportEnding, ABreakpointThatCriuHasLeftBehindIsNotTheTasksEnd) {
  agent::TaskRecord record;
  record.mutable_dump()->set_op(7);
  const agent::ShimExit exit = Trapped();
  EXPECT_EQ(ReportEnding(record, &exit, kVisible), v1::LOST);
}

TEST(ReportEnding, ABreakpointInTheCommandCountsOnlyIfCriuWasCutShort) {
  agent::TaskRecord record;
  record.mutable_dump()->set_op(7);
  agent::ShimExit exit;
  exit.set_code(128 + SIGTRAP);
  EXPECT_EQ(ReportEnding(record, &exit, kVisible), v1::EXITED);
  record.mutable_dump()->set_cut_short(true);
  EXPECT_EQ(ReportEnding(record, &exit, kVisible), v1::LOST);
  exit.set_code(1);
  EXPECT_EQ(ReportEnding(record, &exit, kVisible), v1::EXITED);
}

TEST(ReportEnding, ABreakpointOfATaskThatWasNeverDumpedIsItsOwn) {
  agent::TaskRecord record;
  const agent::ShimExit exit = Trapped();
  EXPECT_EQ(ReportEnding(record, &exit, kVisible), v1::EXITED);
}

v1::Save SaveWith(const char* marker) {
  v1::Save save;
  save.mutable_app()->set_marker(marker);
  return save;
}

TEST(NoteSave, AProgramThatWasNotToldEndsByItself) {
  agent::TaskRecord record;
  NoteSave(record, SaveWith(""), false);
  EXPECT_EQ(JudgeEnding(record, &agent::ShimExit::default_instance(), kVisible), Ending::kItsOwn);
}

TEST(NoteSave, OneThatWasToldMayEndByItsSaveLater) {
  agent::TaskRecord record;
  NoteTold(record, SaveWith(""));
  NoteSave(record, SaveWith(""), false);
  EXPECT_EQ(JudgeEnding(record, &agent::ShimExit::default_instance(), kVisible), Ending::kSaved);
}

TEST(NoteSave, OneThatWasToldBeforeMayStillEndByThatSave) {
  agent::TaskRecord record;
  NoteTold(record, SaveWith(""));
  NoteSave(record, SaveWith(""), false);
  NoteSave(record, SaveWith(""), false);
  EXPECT_EQ(JudgeEnding(record, &agent::ShimExit::default_instance(), kVisible), Ending::kSaved);
}

TEST(NoteSave, OneThatEndsWithoutItsMarkerEndsByItself) {
  agent::TaskRecord record;
  NoteTold(record, SaveWith("marker"));
  NoteSave(record, SaveWith("marker"), false);
  EXPECT_EQ(JudgeEnding(record, &agent::ShimExit::default_instance(), kVisible), Ending::kItsOwn);
}

TEST(NoteSave, OneWithItsMarkerHasSavedItselfHoweverItEnds) {
  agent::TaskRecord record;
  NoteTold(record, SaveWith("marker"));
  NoteSave(record, SaveWith("marker"), true);
  const agent::ShimExit exit = Killed();
  EXPECT_EQ(JudgeEnding(record, &exit, kVisible), Ending::kSaved);
}

}  // namespace
}  // namespace siding
