#include "controller/ha/partition_detector.h"

#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const NodeId kN1("n1"), kN2("n2");

class PartitionDetectorTest : public testing::Test {
 protected:
  PartitionDetectorTest() : detector_(clock_.Now()) {
    for (const NodeId& node : {kN1, kN2}) Hear(node);
    EXPECT_THAT(Update(), IsEmpty());
    clock_.Advance(PartitionDetector::kSettle);
    for (const NodeId& node : {kN1, kN2}) Hear(node);
  }
  std::vector<NodeId> Update() { return detector_.Update(asked_, heard_, clock_.Now()); }
  void Hear(const NodeId& node) { heard_[node] = {true, clock_.Now()}; }
  void Ask(const NodeId& node, const std::string& process = "b") { ++asked_[{process, node}]; }
  std::vector<NodeId> UpdateAfterSilence() {
    EXPECT_THAT(Update(), IsEmpty());
    clock_.Advance(PartitionDetector::kSilence);
    return Update();
  }

  FakeClock clock_;
  PartitionDetector detector_;
  AgentContacts asked_;
  std::map<NodeId, PartitionDetector::Contact> heard_;
};

TEST_F(PartitionDetectorTest, SilenceAloneSaysNothing) {
  clock_.Advance(1h);
  EXPECT_THAT(Update(), IsEmpty());
}
TEST_F(PartitionDetectorTest, AllHaveAskedElsewhereAndAreNotHeard) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  EXPECT_THAT(UpdateAfterSilence(), ElementsAre(kN1, kN2));
}
TEST_F(PartitionDetectorTest, NotAMomentEarlier) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  Update();
  clock_.Advance(PartitionDetector::kSilence - 1us);
  EXPECT_THAT(Update(), IsEmpty());
}
TEST_F(PartitionDetectorTest, OneThatIsStillConnectedKeepsIt) {
  clock_.Advance(1s);
  Ask(kN1);
  EXPECT_THAT(UpdateAfterSilence(), IsEmpty());
}
TEST_F(PartitionDetectorTest, OneThatIsDownAndAsksNobodyDoesNot) {
  clock_.Advance(1s);
  heard_[kN2].connected = false;
  Ask(kN1);
  EXPECT_THAT(UpdateAfterSilence(), ElementsAre(kN1));
}
TEST_F(PartitionDetectorTest, OneThatWasHeardSinceKeepsIt) {
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  Update();
  clock_.Advance(1s);
  Hear(kN2);
  EXPECT_THAT(UpdateAfterSilence(), IsEmpty());
}
TEST_F(PartitionDetectorTest, WhoHasAskedSeveralTimesIsGoneSinceTheFirst) {
  clock_.Advance(1s);
  for (int i = 0; i < 3; ++i) {
    Ask(kN1);
    Ask(kN2, "c");
    EXPECT_THAT(Update(), IsEmpty());
    clock_.Advance(PartitionDetector::kSilence / 3);
  }
  EXPECT_THAT(Update(), ElementsAre(kN1, kN2));
}
TEST_F(PartitionDetectorTest, OneThatHasAskedLongAgoAndAsksNoMoreSaysNothing) {
  clock_.Advance(1s);
  Ask(kN1);
  Update();
  clock_.Advance(PartitionDetector::kForgotten + 1us);
  heard_[kN1].connected = heard_[kN2].connected = false;
  EXPECT_THAT(Update(), IsEmpty());
}
TEST_F(PartitionDetectorTest, OneThatKeepsAskingIsNotForgotten) {
  clock_.Advance(1s);
  for (Duration asked{0}; asked <= 2 * PartitionDetector::kForgotten;
       asked += PartitionDetector::kForgotten / 2) {
    Ask(kN1);
    Update();
    clock_.Advance(PartitionDetector::kForgotten / 2);
  }
  heard_[kN2].connected = false;
  EXPECT_THAT(Update(), ElementsAre(kN1));
}
TEST_F(PartitionDetectorTest, NodesThatThisOneHasNeverHeardOfAreNotLost) {
  clock_.Advance(1s);
  Ask(NodeId("stranger"));
  EXPECT_THAT(UpdateAfterSilence(), IsEmpty());
}
TEST_F(PartitionDetectorTest, WhatWasSaidBeforeItWasActiveSaysNothing) {
  asked_[{"b", kN1}] = 7;
  asked_[{"b", kN2}] = 7;
  PartitionDetector late(clock_.Now());
  late.Update(asked_, heard_, clock_.Now());
  clock_.Advance(2 * PartitionDetector::kSettle);
  EXPECT_THAT(late.Update(asked_, heard_, clock_.Now()), IsEmpty());
}
TEST_F(PartitionDetectorTest, AtFirstAgentsAreStillLookingForTheirController) {
  PartitionDetector fresh(clock_.Now());
  fresh.Update(asked_, heard_, clock_.Now());
  clock_.Advance(1s);
  Ask(kN1);
  Ask(kN2);
  fresh.Update(asked_, heard_, clock_.Now());
  clock_.Advance(PartitionDetector::kSettle - 1s - 1us);
  EXPECT_THAT(fresh.Update(asked_, heard_, clock_.Now()), IsEmpty());
  clock_.Advance(1us);
  EXPECT_THAT(fresh.Update(asked_, heard_, clock_.Now()), ElementsAre(kN1, kN2));
}

}  // namespace
}  // namespace siding
