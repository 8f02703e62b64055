#include "cli/doctor/tier_checks.h"

#include "cli/doctor/finding_matchers.h"
#include "cli/doctor/healthy_fixture.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TierChecks : public testing::Test {
 protected:
  v1::Node& n2() { return *answers_.nodes.mutable_nodes(1); }
  v1::Job& job() { return *answers_.jobs.mutable_jobs(0); }
  auto& nodes() { return *answers_.nodes.mutable_nodes(); }

  Answers answers_ = HealthyAnswers();
};

TEST_F(TierChecks, OneInMemoryNeedsASharedOneBehindIt) {
  n2().set_local_in_memory(true);
  EXPECT_THAT(TiersInMemoryAlone(answers_), IsEmpty());
  answers_.policy.set_yaml("copy_images: false\n");
  EXPECT_THAT(TiersInMemoryAlone(answers_),
              ElementsAre(IsWarningOf("node n2", "are copied nowhere", "`copy_images`")));
  answers_.policy.clear_yaml();
  for (v1::Node& node : nodes()) {
    node.set_shared_disk_free(0);
    node.clear_shared();
  }
  EXPECT_THAT(TiersInMemoryAlone(answers_),
              ElementsAre(IsWarningOf("node n2", "are copied nowhere", "--shared-dir")));
}

TEST_F(TierChecks, ADiskIsNotSlowBesideMemory) {
  for (v1::Node& node : nodes()) {
    node.set_local_in_memory(true);
    SetTestSpeed(*node.mutable_local(), 3e9);
  }
  n2().set_local_in_memory(false);
  SetTestSpeed(*n2().mutable_local(), 3e8);
  EXPECT_THAT(SlowTiers(answers_), IsEmpty());
}

TEST_F(TierChecks, AHealthyClusterHasNone) {
  for (const auto check : {TiersWithoutRoom, TiersTooSmall, TiersNotMeasured, SlowTiers})
    EXPECT_THAT(check(answers_), IsEmpty());
}

TEST_F(TierChecks, ASharedTierThatIsAwayOnOneNodeIsThatNodes) {
  n2().set_shared_disk_free(0);
  EXPECT_THAT(TiersWithoutRoom(answers_),
              ElementsAre(IsFaultOf("node n2", "its shared tier has nothing free", "make room")));
}

TEST_F(TierChecks, OneThatIsFullEverywhereIsOneFinding) {
  for (v1::Node& node : nodes()) node.set_shared_disk_free(0);
  EXPECT_THAT(TiersWithoutRoom(answers_),
              ElementsAre(IsFaultOf("tier shared", "on every node", "make room")));
}

// It cannot be told from one that was given up.
TEST_F(TierChecks, OneThatWasGivenUpSaysWhatRemembersIt) {
  for (v1::Node& node : nodes()) node.set_shared_disk_free(0);
  EXPECT_THAT(
      TiersWithoutRoom(answers_),
      ElementsAre(IsFaultOf("tier shared", "", "without --shared-dir remember its speed in rates.json")));
}

TEST_F(TierChecks, ASickAgentOfAClusterManagersNodeIsLookedAt) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().set_local_disk_free(0);
  n2().clear_local();
  EXPECT_THAT(TiersWithoutRoom(answers_),
              ElementsAre(IsFaultOf("node n2", "its local tier has nothing free", "")));
}

TEST_F(TierChecks, WherePodsAreOnlyEvictedNobodyHasATier) {
  answers_.site.set_cluster_manager("kubernetes");
  for (v1::Node& node : nodes()) {
    node.set_criu_problem("pods are only evicted in this cluster");
    node.set_local_disk_free(0);
    node.clear_local();
  }
  for (const auto check : {TiersWithoutRoom, TiersTooSmall, TiersNotMeasured, SlowTiers})
    EXPECT_THAT(check(answers_), IsEmpty());
}

TEST_F(TierChecks, UnderKubernetesNobodyIsToldOfServices) {
  answers_.site.set_cluster_manager("kubernetes");
  n2().clear_shared();
  EXPECT_THAT(TiersNotMeasured(answers_),
              ElementsAre(IsWarningOf("node n2", "", "then restart its agent (docs/admin/kubernetes.md")));
}

TEST_F(TierChecks, AClusterMayHaveNoSharedTier) {
  for (v1::Node& node : nodes()) {
    node.set_shared_disk_free(0);
    node.clear_shared();
  }
  EXPECT_THAT(TiersWithoutRoom(answers_), IsEmpty());
}

TEST_F(TierChecks, ALocalTierWithoutRoomIsItsNodes) {
  n2().set_local_disk_free(0);
  EXPECT_THAT(TiersWithoutRoom(answers_),
              ElementsAre(IsFaultOf("node n2", "its local tier has nothing free", "make room")));
}

TEST_F(TierChecks, OfANodeThatIsAwayNothingIsSaid) {
  n2().set_state("down");
  n2().set_local_disk_free(0);
  n2().set_shared_disk_free(0);
  EXPECT_THAT(TiersWithoutRoom(answers_), IsEmpty());
}

TEST_F(TierChecks, TheLargestJobMayFindNoRoomInTheSharedTier) {
  AddJobOn(answers_, 2, "n2").set_memory(12 * kGib);
  n2().set_shared_disk_free(4 * kGib);
  EXPECT_THAT(TiersTooSmall(answers_),
              ElementsAre(IsWarningOf("tier shared", "4.0 GiB free, less than the 12.0 GiB that job 2",
                                      "make room")));
}

TEST_F(TierChecks, OrItsPartInItsNodesOwn) {
  job().add_nodes("n2");
  job().set_memory(12 * kGib);
  n2().set_local_disk_free(5 * kGib);
  EXPECT_THAT(TiersTooSmall(answers_),
              ElementsAre(IsWarningOf("node n2", "its local tier has 5.0 GiB free, less than the 6.0 GiB",
                                      "make room")));
  n2().set_local_disk_free(7 * kGib);
  EXPECT_THAT(TiersTooSmall(answers_), IsEmpty());
}

TEST_F(TierChecks, AJobThatIsNotCheckpointedNeedsNoRoom) {
  job().set_memory(5000 * kGib);
  job().clear_methods();
  EXPECT_THAT(TiersTooSmall(answers_), IsEmpty());
}

TEST_F(TierChecks, ATierThatIsNotMeasuredIsNamed) {
  n2().clear_shared();
  EXPECT_THAT(TiersNotMeasured(answers_),
              ElementsAre(IsWarningOf("node n2", "speed of its shared tier is not measured", "its log")));
}

TEST_F(TierChecks, AndOneFromWhichNothingHasBeenRead) {
  n2().mutable_local()->mutable_restore()->set_bytes_per_second(0);
  EXPECT_THAT(TiersNotMeasured(answers_), ElementsAre(IsWarningOf("node n2", "its local tier", "its log")));
}

TEST_F(TierChecks, OneThatIsAwayIsNotAskedForItsSpeed) {
  n2().set_local_disk_free(0);
  n2().clear_local();
  EXPECT_THAT(TiersNotMeasured(answers_), IsEmpty());
}

TEST_F(TierChecks, ANodeThatIsFarSlowerThanTheOthersIsNamed) {
  n2().mutable_local()->mutable_restore()->set_bytes_per_second(59e6);
  EXPECT_THAT(SlowTiers(answers_),
              ElementsAre(IsWarningOf(
                  "node n2", "its local tier reads 56.3 MiB/s, where the nodes' median is 286.1 MiB/s",
                  "look at its disk")));
  n2().mutable_local()->mutable_restore()->set_bytes_per_second(61e6);
  EXPECT_THAT(SlowTiers(answers_), IsEmpty());
}

TEST_F(TierChecks, OfTwoTheSlowerOneIs) {
  nodes().RemoveLast();
  n2().mutable_shared()->mutable_dump()->set_bytes_per_second(1e6);
  EXPECT_THAT(SlowTiers(answers_), ElementsAre(IsWarningOf("node n2", "its shared tier writes", "network")));
}

}  // namespace
}  // namespace siding::cli
