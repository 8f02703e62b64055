#include "model/lifecycle.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace siding {
namespace {

std::string Cells(JobState state) {
  std::string out;
  for (int e = 0; e < kJobEventCount; ++e) {
    const auto event = static_cast<JobEvent>(e);
    if (auto next = Next(state, event)) {
      out += std::string(ToString(event)) + ">" + std::string(ToString(*next)) + " ";
    }
  }
  return out;
}

// Every cell of the table, spelled out a second time: a change of the table must be meant.
TEST(Lifecycle, Pending) { EXPECT_EQ(Cells(JobState::kPending), "place>starting cancelled>cancelled "); }
TEST(Lifecycle, Starting) {
  EXPECT_EQ(Cells(JobState::kStarting),
            "order-kill>killing started>running start-failed>failed restart-needed>pending succeeded>done "
            "failed>failed ");
}
TEST(Lifecycle, Running) {
  EXPECT_EQ(Cells(JobState::kRunning),
            "order-suspend>suspending order-resume>resuming order-dump>dumping order-save>saving "
            "order-kill>killing "
            "restore-failed>parked restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Suspending) {
  EXPECT_EQ(Cells(JobState::kSuspending),
            "order-kill>killing frozen>suspended freeze-failed>resuming restore-failed>parked "
            "restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Suspended) {
  EXPECT_EQ(Cells(JobState::kSuspended),
            "order-resume>resuming order-dump>dumping order-kill>killing restore-failed>parked "
            "restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Resuming) {
  EXPECT_EQ(Cells(JobState::kResuming),
            "order-kill>killing thawed>running stays-frozen>suspended restore-failed>parked "
            "restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Dumping) {
  EXPECT_EQ(Cells(JobState::kDumping),
            "commit>committing order-kill>killing dump-failed>resuming stays-frozen>suspended "
            "restore-failed>parked restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Committing) {
  EXPECT_EQ(
      Cells(JobState::kCommitting),
      "order-kill>killing dump-failed>resuming stays-frozen>suspended continued>running released>parked "
      "restore-failed>parked "
      "restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Saving) {
  EXPECT_EQ(Cells(JobState::kSaving),
            "order-kill>killing continued>running released>parked save-failed>running restore-failed>parked "
            "restart-needed>pending succeeded>done failed>failed ");
}
TEST(Lifecycle, Parked) {
  EXPECT_EQ(Cells(JobState::kParked),
            "place>restoring restore-failed>parked restart-needed>pending cancelled>cancelled ");
}
TEST(Lifecycle, Restoring) {
  EXPECT_EQ(Cells(JobState::kRestoring),
            "order-kill>killing restored>running restore-failed>parked restart-needed>pending "
            "succeeded>done failed>failed ");
}
TEST(Lifecycle, Killing) {
  EXPECT_EQ(
      Cells(JobState::kKilling),
      "thawed>running released>parked requeued>pending cancelled>cancelled succeeded>done failed>failed "
      "start-goes-on>starting restore-goes-on>restoring ");
}
TEST(Lifecycle, NothingLeavesATerminalState) {
  for (JobState s : {JobState::kDone, JobState::kFailed, JobState::kCancelled}) {
    EXPECT_EQ(Cells(s), "");
    EXPECT_TRUE(IsTerminal(s));
  }
}

TEST(Lifecycle, EveryStateIsReachableFromPending) {
  std::set<JobState> seen = {JobState::kPending};
  for (size_t before = 0; before != seen.size();) {
    before = seen.size();
    for (JobState s : std::set<JobState>(seen)) {
      for (int e = 0; e < kJobEventCount; ++e) {
        if (auto next = Next(s, static_cast<JobEvent>(e))) seen.insert(*next);
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kJobStateCount));
}

TEST(Lifecycle, NamesReadBack) {
  for (int i = 0; i < kJobStateCount; ++i) {
    EXPECT_EQ(ParseJobState(ToString(static_cast<JobState>(i))), static_cast<JobState>(i));
  }
  for (int i = 0; i < kJobEventCount; ++i) {
    EXPECT_EQ(ParseJobEvent(ToString(static_cast<JobEvent>(i))), static_cast<JobEvent>(i));
  }
  EXPECT_FALSE(ParseJobState("no-such-state"));
}

TEST(CheckpointState, NamesAreReadBack) {
  for (int i = 0; i < kCheckpointStateCount; ++i) {
    const auto state = static_cast<CheckpointState>(i);
    EXPECT_EQ(ParseCheckpointState(ToString(state)), state);
  }
  EXPECT_EQ(ParseCheckpointState("fine"), std::nullopt);
}

}  // namespace
}  // namespace siding
