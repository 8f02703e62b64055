// Jobs that ask to be told before they are frozen or dumped.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class NoticeTest : public EngineTest {
 protected:
  static constexpr int64_t kNoticeUs = 20'000'000;
  JobId Victim(MethodSet methods, Duration interval = Duration(0)) {
    AddNodes({"a"});
    JobSpec spec = Batch(1, methods);
    spec.notice = Duration(kNoticeUs);
    spec.checkpoint_interval = interval;
    const JobId victim = Submit(spec);
    Settle();
    EXPECT_EQ(State(victim), JobState::kRunning);
    return victim;
  }
  v1::Dump LastDump() { return cluster_.Last(v1::ToAgent::kDump).dump(); }
  v1::Suspend LastSuspend() { return cluster_.Last(v1::ToAgent::kSuspend).suspend(); }
};

TEST_F(NoticeTest, IsGivenBeforeADumpForARequest) {
  Victim({Method::kCheckpoint});
  Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(LastDump().notice_us(), kNoticeUs);
}

TEST_F(NoticeTest, IsGivenBeforeAFreezeForARequest) {
  Victim({Method::kSuspend});
  Submit(OnDemand(1), kBob);
  Settle();
  EXPECT_EQ(LastSuspend().notice_us(), kNoticeUs);
}

TEST_F(NoticeTest, IsNotGivenBeforeACheckpointOnSchedule) {
  const JobId job = Victim({Method::kCheckpoint}, 10s);
  Settle(20);
  ASSERT_GE(Job(job).checkpoint_count, 1);
  EXPECT_EQ(LastDump().notice_us(), 0);
}

TEST_F(NoticeTest, IsNotGivenBeforeACheckpointThatIsAskedFor) {
  const JobId job = Victim({Method::kCheckpoint});
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(LastDump().notice_us(), 0);
}

TEST_F(NoticeTest, IsGivenToAJobThatIsVacated) {
  const JobId job = Victim({Method::kCheckpoint});
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(LastDump().notice_us(), kNoticeUs);
}

TEST_F(NoticeTest, IsGivenToAJobThatIsMigrated) {
  AddNodes({"b"});
  const JobId job = Victim({Method::kCheckpoint});
  ASSERT_TRUE(engine_->Migrate(kAda, job, {}).ok());
  Settle();
  EXPECT_EQ(LastDump().notice_us(), kNoticeUs);
}

TEST_F(NoticeTest, IsGivenToAJobThatIsSuspended) {
  const JobId job = Victim({Method::kSuspend});
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  EXPECT_EQ(LastSuspend().notice_us(), kNoticeUs);
}

TEST_F(NoticeTest, IsNotGivenToAJobThatIsFrozen) {
  const JobId job = Victim({Method::kSuspend, Method::kCheckpoint});
  ASSERT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(LastDump().notice_us(), 0);
}

TEST_F(NoticeTest, IsInTheTimeThatADumpIsPredictedToTake) {
  const JobId job = Victim({Method::kCheckpoint});
  cluster_.slow_dump.insert("a");
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  EXPECT_GE(Job(job).current.predicted - clock_.Now(), 20s);
}

TEST_F(NoticeTest, IsInThePatienceWithADump) {
  const JobId job = Victim({Method::kCheckpoint});
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle(1);
  // Three times what is predicted, and a minute.
  EXPECT_GE(Duration(LastDump().patience_us()), 120s);
}

TEST_F(NoticeTest, ThatDoesNotFitTheDeadlineIsARefusal) {
  Victim({Method::kSuspend, Method::kCheckpoint});
  const auto refused = engine_->Submit(kBob, OnDemand(1, 15s));
  EXPECT_FALSE(refused.ok());
}

TEST_F(NoticeTest, EndsWithTheRequest) {
  cluster_.long_notice.insert("a");
  const JobId victim = Victim({Method::kSuspend});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(victim), JobState::kSuspending);
  ASSERT_TRUE(engine_->Kill(kBob, express).ok());
  Settle();
  EXPECT_EQ(State(victim), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
}

TEST_F(NoticeTest, OfAnEarlierOrderEndsBeforeTheNext) {
  cluster_.long_notice.insert("a");
  const JobId victim = Victim({Method::kSuspend, Method::kCheckpoint});
  const JobId express = Submit(OnDemand(1), kBob);
  Settle();
  ASSERT_EQ(State(victim), JobState::kSuspending);
  ASSERT_TRUE(engine_->Kill(kBob, express).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, victim, Tier::kShared).ok());
  Settle();
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kAbort), 1);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kCommit), 1);
}

TEST_F(NoticeTest, IsRememberedOverARestart) {
  cluster_.slow_dump.insert("a");
  const JobId victim = Victim({Method::kCheckpoint});
  Submit(OnDemand(1), kBob);
  Settle();
  StartController();
  EXPECT_EQ(Job(victim).current.notice, Duration(kNoticeUs));
}

}  // namespace
}  // namespace siding
