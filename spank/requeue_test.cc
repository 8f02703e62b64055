#include "spank/requeue.h"

#include "gtest/gtest.h"

namespace siding::spank {
namespace {

TEST(JudgeRequeue, ASuccessIsOne) { EXPECT_EQ(JudgeRequeue(true, ""), Requeue::kDone); }

TEST(JudgeRequeue, AnotherTaskMayHaveBeenFaster) {
  EXPECT_EQ(JudgeRequeue(false, "Job is pending execution for job 42\n"), Requeue::kDone);
}

TEST(JudgeRequeue, AJobThatMustNotBeRequeuedNeverIs) {
  EXPECT_EQ(JudgeRequeue(false, "Requested operation is presently disabled for job 42\n"), Requeue::kRefused);
}

TEST(JudgeRequeue, ASlurmThatDoesNotAnswerMayAnswerLater) {
  EXPECT_EQ(JudgeRequeue(false, "Unable to contact slurm controller (connect failure) for job 42\n"),
            Requeue::kFailed);
}

}  // namespace
}  // namespace siding::spank
