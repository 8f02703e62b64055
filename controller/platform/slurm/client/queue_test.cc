#include "controller/platform/slurm/client/queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

TEST(ParseLimit, KnowsSlurmsSpellings) {
  EXPECT_EQ(*ParseLimit("10:00"), std::chrono::minutes(10));
  EXPECT_EQ(*ParseLimit("1:02:03"), std::chrono::seconds(3723));
  EXPECT_EQ(*ParseLimit("365-00:00:00"), std::chrono::hours(365 * 24));
  EXPECT_EQ(*ParseLimit("1-2"), std::chrono::hours(26));
  EXPECT_EQ(*ParseLimit("UNLIMITED"), std::nullopt);
  for (const char* text : {"", "10", "soon", "1:2:3:4", "1-", "-1:00"})
    EXPECT_FALSE(ParseLimit(text).ok()) << text;
}

TEST(PhaseOf, KnowsSlurmsWords) {
  EXPECT_EQ(PhaseOf("SIGNALING"), JobPhase::kRunning);
  EXPECT_EQ(PhaseOf("REQUEUE_HOLD"), JobPhase::kPending);
  EXPECT_EQ(PhaseOf("COMPLETING"), JobPhase::kEnding);
  EXPECT_EQ(PhaseOf("DREAMING"), JobPhase::kUnknown);
}

TEST(StatusOfMessage, HasACodeAndStaysReadable) {
  const absl::Status status = StatusOfMessage("Invalid job id specified for job 77");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "Invalid job id specified for job 77");
  EXPECT_TRUE(absl::IsUnavailable(
      StatusOfMessage("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")));
  EXPECT_TRUE(absl::IsInternal(StatusOfMessage("Something unheard of")));
}

TEST(GpusOf, CountsWhateverTheType) {
  EXPECT_EQ(GpusOf("N/A"), 0);
  EXPECT_EQ(GpusOf("(null)"), 0);
  EXPECT_EQ(GpusOf("gpu"), 1);
  EXPECT_EQ(GpusOf("gpu:2"), 2);
  EXPECT_EQ(GpusOf("gres:gpu:h200"), 1);
  EXPECT_EQ(GpusOf("gres:gpu:h200:4,gres:nvme:2"), 4);
  EXPECT_EQ(GpusOf("gres/gpu:h200=4,gres/license:9"), 4);
  EXPECT_EQ(GpusOf("gpu:h200:2(IDX:0,3)"), 2);
  EXPECT_EQ(GpusOf("gpu:0"), 0);
  EXPECT_EQ(GpusOf("gpu:a100:1(S:0),gpu:h200:2(S:0-1)"), 3);
}

TEST(GpusOf, SumsStayInRange) {
  EXPECT_EQ(GpusOf("gpu:a:2147483647,gpu:b:2147483647"), 2'000'000);
  EXPECT_EQ(GpusOf("gpu:-5"), 1);
}

TEST(ParseLimit, IsNoLongerThanCanBeReckonedWith) {
  EXPECT_EQ(**ParseLimit("1000000-00:00:00"), kLongestDuration);
  EXPECT_FALSE(ParseLimit("9223372036854775807-00:00:00").ok());
  EXPECT_FALSE(ParseLimit("9223372036854775807:00").ok());
}

TEST(Complete, MemoryPerCpuStaysInRange) {
  QueueJob job;
  job.cpus = 1'000'000'000;
  Complete(job, {0, Bytes{int64_t{1} << 60}});
  EXPECT_LE(job.memory_per_node.value, int64_t{1} << 60);
  EXPECT_GT(job.memory_per_node.value, 0);
}

}  // namespace
}  // namespace siding::slurm
