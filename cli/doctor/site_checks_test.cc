#include "cli/doctor/site_checks.h"

#include "absl/strings/str_cat.h"
#include "cli/doctor/finding_matchers.h"
#include "cli/doctor/healthy_fixture.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SiteChecks : public testing::Test {
 protected:
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) AddHealthyNode(answers_, absl::StrCat("m", i));
  }
  void AsIfAskedAt(int64_t us) { answers_.asked = answers_.answered = FromMicros(us); }

  Answers answers_ = HealthyAnswers();
};

TEST_F(SiteChecks, AHealthyClusterHasNone) {
  for (const auto check : {ControllersAway, PolicyProblems, UnknownBandwidth, Clocks})
    EXPECT_THAT(check(answers_), IsEmpty());
}

TEST_F(SiteChecks, AControllerThatDoesNotAnswerTakesNothingOver) {
  answers_.away["head2:7433"] = "it cannot be reached";
  EXPECT_THAT(
      ControllersAway(answers_),
      ElementsAre(IsWarningOf("controller head2:7433", "would not take over from the active one: it cannot",
                              "systemctl start sidingd")));
}

TEST_F(SiteChecks, APolicyFileThatIsNotInForceIsAFault) {
  answers_.policy.set_file("/p.yaml");
  answers_.policy.set_problem("/p.yaml:3: margin: expected a duration");
  EXPECT_THAT(PolicyProblems(answers_),
              ElementsAre(IsFaultOf("policy", "/p.yaml:3: margin", "`sidingctl policy check /p.yaml`")));
}

TEST_F(SiteChecks, AProtectionOfManyNodesNeedsABandwidth) {
  answers_.policy.set_yaml("most_lost_work: 10m\n");
  EXPECT_THAT(UnknownBandwidth(answers_), IsEmpty());
  AddNodes(5);
  EXPECT_THAT(UnknownBandwidth(answers_),
              ElementsAre(IsWarningOf("policy", "from 8 nodes", "shared_bandwidth")));
  answers_.policy.set_yaml("most_lost_work: 10m\nshared_bandwidth: 40GiB\n");
  EXPECT_THAT(UnknownBandwidth(answers_), IsEmpty());
}

TEST_F(SiteChecks, AProtectionOfOneClassDoesToo) {
  AddNodes(5);
  answers_.policy.set_yaml("classes: [{name: all, methods: [checkpoint], most_lost_work: 1h}]\n");
  EXPECT_EQ(UnknownBandwidth(answers_).size(), 1u);
}

TEST_F(SiteChecks, NodesWithoutASharedTierDoNotCount) {
  AddNodes(5);
  answers_.policy.set_yaml("most_lost_work: 10m\n");
  answers_.nodes.mutable_nodes(0)->set_shared_disk_free(0);
  EXPECT_THAT(UnknownBandwidth(answers_), IsEmpty());
}

TEST_F(SiteChecks, APolicyWithUnknownKeysSaysNothing) {
  AddNodes(5);
  answers_.policy.set_yaml("most_lost_work: 10m\nof_tomorrow: 1\n");
  EXPECT_THAT(UnknownBandwidth(answers_), IsEmpty());
}

TEST_F(SiteChecks, AClockThatWasSetAfterTheControllersStartIsNamed) {
  answers_.same_machine = true;
  AsIfAskedAt(kTestNow + 5'000'000);
  EXPECT_THAT(Clocks(answers_),
              ElementsAre(IsWarningOf("controller", "its time is 5.00s behind its machine's clock",
                                      "systemctl restart sidingd")));
}

TEST_F(SiteChecks, ElsewhereItIsNotSaidWhichClockIsWrong) {
  AsIfAskedAt(kTestNow - 5'000'000);
  EXPECT_THAT(Clocks(answers_),
              ElementsAre(IsWarningOf("controller", "5.00s ahead of the clock of this machine",
                                      "set the clock that is wrong")));
}

TEST_F(SiteChecks, AnAnswerThatTookLongSaysNothingOfClocks) {
  answers_.asked = FromMicros(kTestNow - 9'000'000);
  answers_.answered = FromMicros(kTestNow + 9'000'000);
  EXPECT_THAT(Clocks(answers_), IsEmpty());
}

TEST_F(SiteChecks, ClocksDifferByLessThanASecond) {
  AsIfAskedAt(kTestNow + 900'000);
  EXPECT_THAT(Clocks(answers_), IsEmpty());
}

}  // namespace
}  // namespace siding::cli
