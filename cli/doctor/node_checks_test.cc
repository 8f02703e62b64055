#include "cli/doctor/node_checks.h"

#include "cli/doctor/finding_matchers.h"
#include "cli/doctor/healthy_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class NodeChecks : public testing::Test {
 protected:
  v1::Node& n2() { return *answers_.nodes.mutable_nodes(1); }

  Answers answers_ = HealthyAnswers();
};

TEST_F(NodeChecks, AHealthyClusterHasNone) {
  for (const auto check : {NoNodes, NodesAway, UnknownNodes, NodesKeptFree, FaultyNodes, CriuProblems,
                           CriuLimits, CriuVersions, GpuProblems, FenceProblems, Certificates, Strays}) {
    EXPECT_THAT(check(answers_), IsEmpty());
  }
}

TEST_F(NodeChecks, AControllerWithoutNodesIsNamed) {
  answers_.nodes.clear_nodes();
  EXPECT_THAT(NoNodes(answers_), ElementsAre(IsFaultOf("controller", "knows no node", "siding-agent")));
}

TEST_F(NodeChecks, ANodeThatIsDownSaysSinceWhen) {
  n2().set_state("down");
  n2().set_last_heard_us(kTestNow - 180'000'000);
  EXPECT_THAT(
      NodesAway(answers_),
      ElementsAre(IsFaultOf("node n2", "not connected, and was heard last 3m00s ago", "sidingctl lost n2")));
}

TEST_F(NodeChecks, ANodeThatIsSilentIsConnected) {
  n2().set_state("silent");
  EXPECT_THAT(NodesAway(answers_),
              ElementsAre(IsFaultOf("node n2", "is connected and says nothing", "restart siding-agent")));
}

TEST_F(NodeChecks, ANodeThatIsLostIsAWarningWhileItHasJobs) {
  n2().set_state("lost");
  n2().set_lost_since_us(kTestNow - 2 * kTestDay);
  EXPECT_THAT(NodesAway(answers_), IsEmpty());
  n2().add_suspended_jobs(1);
  EXPECT_THAT(NodesAway(answers_), ElementsAre(IsWarningOf("node n2", "lost, 2d", "start siding-agent")));
}

TEST_F(NodeChecks, AnAutoscalerMayRemoveANodeWithoutJobs) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_state("down");
  EXPECT_THAT(NodesAway(answers_), IsEmpty());
  n2().add_jobs(1);
  EXPECT_THAT(NodesAway(answers_), ElementsAre(IsFaultOf("node n2", "not connected", "sidingctl lost n2")));
}

TEST_F(NodeChecks, UnderKubernetesNobodyIsToldOfServices) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_criu("3.17, as root, without connections to elsewhere");
  n2().set_gpu_problem("the driver is older than 550");
  AddHealthyNode(answers_, "n4").set_criu_problem("no criu in PATH");
  AddHealthyNode(answers_, "n5").set_state("silent");
  for (const char* state : {"down", "lost"}) {
    v1::Node& node = AddHealthyNode(answers_, state);
    node.set_state(state);
    node.add_jobs(1);
  }
  Findings findings;
  for (const auto check : {NodesAway, CriuProblems, CriuLimits, CriuVersions, GpuProblems}) {
    for (const Finding& finding : check(answers_)) findings.push_back(finding);
  }
  EXPECT_EQ(findings.size(), 7u);
  EXPECT_THAT(findings,
              Each(Field(&Finding::mend,
                         AllOf(HasSubstr(" its agent (docs/admin/kubernetes.md#when-it-does-not-work)"),
                               Not(HasSubstr("systemctl"))))));
  answers_.nodes.clear_nodes();
  EXPECT_THAT(NoNodes(answers_), ElementsAre(IsFaultOf("controller", "no node", "docs/admin/kubernetes.md")));
}

TEST_F(NodeChecks, OfAnAgentThatIsAwayNothingElseIsSaid) {
  n2().set_state("down");
  n2().set_criu("");
  n2().set_criu_problem("no criu");
  n2().set_fault("disk full");
  EXPECT_THAT(CriuProblems(answers_), IsEmpty());
  EXPECT_THAT(FaultyNodes(answers_), IsEmpty());
}

TEST_F(NodeChecks, NorOfOneThatHasSentNoHeartbeat) {
  n2().set_ram_available(0);
  n2().set_criu_problem("no criu");
  EXPECT_THAT(CriuProblems(answers_), IsEmpty());
}

TEST_F(NodeChecks, ANodeThatNoAgentHasDialledFromIsKnownByItsJobs) {
  AddJobOn(answers_, 4, "n9");
  AddJobOn(answers_, 5, "n9");
  EXPECT_THAT(
      UnknownNodes(answers_),
      ElementsAre(IsFaultOf("node n9", "has not dialled since the controller was started, and has jobs 4, 5",
                            "sidingctl lost n9")));
}

TEST_F(NodeChecks, AClusterManagerMayHaveJobsOnNodesWithoutAgents) {
  answers_.site.set_cluster_manager("slurm");
  AddJobOn(answers_, 4, "n9");
  EXPECT_THAT(UnknownNodes(answers_), IsEmpty());
}

TEST_F(NodeChecks, ACordonedNodeSaysHowItIsUsedAgain) {
  n2().set_state("cordoned");
  EXPECT_THAT(NodesKeptFree(answers_),
              ElementsAre(IsWarningOf("node n2", "cordoned", "`sidingctl uncordon n2`")));
}

TEST_F(NodeChecks, ADrainedNodeNamesWhoKnowsWhy) {
  n2().set_state("drained");
  answers_.site.set_cluster_manager("slurm");
  EXPECT_THAT(NodesKeptFree(answers_),
              ElementsAre(IsWarningOf("node n2", "slurm lets no new job on it", "scontrol show node n2")));
  answers_.site.set_cluster_manager("kubernetes");
  EXPECT_THAT(NodesKeptFree(answers_),
              ElementsAre(IsWarningOf("node n2", "kubernetes lets", "kubectl describe node n2")));
}

TEST_F(NodeChecks, AFaultyNodeSaysWhy) {
  n2().set_state("faulty");
  n2().set_fault("its state folder cannot be written");
  EXPECT_THAT(FaultyNodes(answers_),
              ElementsAre(IsFaultOf("node n2", "its state folder cannot be written", "docs/admin/nodes.md")));
}

TEST_F(NodeChecks, CriuThatIsMissingIsAFault) {
  n2().set_criu("");
  n2().set_criu_problem("no criu in PATH");
  EXPECT_THAT(CriuProblems(answers_), ElementsAre(IsFaultOf("node n2", "no criu in PATH", "get-criu")));
  EXPECT_THAT(CriuVersions(answers_), IsEmpty());
}

TEST_F(NodeChecks, WherePodsAreOnlyEvictedNobodyNeedsCriu) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_criu_problem("pods are only evicted in this cluster");
  EXPECT_THAT(CriuProblems(answers_), IsEmpty());
}

TEST_F(NodeChecks, OtherProblemsOfSuchANodeAreLookedAt) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_criu_problem("pods are only evicted in this cluster");
  n2().set_fault("its kubelet is away");
  n2().set_certificate_ends_us(kTestNow + kTestDay);
  n2().add_strays("7.1.0");
  for (const auto check : {FaultyNodes, Certificates, Strays}) EXPECT_EQ(check(answers_).size(), 1u);
}

TEST_F(NodeChecks, ASickAgentOfAClusterManagersNodeIsLookedAt) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_criu_problem("no criu in PATH");
  n2().set_local_disk_free(0);
  n2().clear_local();
  EXPECT_THAT(CriuProblems(answers_),
              ElementsAre(IsFaultOf("node n2", "no criu in PATH", "restart its agent")));
}

TEST_F(NodeChecks, CriuWithoutPacketTablesIsAWarning) {
  n2().set_criu("4.2.1, as root, without connections to elsewhere");
  EXPECT_THAT(CriuLimits(answers_),
              ElementsAre(IsWarningOf("node n2", "connections to elsewhere are not checkpointed", "5.12")));
  EXPECT_THAT(CriuVersions(answers_), IsEmpty());
}

TEST_F(NodeChecks, AnotherCriuThanThatOfMostNodesIsNamed) {
  n2().set_criu("3.17, as root");
  EXPECT_THAT(CriuVersions(answers_),
              ElementsAre(IsWarningOf("node n2", "has criu 3.17, and others have 4.2.1", "get-criu")));
  EXPECT_THAT(CriuVersions(answers_).front().mend, HasSubstr("`systemctl restart siding-agent`"));
}

TEST_F(NodeChecks, WhereNoCriuIsThatOfMostNodesNoneIsBlamed) {
  n2().set_criu("3.17, as root");
  AddHealthyNode(answers_, "n4").set_criu("3.17, as root");
  EXPECT_THAT(
      CriuVersions(answers_),
      ElementsAre(IsWarningOf("criu", "nodes have different ones (3.17, 4.2.1)", "restart siding-agent")));
}

TEST_F(NodeChecks, AProblemWithGpusIsAFault) {
  n2().set_gpu_problem("the driver is older than 550");
  EXPECT_THAT(GpuProblems(answers_),
              ElementsAre(IsFaultOf("node n2", "older than 550", "siding-agent --check")));
}

TEST_F(NodeChecks, AFenceThatIsMissingIsAFault) {
  n2().set_fence_problem("this machine has no cgroup controller for pids");
  EXPECT_THAT(FenceProblems(answers_), ElementsAre(IsFaultOf("node n2", "controller for pids", "--fence")));
}

TEST_F(NodeChecks, ACertificateIsAWarningForAMonthAndThenAFault) {
  n2().set_certificate_ends_us(kTestNow + 31 * kTestDay);
  EXPECT_THAT(Certificates(answers_), IsEmpty());
  n2().set_certificate_ends_us(kTestNow + 29 * kTestDay);
  EXPECT_THAT(Certificates(answers_),
              ElementsAre(IsWarningOf("node n2", "expires in 29d", "`sidingctl certs node n2 --renew`")));
  n2().set_certificate_ends_us(kTestNow + 2 * kTestDay);
  EXPECT_THAT(Certificates(answers_), ElementsAre(IsFaultOf("node n2", "expires in 2d", "--renew")));
  n2().set_certificate_ends_us(kTestNow - kTestDay);
  EXPECT_THAT(Certificates(answers_), ElementsAre(IsFaultOf("node n2", "expired at ", "--renew")));
}

TEST_F(NodeChecks, StraysAreNamed) {
  n2().add_strays("7.1.0");
  n2().add_strays("8.1.0");
  EXPECT_THAT(Strays(answers_), ElementsAre(IsWarningOf("node n2", "7.1.0, 8.1.0", "docs/admin/journal.md")));
}

}  // namespace
}  // namespace siding::cli
