#include "cli/doctor/job_checks.h"

#include "cli/doctor/finding_matchers.h"
#include "cli/doctor/healthy_fixture.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class JobChecks : public testing::Test {
 protected:
  v1::Job& job() { return *answers_.jobs.mutable_jobs(0); }
  void Park(v1::Back::Kind kind, const std::string& why) {
    job().set_state("parked");
    job().set_reason(why);
    job().mutable_back()->mutable_because()->set_kind(kind);
  }
  v1::CheckpointInfo& AddCheckpoint(const std::string& state) {
    v1::CheckpointInfo& checkpoint = *answers_.checkpoints.add_checkpoints();
    checkpoint.set_id("1.2");
    checkpoint.set_job(1);
    checkpoint.set_tier(v1::SHARED);
    checkpoint.add_nodes("n1");
    checkpoint.set_state(state);
    return checkpoint;
  }

  Answers answers_ = HealthyAnswers();
};

TEST_F(JobChecks, AHealthyClusterHasNone) {
  for (const auto check : {JobsThatNeedAWord, JobsThatCannotGoOn, RestoresThatFail, BadCheckpoints})
    EXPECT_THAT(check(answers_), IsEmpty());
}

TEST_F(JobChecks, AJobThatMadeWayIsNone) {
  Park(v1::Back::WALLTIME, "made way for job 3");
  EXPECT_THAT(JobsThatNeedAWord(answers_), IsEmpty());
  EXPECT_THAT(RestoresThatFail(answers_), IsEmpty());
}

TEST_F(JobChecks, AJobWithNothingToRestoreWaitsForAWord) {
  Park(v1::Back::DECISION, "rank 0 is lost with node n2");
  EXPECT_THAT(JobsThatNeedAWord(answers_),
              ElementsAre(IsWarningOf("job 1", "rank 0 is lost with node n2", "`sidingctl restart 1`")));
}

TEST_F(JobChecks, AJobThatCannotBeRestoredSaysWhy) {
  Park(v1::Back::RETRY, "rank 0 on n1: /data/x is missing");
  EXPECT_THAT(RestoresThatFail(answers_),
              ElementsAre(IsFaultOf("job 1", "/data/x is missing", "`sidingctl resume 1`")));
}

TEST_F(JobChecks, AJobWhoseStartIsTriedAgainHasNoImage) {
  Park(v1::Back::RETRY, "no namespace can be made");
  job().set_state("pending");
  EXPECT_THAT(RestoresThatFail(answers_), IsEmpty());
}

TEST_F(JobChecks, AGoodCheckpointIsNone) {
  AddCheckpoint("good");
  EXPECT_THAT(BadCheckpoints(answers_), IsEmpty());
}

TEST_F(JobChecks, ADamagedCheckpointNamesWhereItLies) {
  AddCheckpoint("damaged").set_note("pages-1.img: wrong checksum");
  EXPECT_THAT(
      BadCheckpoints(answers_),
      ElementsAre(IsFaultOf("checkpoint 1.2", "(shared storage, dumped on n1): pages-1.img: wrong checksum",
                            "`sidingctl checkpoints delete 1.2`")));
}

TEST_F(JobChecks, ARefusedCheckpointMayBeTriedElsewhere) {
  Park(v1::Back::DECISION, "");
  AddCheckpoint("refused");
  EXPECT_THAT(BadCheckpoints(answers_),
              ElementsAre(IsWarningOf("checkpoint 1.2", "no restore takes it", "`sidingctl resume 1`")));
  EXPECT_THAT(BadCheckpoints(answers_).front().mend, Not(HasSubstr("delete")));
}

TEST_F(JobChecks, ItMayBeDeletedWhileItsJobRuns) {
  AddCheckpoint("refused");
  EXPECT_THAT(BadCheckpoints(answers_), ElementsAre(IsWarningOf("checkpoint 1.2", "no restore takes it",
                                                                "`sidingctl checkpoints delete 1.2`")));
}

TEST_F(JobChecks, OrWhereItsJobGoesOnFromAnother) {
  Park(v1::Back::FREE, "");
  AddCheckpoint("refused");
  AddCheckpoint("good").set_id("1.1");
  job().set_checkpoint("1.1");
  EXPECT_THAT(BadCheckpoints(answers_), ElementsAre(IsWarningOf("checkpoint 1.2", "no restore takes it",
                                                                "`sidingctl checkpoints delete 1.2`")));
}

TEST_F(JobChecks, OneOfAJobThatHasEndedIsNone) {
  AddCheckpoint("refused").set_job(2);
  EXPECT_THAT(BadCheckpoints(answers_), IsEmpty());
}

TEST_F(JobChecks, AJobWithARefusedCheckpointMayTryThatFirst) {
  Park(v1::Back::DECISION, "");
  AddCheckpoint("refused");
  EXPECT_THAT(JobsThatNeedAWord(answers_).front().mend, StartsWith("`sidingctl resume 1`"));
}

TEST_F(JobChecks, AJobWhoseTasksAreNotSeenGoneNamesTheNode) {
  Park(v1::Back::TASKS_LEFT, "rank 0 is lost");
  job().mutable_back()->mutable_because()->set_node("n2");
  EXPECT_THAT(JobsThatCannotGoOn(answers_),
              ElementsAre(IsWarningOf("job 1", "seen to be gone from node n2: rank 0 is lost",
                                      "`sidingctl lost n2`")));
}

TEST_F(JobChecks, AJobThatIsTooLargeIsNamed) {
  job().set_state("pending");
  job().mutable_back()->mutable_because()->set_kind(v1::Back::TOO_FEW);
  EXPECT_THAT(JobsThatCannotGoOn(answers_), ElementsAre(IsWarningOf("job 1", "fewer nodes", "add some")));
}

// The forecast has not come to it.
TEST_F(JobChecks, AJobFarBackInTheQueueIsNone) {
  job().set_state("pending");
  job().mutable_back()->mutable_because()->set_kind(v1::Back::TOO_MUCH);
  EXPECT_THAT(JobsThatCannotGoOn(answers_), IsEmpty());
}

}  // namespace
}  // namespace siding::cli
