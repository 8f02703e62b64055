#include "controller/platform/kubernetes/reconcile/requests.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/reconcile/objects_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

FakeApiServer::Settings Served(bool with_requests) {
  FakeApiServer::Settings settings{.resources = {Pods()}};
  if (with_requests) settings.resources.push_back(OnDemandRequests());
  return settings;
}

class RequestsTest : public ObjectsTest {
 protected:
  explicit RequestsTest(bool with_requests = true) : ObjectsTest(Served(with_requests)) { Restart(); }
  // As a controller that has just started.
  void Restart() {
    requests_.reset();
    requests_.emplace(
        transport_, pacer_, clock_, std::set<std::string>{"kube-system"},
        Requests::Sources{
            [this](const ObjectName& name) { return StandingOf(name); }, [this](JobId) { return outlook_; },
            [this] { Wake(); },
            [this](const std::string& target, const std::string& action, const absl::Status& status) {
              log_.push_back(target + ": " + action + (status.ok() ? "" : ": not done"));
              return status.ok();
            }});
  }
  // Rounds, until what they do is done and told.
  void Settle() {
    for (int i = 0; i < 6; ++i) {
      const ObjectName last = Last();
      Put("ondemandrequests", last, {{"spec", {{"startBy", "never"}}}});
      RoundsUntil([&] { requests_->Round(client_); }, [&] { return Said("state", last) == "Invalid"; });
      Remove("ondemandrequests", last);
    }
  }
  std::optional<PodStanding> StandingOf(const ObjectName& name) {
    const absl::StatusOr<Object> pod = client_.Get(Pods(), name);
    if (!pod.ok()) return std::nullopt;
    return PodStanding{PodFrom(*pod), JobId(5), ""};
  }
  void Ask(const Json& spec = Json::object(), const ObjectName& name = {"d", "steer"}, int generation = 1) {
    Json json = {{"metadata", {{"creationTimestamp", "2026-01-01T00:00:00Z"}, {"generation", generation}}},
                 {"spec",
                  {{"startBy", "+60s"},
                   {"template", {{"spec", {{"containers", Json::array({{{"name", "main"}}})}}}}}}}};
    json["spec"].update(spec);
    if (const auto now = client_.Get(OnDemandRequests(), name); now.ok() && now->json->contains("status"))
      json["status"] = (*now->json)["status"];
    Put("ondemandrequests", name, json);
  }
  Json Now(const ObjectName& name = {"d", "steer"}) { return *client_.Get(OnDemandRequests(), name)->json; }
  std::string Said(const char* field, const ObjectName& name = {"d", "steer"}) {
    return TextAt(Now(name), {"status", field});
  }
  std::vector<std::string> PodNames() {
    std::vector<std::string> names;
    const auto pods = client_.List(Pods(), {});
    for (const Object& pod : pods->items) names.push_back(pod.name.name);
    return names;
  }
  void SetPhase(const std::string& pod, const std::string& phase) {
    ASSERT_TRUE(client_.MergePatch(Pods(), {"d", pod}, {{"status", {{"phase", phase}}}}).ok());
  }
  void RemovePod(const std::string& pod) { Remove("pods", {"d", pod}); }

  std::optional<Outlook> outlook_;
  std::optional<Requests> requests_;  // last: it uses the others
};

class NoRequestsTest : public RequestsTest {
 protected:
  NoRequestsTest() : RequestsTest(false) {}
};

TEST_F(NoRequestsTest, AServerThatHasNoneIsAskedNowAndThen) {
  for (int i = 0; i < 3; ++i) requests_->Round(client_);
  EXPECT_THAT(transport_.asked(), ElementsAre("GET /apis/siding.dev/v1alpha1"));
  clock_.Advance(std::chrono::seconds(30));
  requests_->Round(client_);
  EXPECT_THAT(transport_.asked(), SizeIs(2));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(RequestsTest, ItsPodsAreMadeAndItsStatusIsWritten) {
  Ask({{"count", 2}});
  outlook_ = Outlook{.planned = true, .text = "will get n1"};
  Settle();
  EXPECT_THAT(PodNames(), SizeIs(2));
  EXPECT_EQ(Now()["status"]["pods"].size(), 2);
  EXPECT_EQ(Said("state"), "Planned");
}
TEST_F(RequestsTest, NothingIsWrittenWhileNothingChanges) {
  Ask();
  Settle();
  const int64_t written = CountAsked("PATCH");
  clock_.Advance(std::chrono::hours(1));
  Settle();
  EXPECT_EQ(CountAsked("PATCH"), written);
  EXPECT_EQ(CountAsked("POST"), 1);
}
TEST_F(RequestsTest, OneWhosePodsEndedIsLeftAlone) {
  Ask();
  Settle();
  SetPhase(PodNames()[0], "Succeeded");
  Settle();
  EXPECT_EQ(Said("state"), "Completed");
  RemovePod(PodNames()[0]);
  Restart();
  Settle();
  EXPECT_EQ(Said("state"), "Completed");
  EXPECT_THAT(PodNames(), IsEmpty());
}
TEST_F(RequestsTest, APodThatWasDeletedIsNotMadeAgain) {
  Ask();
  Settle();
  RemovePod(PodNames()[0]);
  Settle();
  EXPECT_EQ(Said("state"), "Failed");
  Restart();
  Settle();
  EXPECT_THAT(PodNames(), IsEmpty());
}
TEST_F(RequestsTest, OneThatIsBeingDeletedGetsNoPods) {
  Ask();
  Json json = Now();
  json["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
  Put("ondemandrequests", {"d", "steer"}, json);
  Settle();
  EXPECT_THAT(PodNames(), IsEmpty());
}
TEST_F(RequestsTest, WhatCannotBeReadTouchesNothing) {
  Ask({{"walltime", "long"}});
  Settle();
  EXPECT_THAT(Said("reason"), HasSubstr("spec.walltime: expected a duration"));
  EXPECT_EQ(CountAsked("POST"), 0);
}
TEST_F(RequestsTest, WhatIsMendedBeforeItWasAcceptedIsServed) {
  Ask({{"walltime", "long"}});
  Settle();
  Ask({{"walltime", "10m"}}, {"d", "steer"}, 2);
  Settle();
  EXPECT_THAT(PodNames(), SizeIs(1));
  EXPECT_EQ(Said("reason"), "");
}
TEST_F(RequestsTest, NamespacesThatAreLeftAloneGetNoPods) {
  const ObjectName there{"kube-system", "steer"};
  Ask(Json::object(), there);
  Settle();
  EXPECT_THAT(Said("reason", there), HasSubstr("siding leaves pods of kube-system alone"));
  EXPECT_EQ(CountAsked("POST"), 0);
}
TEST_F(RequestsTest, ATemplateThatTheServerRefusesIsInvalidOnceAndForAll) {
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "/pods",
                  .method = HttpMethod::kPost,
                  .times = 100,
                  .code = 422,
                  .reason = "Invalid"});
  Ask({{"count", 3}});
  Settle();
  EXPECT_THAT(Said("reason"), HasSubstr("spec.template: expected what the server takes"));
  clock_.Advance(std::chrono::hours(1));
  Restart();
  Settle();
  EXPECT_EQ(CountAsked("POST"), 1);
}
TEST_F(RequestsTest, WhatFailsForNowIsSaidAndTriedAgainLater) {
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "/pods",
                  .method = HttpMethod::kPost,
                  .code = 403,
                  .reason = "Forbidden"});
  Ask();
  Settle();
  EXPECT_THAT(Said("reason"), HasSubstr("403"));
  EXPECT_EQ(CountAsked("POST"), 1);
  clock_.Advance(std::chrono::seconds(5));
  Settle();
  EXPECT_THAT(PodNames(), SizeIs(1));
  EXPECT_EQ(Said("reason"), "");
}
TEST_F(RequestsTest, AnothersPodOfTheNameIsNotTouched) {
  Ask();
  const std::string name = PodNameOf(RequestFrom(*client_.Get(OnDemandRequests(), {"d", "steer"})), 0);
  Put("pods", {"d", name}, {{"metadata", {{"labels", {{"a", "b"}}}}}});
  Settle();
  EXPECT_THAT(Said("reason"), HasSubstr("is not this request's"));
  EXPECT_EQ(CountAsked("POST"), 0);
  RemovePod(name);
  Settle();
  EXPECT_EQ(Now()["status"]["pods"].size(), 1);
}
TEST_F(RequestsTest, ALargeRequestIsMadeInSeveralRounds) {
  Ask({{"count", 120}});
  Settle();
  EXPECT_THAT(PodNames(), SizeIs(120));
  EXPECT_EQ(Now()["status"]["pods"].size(), 120);
}
// A controller ends after any of its changes, or does not hear that it was done; the next one goes on.
TEST_F(RequestsTest, WhereverAControllerEndsTheNextOneGoesOn) {
  for (int after = 0; after < 8; ++after) {
    const ObjectName name{"d", "steer" + std::to_string(after)};
    for (const char* method : {"POST", "PATCH"}) {
      transport_.Add({.kind = after % 2 == 0 ? Fault::Kind::kUnreachable : Fault::Kind::kAnswerLost,
                      .path = std::string(method) == "POST" ? "/d/pods" : "/d/ondemandrequests",
                      .method = std::string(method) == "POST" ? HttpMethod::kPost : HttpMethod::kPatch,
                      .times = after / 2 + 1});
    }
    Ask({{"count", 2}}, name);
    for (int i = 0; i < 8; ++i) {
      Settle();
      Restart();
    }
    Settle();
    EXPECT_EQ(Now(name)["status"]["pods"].size(), 2) << after;
    EXPECT_THAT(PodNames(), SizeIs(2 * (after + 1)));
  }
}

}  // namespace
}  // namespace siding::kubernetes
