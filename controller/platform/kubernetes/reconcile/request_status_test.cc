#include "controller/platform/kubernetes/reconcile/request_status.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A request of two pods, and its status as it comes to be.
class RequestStatusTest : public testing::Test {
 protected:
  RequestStatusTest() {
    json_ = {{"metadata",
              {{"name", "steer"},
               {"namespace", "d"},
               {"uid", "0b9d"},
               {"resourceVersion", "7"},
               {"generation", 1},
               {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
             {"spec",
              {{"startBy", "+60s"},
               {"count", 2},
               {"template", {{"spec", {{"containers", Json::array({{{"name", "main"}}})}}}}}}}};
    there_.pods.resize(2);
  }
  Request Now() const { return RequestFrom(*ObjectFrom(json_)); }
  void Write(Json status) { json_["status"] = std::move(status); }
  void Accept() { Write(StatusIfAccepted(Now(), *SpecOf(Now()), now_)); }
  // One of its pods, as far as the status looks at it.
  void AddPod(int index, PodPhase phase = PodPhase::kPending, std::optional<Time> started = {}) {
    Pod pod;
    pod.name = {"d", PodNameOf(Now(), index)};
    pod.owner = {"OnDemandRequest", "steer", "0b9d"};
    pod.phase = phase;
    pod.started = started;
    there_.pods[index] = PodStanding{pod, JobId(5), ""};
  }
  void AddBoth(PodPhase phase = PodPhase::kPending, std::optional<Time> started = {}) {
    for (const int index : {0, 1}) AddPod(index, phase, started);
  }
  // The status follows what is there, and stays as it is when it is looked at again.
  void Look() {
    Write(StatusOf(Now(), there_, now_));
    now_ += std::chrono::seconds(1);
    EXPECT_FALSE(PatchTowards(Now(), StatusOf(Now(), there_, now_)));
  }
  std::string Said(const char* field) const { return TextAt(json_, {"status", field}); }
  // "True Started", "" if it is not there.
  std::string Condition(const std::string& type) const {
    for (const Json& condition : ListAt(json_, {"status", "conditions"})) {
      if (TextAt(condition, {"type"}) == type)
        return TextAt(condition, {"status"}) + " " + TextAt(condition, {"reason"});
    }
    return "";
  }
  bool over() const { return RecordOf(Now()).over; }

  Json json_;
  RequestNow there_;
  Time now_ = *ParseTime("2026-01-01T00:00:01Z", Time{});
};

const Outlook kPlan{.planned = true,
                    .text = "will get n1 from 1 job",
                    .predicted = *ParseTime("2026-01-01T00:00:30.2Z", Time{})};
const Outlook kRefusal{
    .refused = true, .text = "no node can be free", .earliest = *ParseTime("2026-01-01T01:00:00Z", Time{})};
const Time kStart = *ParseTime("2026-01-01T00:00:40Z", Time{});

TEST_F(RequestStatusTest, WhatIsAcceptedIsKept) {
  EXPECT_FALSE(RecordOf(Now()).accepted);
  Accept();
  EXPECT_EQ(Condition("Accepted"), "True Accepted");
  EXPECT_EQ(Said("deadline"), "2026-01-01T00:01:00Z");
  EXPECT_TRUE(RecordOf(Now()).accepted);
  EXPECT_EQ(RecordOf(Now()).count, 2);
}
TEST_F(RequestStatusTest, WhatIsInvalidIsSaidOfThatGenerationOnly) {
  Write(StatusIfTurnedDown(Now(), "Invalid", "spec.startBy: expected a time", now_));
  EXPECT_EQ(Condition("Accepted"), "False Invalid");
  EXPECT_EQ(Said("state"), "Invalid");
  EXPECT_EQ(Said("reason"), "spec.startBy: expected a time");
  EXPECT_TRUE(RecordOf(Now()).invalid);
  json_["metadata"]["generation"] = 2;
  EXPECT_FALSE(RecordOf(Now()).invalid);
}
TEST_F(RequestStatusTest, PodsThatWereSeenAreNamed) {
  Accept();
  Look();
  EXPECT_THAT(json_["status"]["pods"], IsEmpty());
  AddPod(1);
  Look();
  EXPECT_THAT(RecordOf(Now()).pods, ElementsAre(PodNameOf(Now(), 1)));
  EXPECT_EQ(Condition("Running"), "False Waits");
}
TEST_F(RequestStatusTest, OneWhosePodsCouldNotBeMadeInTimeHasFailed) {
  Accept();
  AddPod(1);
  there_.problem = "pod d/r-0 is there, and is not this request's: expected a free name";
  Look();
  EXPECT_EQ(Condition("Running"), "False PodsNotMade");
  EXPECT_FALSE(over());
  now_ = *ParseTime("2026-01-01T00:01:01Z", Time{});
  Look();
  EXPECT_EQ(Condition("Failed"), "True PodsNotMade");
  EXPECT_EQ(Said("reason"), there_.problem);
  EXPECT_TRUE(over());
}
TEST_F(RequestStatusTest, ThePlanIsSaid) {
  Accept();
  AddBoth();
  there_.outlook = kPlan;
  Look();
  EXPECT_EQ(Condition("Planned"), "True Planned");
  EXPECT_EQ(Said("plan"), "will get n1 from 1 job");
  EXPECT_EQ(Said("predictedStart"), "2026-01-01T00:00:31Z");
  EXPECT_EQ(Said("state"), "Planned");
}
TEST_F(RequestStatusTest, OneThatWaitsItsTurnIsNotPlanned) {
  Accept();
  AddBoth();
  there_.outlook = Outlook{.text = "waits for nodes"};
  Look();
  EXPECT_EQ(Condition("Planned"), "False Waits");
  EXPECT_EQ(Said("reason"), "waits for nodes");
}
TEST_F(RequestStatusTest, ARefusalSaysWhyAndWhenItWouldWork) {
  Accept();
  AddBoth();
  there_.outlook = kRefusal;
  Look();
  EXPECT_EQ(Condition("Planned"), "False Refused");
  EXPECT_EQ(Condition("Failed"), "True Refused");
  EXPECT_EQ(Said("state"), "Refused");
  EXPECT_EQ(Said("reason"), "no node can be free");
  EXPECT_EQ(Said("earliest"), "2026-01-01T01:00:00Z");
}
TEST_F(RequestStatusTest, ARefusalThatTheEngineHasForgottenStays) {
  Accept();
  AddBoth();
  there_.outlook = kRefusal;
  Look();
  there_.outlook.reset();
  Look();
  EXPECT_EQ(Said("state"), "Refused");
  EXPECT_EQ(Said("reason"), "no node can be free");
}
TEST_F(RequestStatusTest, WhatIsPlannedAfterAllIsRefusedNoMore) {
  Accept();
  AddBoth();
  there_.outlook = kRefusal;
  Look();
  there_.outlook = kPlan;
  Look();
  EXPECT_EQ(Condition("Failed"), "");
  EXPECT_EQ(Said("state"), "Planned");
  EXPECT_EQ(Said("earliest"), "");
  EXPECT_EQ(Said("reason"), "");
}
TEST_F(RequestStatusTest, APodThatSidingLeavesAloneIsARefusal) {
  Accept();
  AddBoth();
  there_.pods[1]->refused = "hostPort is not planned with";
  Look();
  EXPECT_EQ(Condition("Failed"), "True Refused");
  EXPECT_EQ(Said("reason"), "hostPort is not planned with");
}
TEST_F(RequestStatusTest, ItRunsWhenAllHaveStarted) {
  Accept();
  AddPod(0, PodPhase::kRunning, kStart);
  AddPod(1);
  there_.outlook = kPlan;
  Look();
  EXPECT_EQ(Condition("Running"), "False Waits");
  AddPod(1, PodPhase::kRunning, kStart + std::chrono::seconds(1));
  Look();
  EXPECT_EQ(Condition("Running"), "True Started");
  EXPECT_EQ(Condition("Planned"), "True Planned");
  EXPECT_EQ(Said("started"), "2026-01-01T00:00:41Z");
  EXPECT_EQ(Said("state"), "Running");
}
TEST_F(RequestStatusTest, OnceItsPodsHaveNodesItsPlanStays) {
  Accept();
  AddBoth();
  there_.outlook = kPlan;
  Look();
  for (auto& pod : there_.pods) pod->pod.node = "n1";
  there_.outlook = Outlook{.text = "cannot be served by its deadline"};
  Look();
  EXPECT_EQ(Condition("Planned"), "True Planned");
  EXPECT_EQ(Said("plan"), "will get n1 from 1 job");
  EXPECT_EQ(Said("state"), "Planned");
}
TEST_F(RequestStatusTest, ItIsCompletedWhenAllHaveSucceeded) {
  Accept();
  AddPod(0, PodPhase::kSucceeded, kStart);
  AddPod(1, PodPhase::kRunning, kStart);
  Look();
  EXPECT_EQ(Condition("Running"), "True Started");
  AddPod(1, PodPhase::kSucceeded, kStart);
  Look();
  EXPECT_EQ(Condition("Running"), "False Ended");
  EXPECT_EQ(Condition("Completed"), "True Succeeded");
  EXPECT_TRUE(over());
}
TEST_F(RequestStatusTest, ItHasFailedWhenAllHaveEndedAndOneHasFailed) {
  Accept();
  AddBoth(PodPhase::kRunning, kStart);
  Look();
  AddPod(0, PodPhase::kFailed, kStart);
  Look();
  EXPECT_FALSE(over());
  AddPod(1, PodPhase::kSucceeded, kStart);
  Look();
  EXPECT_EQ(Condition("Failed"), "True PodFailed");
  EXPECT_THAT(Said("reason"), HasSubstr(PodNameOf(Now(), 0)));
  EXPECT_TRUE(over());
}
TEST_F(RequestStatusTest, APodThatIsGoneBeforeAllRunIsTheEnd) {
  Accept();
  AddBoth();
  Look();
  there_.pods[0].reset();
  Look();
  EXPECT_EQ(Condition("Failed"), "True PodGone");
  EXPECT_TRUE(over());
}
TEST_F(RequestStatusTest, WhileOthersRunItRunsWithoutAPodThatIsGone) {
  Accept();
  AddBoth(PodPhase::kRunning, kStart);
  Look();
  there_.pods[0].reset();
  Look();
  EXPECT_EQ(Condition("Running"), "True Started");
  there_.pods[1].reset();
  Look();
  EXPECT_EQ(Condition("Failed"), "True PodGone");
}
TEST_F(RequestStatusTest, AnothersPodOfTheNameIsNotItsOwn) {
  Accept();
  AddBoth(PodPhase::kRunning, kStart);
  there_.pods[1]->pod.owner.uid = "another";
  Look();
  EXPECT_EQ(json_["status"]["pods"].size(), 1);
  EXPECT_EQ(Condition("Running"), "False Waits");
}
TEST_F(RequestStatusTest, WhyPodsCannotBeMadeIsSaid) {
  Accept();
  there_.problem = "exceeded quota";
  Look();
  EXPECT_EQ(Condition("Running"), "False PodsNotMade");
  EXPECT_EQ(Said("reason"), "exceeded quota");
  there_.problem.clear();
  AddBoth();
  there_.outlook = kPlan;
  Look();
  EXPECT_EQ(Said("reason"), "");
}
TEST_F(RequestStatusTest, AChangeOfTheSpecIsAnsweredAndDoesNotCount) {
  Accept();
  AddBoth();
  Look();
  json_["metadata"]["generation"] = 2;
  json_["spec"]["count"] = 5;
  Look();
  EXPECT_EQ(Condition("Accepted"), "True ChangeIgnored");
  EXPECT_EQ(RecordOf(Now()).generation, 1);
  EXPECT_EQ(json_["status"]["pods"].size(), 2);
  EXPECT_FALSE(over());
}
TEST_F(RequestStatusTest, AChangeBeforeAllPodsAreThereIsTheEnd) {
  Accept();
  AddPod(0);
  json_["metadata"]["generation"] = 2;
  Look();
  EXPECT_EQ(Condition("Failed"), "True SpecChanged");
}
TEST_F(RequestStatusTest, TheTimeOfATransitionIsThatOfTheChange) {
  Accept();
  const auto since = [&] { return TextAt(json_["status"]["conditions"][0], {"lastTransitionTime"}); };
  EXPECT_EQ(since(), "2026-01-01T00:00:01Z");
  Look();
  EXPECT_EQ(since(), "2026-01-01T00:00:01Z");
}
TEST_F(RequestStatusTest, APatchHasWhatDiffersAndTheVersionThatWasRead) {
  Write({{"state", "Accepted"}, {"plan", "old"}, {"count", 2}});
  const auto patch = PatchTowards(Now(), {{"state", "Accepted"}, {"count", 3}});
  ASSERT_TRUE(patch);
  EXPECT_EQ(*patch,
            Json({{"metadata", {{"resourceVersion", "7"}}}, {"status", {{"plan", nullptr}, {"count", 3}}}}));
}
TEST_F(RequestStatusTest, AStatusThatSomebodyElseWroteIsRead) {
  for (const Json& odd : {Json(1), Json::array(), Json({{"conditions", 7}, {"pods", "x"}, {"count", -1}})}) {
    Write(odd);
    EXPECT_FALSE(RecordOf(Now()).accepted);
    EXPECT_EQ(RecordOf(Now()).count, 1);
  }
}

}  // namespace
}  // namespace siding::kubernetes
