#include "controller/platform/slurm/queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// As Slurm 22.05 prints them.
constexpr char kSuspended[] =
    "2|2|N/A|0|SUSPENDED|batch|(null)|(null)|2|2|N/"
    "A|node[1-2]||0|1795251904|1795251906|1795252506|10:00|None|a b|c\n";
constexpr char kPendingElement[] =
    "3|3|2|65534|PENDING|batch|normal|physics|1|4|gres:gpu:h200:2||node3|4294901757|1795251904|N/A|N/"
    "A|UNLIMITED|"
    "JobArrayTaskLimit|wrap\n";

QueueJob Only(const std::string& text) {
  const auto jobs = ParseQueue(text);
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->size(), 1u);
  return jobs->front();
}

TEST(ParseQueue, AJobWithNodes) {
  const QueueJob job = Only(kSuspended);
  EXPECT_EQ(job.id, 2);
  EXPECT_EQ(job.array, 2);
  EXPECT_EQ(job.element, std::nullopt);
  EXPECT_EQ(job.uid, 0u);
  EXPECT_EQ(job.phase, JobPhase::kSuspended);
  EXPECT_EQ(job.partition, "batch");
  EXPECT_EQ(job.qos, "");
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.cpus, 2);
  EXPECT_EQ(job.gpus_per_node, 0);
  EXPECT_THAT(job.on, ElementsAre(NodeId("node1"), NodeId("node2")));
  EXPECT_EQ(ToMicros(*job.submitted), 1795251904000000);
  EXPECT_EQ(*job.ends - *job.started, *job.limit);
  EXPECT_EQ(job.reason, "");
}

TEST(ParseQueue, ANameMayHoldTheSeparator) { EXPECT_EQ(Only(kSuspended).name, "a b|c"); }

TEST(ParseQueue, AnElementThatWaits) {
  const QueueJob job = Only(kPendingElement);
  EXPECT_EQ(job.array, 3);
  EXPECT_EQ(job.element, 2);
  EXPECT_EQ(job.uid, 65534u);
  EXPECT_EQ(job.phase, JobPhase::kPending);
  EXPECT_EQ(job.account, "physics");
  EXPECT_EQ(job.gpus_per_node, 2);
  EXPECT_THAT(job.on, IsEmpty());
  EXPECT_THAT(job.only_on, ElementsAre(NodeId("node3")));
  EXPECT_EQ(job.priority, 4294901757);
  EXPECT_EQ(job.started, std::nullopt);
  EXPECT_EQ(job.limit, std::nullopt);
  EXPECT_EQ(job.reason, "JobArrayTaskLimit");
}

TEST(ParseQueue, AnEmptyQueueIsNoError) { EXPECT_THAT(*ParseQueue(""), IsEmpty()); }

TEST(ParseQueue, AStateOfALaterSlurmIsKept) {
  std::string text = kPendingElement;
  text.replace(text.find("PENDING"), 7, "DREAMING");
  EXPECT_EQ(Only(text).phase, JobPhase::kUnknown);
  EXPECT_EQ(Only(text).state, "DREAMING");
}

TEST(ParseQueue, ErrorsNameTheLine) {
  for (const std::string bad : {"slurm_load_jobs error: Unable to contact", "x|3|2"}) {
    const auto jobs = ParseQueue(kSuspended + bad + "\n");
    EXPECT_TRUE(absl::IsInvalidArgument(jobs.status()));
    EXPECT_NE(std::string(jobs.status().message()).find("line 2"), std::string::npos) << jobs.status();
  }
}

TEST(ParseLimit, KnowsSlurmsSpellings) {
  EXPECT_EQ(*ParseLimit("10:00"), std::chrono::minutes(10));
  EXPECT_EQ(*ParseLimit("1:02:03"), std::chrono::seconds(3723));
  EXPECT_EQ(*ParseLimit("365-00:00:00"), std::chrono::hours(365 * 24));
  EXPECT_EQ(*ParseLimit("1-2"), std::chrono::hours(26));
  EXPECT_EQ(*ParseLimit("UNLIMITED"), std::nullopt);
  for (const char* text : {"", "10", "soon", "1:2:3:4", "1-", "-1:00"})
    EXPECT_FALSE(ParseLimit(text).ok()) << text;
}

TEST(GpusOf, CountsWhateverTheType) {
  EXPECT_EQ(GpusOf("N/A"), 0);
  EXPECT_EQ(GpusOf("(null)"), 0);
  EXPECT_EQ(GpusOf("gpu"), 1);
  EXPECT_EQ(GpusOf("gpu:2"), 2);
  EXPECT_EQ(GpusOf("gres:gpu:h200"), 1);
  EXPECT_EQ(GpusOf("gres:gpu:h200:4,gres:nvme:2"), 4);
  EXPECT_EQ(GpusOf("gpu:a100:1(S:0),gpu:h200:2(S:0-1)"), 3);
}

}  // namespace
}  // namespace siding::slurm
