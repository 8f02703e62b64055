// Which checkpoints are deleted, and that a job's last usable one never is.
#include "controller/engine/engine_fixture.h"
#include "controller/engine/state/predicates.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KeptCheckpointsTest : public EngineTest {
 protected:
  // A running job with that many checkpoints, of which `keep` are kept.
  JobId JobWithCheckpoints(int count, int keep) {
    policy_.keep_checkpoints = keep;
    StartController();
    AddNodes({"a"});
    const JobId job = Submit(Batch());
    Settle();
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
      Settle();
    }
    return job;
  }
  std::vector<std::string> Good(JobId job) {
    std::vector<std::string> ids;
    for (const CheckpointId& id : Job(job).checkpoints) ids.push_back(id.value());
    return ids;
  }
  // Of one that is gone nothing may be remembered.
  std::string StateOf(const std::string& id) {
    std::string state = "gone";
    engine_->Read([&](const ClusterState& s) {
      const auto found = s.checkpoints.find(CheckpointId(id));
      if (found != s.checkpoints.end()) state = ToString(found->second.state);
    });
    return state;
  }
  Bytes ImageBytes(const std::string& id) {
    Bytes bytes;
    engine_->Read([&](const ClusterState& s) { bytes = s.checkpoints.at(CheckpointId(id)).bytes; });
    return bytes;
  }
  std::string DigestOf(const std::string& id) {
    std::string digest;
    engine_->Read([&](const ClusterState& s) { digest = s.checkpoints.at(CheckpointId(id)).DigestOf(0); });
    return digest;
  }
  int SaidOf(JobId job, const std::string& text) {
    int said = 0;
    for (const Event& event : engine_->EventsAfter(0, 10000, Duration(0)))
      said += event.job == job && Describe(event).find(text) != std::string::npos;
    return said;
  }
  absl::Status Delete(const std::string& id) { return engine_->DeleteCheckpoint(kAda, CheckpointId(id)); }
};

TEST_F(KeptCheckpointsTest, TheNewestStaysHoweverFewAreKept) {
  const JobId job = JobWithCheckpoints(3, 1);
  EXPECT_THAT(Good(job), ElementsAre("1.3"));
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 2);
}

TEST_F(KeptCheckpointsTest, OfThoseThatAreGoneNothingIsRemembered) {
  const JobId job = JobWithCheckpoints(5, 1);
  engine_->Read([&](const ClusterState& s) {
    // But for the last that is gone.
    EXPECT_THAT(s.jobs.at(job).ordered, ElementsAre(CheckpointId("1.4"), CheckpointId("1.5")));
    EXPECT_EQ(s.checkpoints.size(), 2u);
    EXPECT_THAT(s.unwanted, IsEmpty());
  });
}

TEST_F(KeptCheckpointsTest, AUsersImagesHaveAQuota) {
  const JobId job = JobWithCheckpoints(3, 10);
  const Bytes each = ImageBytes("1.1");
  ASSERT_GT(each.value, 0);
  policy_.max_image_bytes_per_user = Bytes{3 * each.value};
  engine_->SetPolicy(policy_);
  // The oldest makes room.
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_THAT(Good(job), ElementsAre("1.2", "1.3", "1.4"));
  policy_.max_image_bytes_per_user = Bytes{each.value + each.value / 2};
  engine_->SetPolicy(policy_);
  const absl::Status refused = engine_->Checkpoint(kAda, job, Tier::kShared).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("(max_image_bytes_per_user)"));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("; all that can be deleted is not enough"));
  // Nothing was given up for nothing.
  EXPECT_THAT(Good(job), ElementsAre("1.2", "1.3", "1.4"));
  EXPECT_EQ(engine_->Vacate(kAda, job, Tier::kShared).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_TRUE(engine_->Vacate(kRoot, job, Tier::kShared).ok());
}

TEST_F(KeptCheckpointsTest, AnImageThatIsBeingMadeCounts) {
  const JobId job = JobWithCheckpoints(1, 10);
  AddNodes({"b"});
  const JobId other = Submit(Batch());
  Settle();
  policy_.max_image_bytes_per_user = Bytes{2 * ImageBytes("1.1").value};
  engine_->SetPolicy(policy_);
  ASSERT_TRUE(engine_->Checkpoint(kAda, other, Tier::kShared).ok());
  EXPECT_EQ(engine_->Checkpoint(kAda, job, Tier::kShared).status().code(),
            absl::StatusCode::kResourceExhausted);
  Settle();
  // Of another user nothing is counted.
  EXPECT_EQ(State(other), JobState::kRunning);
}

TEST_F(KeptCheckpointsTest, OnScheduleItIsLeftOutAndSaidOnce) {
  policy_.max_image_bytes_per_user = Bytes{1};
  StartController();
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.checkpoint_interval = std::chrono::seconds(10);
  const JobId job = Submit(spec);
  Settle(100);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDump), 0);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(SaidOf(job, "max_image_bytes_per_user"), 1);
}

TEST_F(KeptCheckpointsTest, APreemptionIsNeverRefusedForTheQuota) {
  policy_.max_image_bytes_per_user = Bytes{1};
  StartController();
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle(600);
  Submit(OnDemand(1, std::chrono::seconds(60)));
  Settle(60);
  EXPECT_FALSE(Good(job).empty());
}

TEST_F(KeptCheckpointsTest, AnOlderOneStaysWhenTheNewestIsFoundDamaged) {
  const JobId job = JobWithCheckpoints(3, 2);
  cluster_.FindDamaged("a", "1.3");
  Settle();
  EXPECT_EQ(StateOf("1.3"), "damaged");
  EXPECT_THAT(Good(job), ElementsAre("1.2"));
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kDelete).delete_().checkpoint(), "1.1");
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 1);
}

TEST_F(KeptCheckpointsTest, AQuotaAdvisesDeletionsThatAreNotRefused) {
  const JobId job = JobWithCheckpoints(1, 1);
  AddNodes({"b"});
  const JobId failed = Submit(Batch());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, failed, Tier::kShared).ok());
  Settle();
  cluster_.Exit(failed, 0, 1);
  Settle();
  policy_.max_image_bytes_per_user = ImageBytes("1.1") + ImageBytes("1.1");
  engine_->SetPolicy(policy_);
  const auto save = [&] { return engine_->Checkpoint(kAda, job, Tier::kShared).status(); };
  EXPECT_THAT(std::string(save().message()),
              testing::HasSubstr("; sidingctl checkpoints delete frees 1.0 MiB: 2.1"));
  EXPECT_TRUE(Delete("2.1").ok());
  EXPECT_TRUE(save().ok());
}

TEST_F(KeptCheckpointsTest, OneThatIsFoundDamagedWhenItIsVerifiedDoesNotCountAndCanBeDeleted) {
  const JobId job = JobWithCheckpoints(1, 1);
  cluster_.damaged = {"1.1"};
  ASSERT_TRUE(engine_->VerifyCheckpoint(kAda, CheckpointId("1.1"), [](const auto&) {}).ok());
  Settle();
  EXPECT_EQ(StateOf("1.1"), "damaged");
  EXPECT_THAT(Good(job), IsEmpty());
  EXPECT_TRUE(Delete("1.1").ok());
}

TEST_F(KeptCheckpointsTest, OneThatCouldNotBeReadIsNotDamaged) {
  JobWithCheckpoints(1, 1);
  ASSERT_TRUE(engine_->VerifyCheckpoint(kAda, CheckpointId("1.1"), [](const auto&) {}).ok());
  cluster_.Disconnect("a");
  EXPECT_EQ(StateOf("1.1"), "good");
}

TEST_F(KeptCheckpointsTest, ADeletionThatFailedIsTriedAgainInAMoment) {
  cluster_.fail_delete = {"a"};
  JobWithCheckpoints(2, 1);
  ASSERT_EQ(StateOf("1.1"), "deleted");
  cluster_.fail_delete.clear();
  Settle(4);
  EXPECT_EQ(StateOf("1.1"), "gone");
}

TEST_F(KeptCheckpointsTest, ADeletionThatFailsForLongIsTriedOnceAMinute) {
  cluster_.fail_delete = {"a"};
  JobWithCheckpoints(2, 1);
  Settle(600);
  const int tried = cluster_.Count(v1::ToAgent::kDelete);
  Settle(600);
  EXPECT_NEAR(cluster_.Count(v1::ToAgent::kDelete) - tried, 10, 1);
}

TEST_F(KeptCheckpointsTest, ADamagedOneDoesNotPushAnOlderOneOut) {
  const JobId job = JobWithCheckpoints(2, 2);
  cluster_.FindDamaged("a", "1.2");
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kShared).ok());
  Settle();
  EXPECT_THAT(Good(job), ElementsAre("1.1", "1.3"));
}

TEST_F(KeptCheckpointsTest, TheJobGoesOnFromTheOlderOne) {
  const JobId job = JobWithCheckpoints(2, 2);
  cluster_.FindDamaged("a", "1.2");
  cluster_.Vanish(job);
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), "1.1");
}

TEST_F(KeptCheckpointsTest, ARestoreSaysWhichManifestItsImageMustHave) {
  const JobId job = JobWithCheckpoints(2, 2);
  const std::string first = DigestOf("1.1");
  EXPECT_EQ(first.size(), 64u);
  EXPECT_NE(first, DigestOf("1.2"));
  cluster_.FindDamaged("a", "1.2");
  cluster_.Vanish(job);
  Settle();
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().image_digest(), first);
}

TEST_F(KeptCheckpointsTest, AfterARestartItIsStillKnown) {
  JobWithCheckpoints(1, 1);
  const std::string digest = DigestOf("1.1");
  StartController();
  EXPECT_EQ(DigestOf("1.1"), digest);
}

TEST_F(KeptCheckpointsTest, ForHowLongItStoppedTheJobIsKept) {
  cluster_.stopped = 40ms;
  const JobId job = JobWithCheckpoints(1, 1);
  const auto stopped = [&] {
    Duration stopped{0};
    engine_->Read([&](const ClusterState& s) { stopped = s.checkpoints.at(CheckpointId("1.1")).stopped; });
    return stopped;
  };
  EXPECT_EQ(stopped(), 40ms);
  EXPECT_EQ(SaidOf(job, "the job continued, it had stopped for " + FormatDuration(40ms)), 1);
  StartController();
  EXPECT_EQ(stopped(), 40ms);
}

TEST_F(KeptCheckpointsTest, HowMuchOfItIsNewIsKept) {
  cluster_.new_bytes = Bytes{4096};
  const JobId job = JobWithCheckpoints(1, 1);
  const auto fresh = [&] {
    Bytes bytes;
    engine_->Read([&](const ClusterState& s) { bytes = s.checkpoints.at(CheckpointId("1.1")).new_bytes; });
    return bytes;
  };
  EXPECT_EQ(fresh(), Bytes{4096});
  EXPECT_EQ(SaidOf(job, FormatBytes(ImageBytes("1.1")) + ", 4.0 KiB of it new"), 1);
  StartController();
  EXPECT_EQ(fresh(), Bytes{4096});
}

TEST_F(KeptCheckpointsTest, OfOneThatIsNewAsAWholeNothingIsSaid) {
  const JobId job = JobWithCheckpoints(1, 1);
  EXPECT_EQ(SaidOf(job, "every rank dumped, " + FormatBytes(ImageBytes("1.1"))), 1);
  EXPECT_EQ(SaidOf(job, "of it new"), 0);
}

TEST_F(KeptCheckpointsTest, AParkedJobWhoseOnlyImageIsDamagedStartsFromTheBeginning) {
  const JobId job = JobWithCheckpoints(0, 2);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kShared).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  cluster_.FindDamaged("a", "1.1");
  EXPECT_EQ(State(job), JobState::kPending);
}

TEST_F(KeptCheckpointsTest, ADamagedOneIsCountedOnce) {
  const JobId job = JobWithCheckpoints(1, 2);
  cluster_.FindDamaged("a", "1.1");
  cluster_.FindDamaged("a", "1.1");
  EXPECT_EQ(Job(job).damaged_checkpoints, 1);
}

TEST_F(KeptCheckpointsTest, ANodeSpeaksOfItsOwnImagesOnly) {
  const JobId job = JobWithCheckpoints(1, 2);
  AddNodes({"b"});
  cluster_.FindDamaged("b", "1.1");
  cluster_.FindDamaged("a", "1.1", 1);
  EXPECT_THAT(Good(job), ElementsAre("1.1"));
}

TEST_F(KeptCheckpointsTest, TheLastOneOfARunningJobIsNotDeleted) {
  const JobId job = JobWithCheckpoints(1, 2);
  const absl::Status refused = Delete("1.1");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is the last good one of job 1, which is running"));
  EXPECT_THAT(Good(job), ElementsAre("1.1"));
}

TEST_F(KeptCheckpointsTest, NorWhenTheOthersAreDamaged) {
  const JobId job = JobWithCheckpoints(2, 2);
  cluster_.FindDamaged("a", "1.2");
  EXPECT_FALSE(Delete("1.1").ok());
  EXPECT_TRUE(Delete("1.2").ok());
  EXPECT_THAT(Good(job), ElementsAre("1.1"));
}

TEST_F(KeptCheckpointsTest, OneOfSeveralIsDeletedWhenItIsAskedFor) {
  const JobId job = JobWithCheckpoints(2, 2);
  EXPECT_TRUE(Delete("1.2").ok());
  EXPECT_THAT(Good(job), ElementsAre("1.1"));
  EXPECT_FALSE(Delete("1.1").ok());
}

TEST_F(KeptCheckpointsTest, AnImageWhoseKeyIsNotThereIsTriedUntilItIs) {
  const JobId job = JobWithCheckpoints(1, 2);
  cluster_.no_key = true;
  cluster_.Vanish(job);
  Settle(100);
  EXPECT_GT(cluster_.Count(v1::ToAgent::kRestore), 3);
  EXPECT_THAT(Good(job), ElementsAre("1.1"));
  cluster_.no_key = false;
  Settle(20);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 1) << "it has not started from the beginning";
}

TEST_F(KeptCheckpointsTest, AllGoWhenTheJobIsOver) {
  const JobId job = JobWithCheckpoints(2, 2);
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle();
  EXPECT_THAT(Good(job), IsEmpty());
  EXPECT_EQ(StateOf("1.1"), "gone");
}

// If the order to end it is withdrawn it is restored from that image after all.
TEST(ImagesInUse, AlsoWhileTheEndOfARestoreIsOrdered) {
  JobRecord job;
  job.state = JobState::kRestoring;
  job.current.checkpoint = CheckpointId("1.1");
  EXPECT_TRUE(IsRestoringFrom(job, CheckpointId("1.1")));
  job.beginning = JobRecord::Beginning{job.state, job.current};
  job.state = JobState::kKilling;
  job.current = JobMoved();
  EXPECT_TRUE(IsRestoringFrom(job, CheckpointId("1.1")));
  EXPECT_FALSE(IsRestoringFrom(job, CheckpointId("1.2")));
}

}  // namespace
}  // namespace siding
