#include "controller/unreached.h"

#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const NodeId kN1("n1"), kN2("n2");

class UnreachedTest : public testing::Test {
 protected:
  UnreachedTest() : unreached_(clock_.Now()) {
    for (const NodeId& node : {kN1, kN2}) Hear(node);
    EXPECT_THAT(Look(), IsEmpty());
    clock_.Advance(Unreached::kSettle);
    for (const NodeId& node : {kN1, kN2}) Hear(node);
  }
  std::vector<NodeId> Look() { return unreached_.Look(asked_, heard_, clock_.Now()); }
  void Hear(const NodeId& node) { heard_[node] = {true, clock_.Now()}; }
  void Ask(const NodeId& node, const std::string& process = "b") { ++asked_[{process, node}]; }
  std::vector<NodeId> LookAfterSilence() {
    EXPECT_THAT(Look(), IsEmpty());
    clock_.Advance(Unreached::kSilence);
    return Look();
  }

  FakeClock clock_;
  Unreached unreached_;
  Asked asked_;
  std::map<NodeId, Unreached::Heard> heard_;
};

TEST_F(UnreachedTest, SilenceAloneSaysNothing) {
  clock_.Advance(1h);
  EXPECT_THAT(Look(), IsEmpty());
}
TEST_F(UnreachedTest, AllHaveAskedElsewhereAndAreNotHeard) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  EXPECT_THAT(LookAfterSilence(), ElementsAre(kN1, kN2));
}
TEST_F(UnreachedTest, NotAMomentEarlier) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  Look();
  clock_.Advance(Unreached::kSilence - 1us);
  EXPECT_THAT(Look(), IsEmpty());
}
TEST_F(UnreachedTest, OneThatIsStillConnectedKeepsIt) {
  clock_.Advance(1s);
  Ask(kN1);
  EXPECT_THAT(LookAfterSilence(), IsEmpty());
}
TEST_F(UnreachedTest, OneThatIsDownAndAsksNobodyDoesNot) {
  clock_.Advance(1s);
  heard_[kN2].connected = false;
  Ask(kN1);
  EXPECT_THAT(LookAfterSilence(), ElementsAre(kN1));
}
TEST_F(UnreachedTest, OneThatWasHeardSinceKeepsIt) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  Look();
  clock_.Advance(1s);
  Hear(kN2);
  EXPECT_THAT(LookAfterSilence(), IsEmpty());
}
TEST_F(UnreachedTest, WhoHasAskedSeveralTimesIsGoneSinceTheFirst) {
  clock_.Advance(1s);
  for (int i = 0; i < 3; ++i) {
    Ask(kN1);
    Ask(kN2, "c");
    EXPECT_THAT(Look(), IsEmpty());
    clock_.Advance(Unreached::kSilence / 3);
  }
  EXPECT_THAT(Look(), ElementsAre(kN1, kN2));
}
TEST_F(UnreachedTest, OneThatHasAskedLongAgoAndAsksNoMoreSaysNothing) {
  clock_.Advance(1s);
  Ask(kN1);
  Look();
  clock_.Advance(Unreached::kForgotten + 1us);
  heard_[kN1].connected = heard_[kN2].connected = false;
  EXPECT_THAT(Look(), IsEmpty());
}
TEST_F(UnreachedTest, OneThatGoesOnAskingIsNotForgotten) {
  clock_.Advance(1s);
  for (Duration asked{0}; asked <= 2 * Unreached::kForgotten; asked += Unreached::kForgotten / 2) {
    Ask(kN1);
    Look();
    clock_.Advance(Unreached::kForgotten / 2);
  }
  heard_[kN2].connected = false;
  EXPECT_THAT(Look(), ElementsAre(kN1));
}
TEST_F(UnreachedTest, NodesThatThisOneHasNeverHeardOfAreNotLost) {
  clock_.Advance(1s);
  Ask(NodeId("stranger"));
  EXPECT_THAT(LookAfterSilence(), IsEmpty());
}
TEST_F(UnreachedTest, WhatWasSaidBeforeItWasActiveSaysNothing) {
  asked_[{"b", kN1}] = 7;
  asked_[{"b", kN2}] = 7;
  Unreached late(clock_.Now());
  late.Look(asked_, heard_, clock_.Now());
  clock_.Advance(2 * Unreached::kSettle);
  EXPECT_THAT(late.Look(asked_, heard_, clock_.Now()), IsEmpty());
}
TEST_F(UnreachedTest, AtFirstAgentsAreStillLookingForTheirController) {
  Unreached fresh(clock_.Now());
  fresh.Look(asked_, heard_, clock_.Now());
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  fresh.Look(asked_, heard_, clock_.Now());
  clock_.Advance(Unreached::kSettle - 1s - 1us);
  EXPECT_THAT(fresh.Look(asked_, heard_, clock_.Now()), IsEmpty());
  clock_.Advance(1us);
  EXPECT_THAT(fresh.Look(asked_, heard_, clock_.Now()), ElementsAre(kN1, kN2));
}

}  // namespace
}  // namespace siding
