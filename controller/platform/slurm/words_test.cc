#include "controller/platform/slurm/words.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

std::string Expanded(const std::string& hosts) {
  const auto nodes = ExpandHosts(hosts);
  return nodes.ok() ? JoinHosts(*nodes) : std::string(nodes.status().message());
}

TEST(Hosts, NamesAndRanges) { EXPECT_EQ(Expanded("login,node[1-3,07]"), "login,node1,node2,node3,node07"); }
TEST(Hosts, LeadingZerosStay) { EXPECT_EQ(Expanded("n[098-101]"), "n098,n099,n100,n101"); }
TEST(Hosts, SeveralBracketsInAName) { EXPECT_EQ(Expanded("r[1-2]n[3-4]x"), "r1n3x,r1n4x,r2n3x,r2n4x"); }
TEST(Hosts, NoneInSlurmsWords) { EXPECT_EQ(Expanded("(null)") + Expanded("") + Expanded("None"), ""); }
TEST(Hosts, AWrongListIsAnError) {
  for (const char* wrong : {"n[1-3", "n1]", "n[3-1]", "n[a]", "n[]", "a,,b", "n[1-2-3]"}) {
    EXPECT_FALSE(ExpandHosts(wrong).ok()) << wrong;
  }
}
TEST(Hosts, ATooLargeListIsAnError) {
  EXPECT_FALSE(ExpandHosts("n[0-4294967295]").ok());
  EXPECT_FALSE(ExpandHosts("r[1-1000]n[1-1000]").ok());
}

TEST(Gpus, AsJobsAskForThem) {
  EXPECT_EQ(CountGpus("gres:gpu:2"), 2);
  EXPECT_EQ(CountGpus("gres:gpu"), 1);
  EXPECT_EQ(CountGpus("gres:gpu:a100"), 1);
  EXPECT_EQ(CountGpus("gres/gpu:a100=4,gres/license:9"), 4);
}
TEST(Gpus, AsNodesHaveThem) {
  EXPECT_EQ(CountGpus("gpu:a100:2(S:0,1),gpu:t4:1(S:1),craynetwork:4"), 3);
  EXPECT_EQ(CountGpus("gpu:a100:2(IDX:0,3)"), 2);
  EXPECT_EQ(CountGpus("gpu:0"), 0);
  EXPECT_EQ(CountGpus("(null)"), 0);
}

TEST(JobStates, AJobWithAnUnknownOneStillHasItsNodes) {
  EXPECT_EQ(JobStateOf("SIGNALING"), SlurmJobState::kRunning);
  EXPECT_EQ(JobStateOf("SOMETHING_NEW"), SlurmJobState::kRunning);
}
TEST(JobStates, ARequeuedOneWaits) {
  EXPECT_EQ(JobStateOf("REQUEUE_HOLD"), SlurmJobState::kPending);
  EXPECT_EQ(JobStateOf("COMPLETING"), SlurmJobState::kCompleting);
}

TEST(Messages, BecomeCodesAndStayReadable) {
  const absl::Status status = StatusOfMessage("Invalid job id specified for job 77");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "Invalid job id specified for job 77");
  EXPECT_TRUE(absl::IsUnavailable(
      StatusOfMessage("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")));
  EXPECT_TRUE(absl::IsInternal(StatusOfMessage("Something unheard of")));
}

}  // namespace
}  // namespace siding
