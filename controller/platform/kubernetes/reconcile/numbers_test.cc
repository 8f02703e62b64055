#include "controller/platform/kubernetes/reconcile/numbers.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Kind = Fault::Kind;

const ObjectName kWhere{"siding", "siding-numbers"};
const JobId kNone(0);

class NumbersTest : public testing::Test {
 protected:
  void Put(const std::string& next) {
    transport_.Do([&](FakeApiServer& server) {
      server.store().Put("configmaps", kWhere, {{"data", {{"next", next}}}});
    });
  }
  // A pod that asks, alone or in a gang.
  void AddPod(const std::string& name, const std::string& gang = "") {
    Json pod = {{"metadata", {{"annotations", {{"siding.dev/preemptible", "kill"}}}}}};
    if (!gang.empty()) {
      pod["metadata"]["annotations"]["siding.dev/gang"] = gang;
      pod["metadata"]["annotations"]["siding.dev/gang-size"] = "2";
    }
    transport_.Do([&](FakeApiServer& server) { server.store().Put("pods", {"d", name}, pod); });
  }
  // As an informer would tell it now.
  JobTable Table() {
    JobTable table({}, [this](const Pod& pod) { return seal_.HoldsOn(pod); });
    const auto pods = client_.List(Pods(), {});
    for (const Object& pod : pods->items) table.OnPods({{std::nullopt, pod}});
    return table;
  }
  std::string NumberOf(const std::string& name) {
    return TextAt(*client_.Get(Pods(), {"d", name})->json, {"metadata", "annotations", "siding.dev/job"});
  }
  // What those that did not get theirs have against it is in `failed_`.
  absl::Status Number(const JobTable& table) { return Number(table.FindUnnumbered()); }
  absl::Status Number(const JobTable::Without& pods) {
    failed_.clear();
    return NumberPods(pods, numbers_, seal_, client_,
                      [this](const JobTable::Unnumbered& pod, const absl::Status& written) {
                        if (!written.ok()) failed_[pod.pod.name] = written.code();
                      });
  }
  void Fail(Kind kind, HttpMethod method, const std::string& path, int code = 500) {
    transport_.Add({.kind = kind, .path = path, .method = method, .code = code});
  }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_{{.resources = {Pods(), ConfigMaps()}}};
  FakeTransport transport_{server_, clock_};
  ApiClient client_{transport_, pacer_};
  Numbers numbers_{client_, kWhere};
  std::map<std::string, absl::StatusCode> failed_;
  const Seal seal_{std::string(Seal::kKeySize, 'k')};
};

TEST_F(NumbersTest, TheyBeginWithOneAndGrow) {
  EXPECT_EQ(*numbers_.Next(kNone), JobId(1));
  EXPECT_EQ(*numbers_.Next(kNone), JobId(2));
}
TEST_F(NumbersTest, AnotherControllerGivesOthers) {
  Numbers other(client_, kWhere);
  EXPECT_EQ(*numbers_.Next(kNone, 2), JobId(1));
  EXPECT_EQ(*other.Next(kNone), JobId(3));
  EXPECT_EQ(*numbers_.Next(kNone), JobId(2));
}
TEST_F(NumbersTest, ABlockThatIsUsedUpIsFollowedByAnother) {
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(*numbers_.Next(kNone, 4 - i), JobId(i));
  Numbers other(client_, kWhere);
  EXPECT_EQ(*other.Next(kNone), JobId(4));
  EXPECT_EQ(*numbers_.Next(kNone), JobId(5));
}
TEST_F(NumbersTest, AControllerThatBeginsAnewLosesNoNumbers) {
  for (const char* name : {"a", "b"}) AddPod(name);
  EXPECT_TRUE(Number(Table()).ok());
  Numbers next(client_, kWhere);
  EXPECT_EQ(*next.Next(kNone), JobId(3));
}
TEST_F(NumbersTest, WhereTheConfigMapWasDeletedTheyGoOnBeyondAllThatAreKnown) {
  EXPECT_EQ(*numbers_.Next(JobId(500)), JobId(501));
  EXPECT_EQ(*numbers_.Next(JobId(501)), JobId(502));
}
TEST_F(NumbersTest, ABlockWhoseAnswerIsLostIsNotUsed) {
  Put("7");
  Fail(Kind::kAnswerLost, HttpMethod::kPatch, "configmaps");
  EXPECT_FALSE(numbers_.Next(kNone).ok());
  EXPECT_EQ(*numbers_.Next(kNone), JobId(8));
}
TEST_F(NumbersTest, OneThatAnotherTookInBetweenIsReadAgain) {
  Put("7");
  Fail(Kind::kAnswer, HttpMethod::kPatch, "configmaps", 409);
  EXPECT_EQ(*numbers_.Next(kNone), JobId(7));
}
// Of those that it has just given nobody knows yet.
TEST_F(NumbersTest, NorIsOneGivenTwiceByTheSameController) {
  EXPECT_EQ(*numbers_.Next(kNone), JobId(1));
  transport_.Do([](FakeApiServer& server) { server.store().Remove("configmaps", kWhere); });
  EXPECT_EQ(*numbers_.Next(kNone), JobId(2));
}
TEST_F(NumbersTest, WhatIsNoNumberIsLeftForSomebodyToMend) {
  for (const char* wrong : {"", "-3", "many", "4294967290"}) {
    Put(wrong);
    const absl::Status status = numbers_.Next(kNone).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << wrong;
    EXPECT_THAT(status.message(), HasSubstr("ConfigMap siding/siding-numbers: data.next: expected a number"));
  }
}

TEST_F(NumbersTest, EachPodGetsOneAndAGangOneTogether) {
  AddPod("a");
  AddPod("b");
  for (const char* name : {"g-0", "g-1"}) AddPod(name, "g");
  ASSERT_TRUE(Number(Table()).ok());
  EXPECT_EQ(NumberOf("a"), "1");
  EXPECT_EQ(NumberOf("b"), "2");
  EXPECT_EQ(NumberOf("g-0"), "3");
  EXPECT_EQ(NumberOf("g-1"), "3");
}
TEST_F(NumbersTest, ANumberThatAUserWroteIsReplaced) {
  AddPod("a");
  ASSERT_TRUE(Number(Table()).ok());
  const Json marks = *Find(*client_.Get(Pods(), {"d", "a"})->json, {"metadata", "annotations"});
  Json thief = {{"metadata", {{"annotations", marks}}}};
  transport_.Do([&](FakeApiServer& server) { server.store().Put("pods", {"e", "thief"}, thief); });
  EXPECT_EQ(Table().PodsOf(JobId(1)).size(), 1);
  ASSERT_TRUE(Number(Table()).ok());
  EXPECT_EQ(TextAt(*client_.Get(Pods(), {"e", "thief"})->json, {"metadata", "annotations", "siding.dev/job"}),
            "2");
}
TEST_F(NumbersTest, ALatePodOfAGangGetsItsNumber) {
  AddPod("g-0", "g");
  ASSERT_TRUE(Number(Table()).ok());
  AddPod("g-1", "g");
  ASSERT_TRUE(Number(Table()).ok());
  EXPECT_EQ(NumberOf("g-1"), NumberOf("g-0"));
}
TEST_F(NumbersTest, AGangIsNotSplitWhileWhatIsSeenIsLate) {
  AddPod("g-0", "g");
  const JobTable late = Table();
  ASSERT_TRUE(Number(late).ok());
  AddPod("g-1", "g");
  JobTable both = late;
  both.OnPods({{std::nullopt, *client_.Get(Pods(), {"d", "g-1"})}});
  EXPECT_TRUE(Number(both).ok());
  EXPECT_THAT(failed_, ElementsAre(Pair("g-0", absl::StatusCode::kAborted)));
  EXPECT_EQ(NumberOf("g-1"), "");
}
TEST_F(NumbersTest, APodThatWasNumberedWithoutAnAnswerKeepsItsNumber) {
  AddPod("a");
  const JobTable late = Table();
  Fail(Kind::kAnswerLost, HttpMethod::kPatch, "pods");
  EXPECT_FALSE(Number(late).ok());
  EXPECT_TRUE(Number(late).ok());
  EXPECT_THAT(failed_, ElementsAre(Pair("a", absl::StatusCode::kAborted)));
  EXPECT_EQ(NumberOf("a"), "1");
  EXPECT_TRUE(Number(Table()).ok());
  EXPECT_EQ(NumberOf("a"), "1");
}

TEST_F(NumbersTest, APodThatTheServerWillNotHaveChangedIsInNobodysWay) {
  for (const char* name : {"a", "b", "c"}) AddPod(name);
  Fail(Kind::kAnswer, HttpMethod::kPatch, "pods/a", 422);
  EXPECT_TRUE(Number(Table()).ok());
  EXPECT_THAT(failed_, ElementsAre(Pair("a", absl::StatusCode::kInvalidArgument)));
  EXPECT_EQ(NumberOf("b"), "2");
  EXPECT_EQ(NumberOf("c"), "3");
}
TEST_F(NumbersTest, TheRestOfAGangWaitsForItsFirstPod) {
  for (const char* name : {"g-0", "g-1"}) AddPod(name, "g");
  AddPod("z");
  Fail(Kind::kAnswer, HttpMethod::kPatch, "pods/g-0", 422);
  EXPECT_TRUE(Number(Table()).ok());
  EXPECT_EQ(NumberOf("g-1"), "");
  EXPECT_EQ(NumberOf("z"), "2");
}
TEST_F(NumbersTest, WithoutAServerNobodyElseIsTried) {
  for (const char* name : {"a", "b"}) AddPod(name);
  Fail(Kind::kUnreachable, HttpMethod::kPatch, "pods/a");
  EXPECT_FALSE(Number(Table()).ok());
  EXPECT_EQ(NumberOf("b"), "");
}
TEST_F(NumbersTest, AnHeirGetsTheNumberOfItsJobAndHowOftenThatStarted) {
  AddPod("a");
  JobTable::Without without = Table().FindUnnumbered();
  without.pods.front().heir = JobId(7);
  without.pods.front().starts = 3;
  ASSERT_TRUE(Number(without).ok());
  const Object pod = *client_.Get(Pods(), {"d", "a"});
  EXPECT_EQ(NumberOf("a"), "7");
  EXPECT_EQ(TextAt(*pod.json, {"metadata", "annotations", "siding.dev/starts"}), "3");
  EXPECT_TRUE(seal_.HoldsOn(PodFrom(pod)));
}

}  // namespace
}  // namespace siding::kubernetes
