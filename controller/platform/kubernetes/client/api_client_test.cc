#include "controller/platform/kubernetes/client/api_client.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Kind = Fault::Kind;

class ApiClientTest : public testing::Test {
 protected:
  Object AddPod(const std::string& name, Json more = Json::object()) {
    more["metadata"]["name"] = name;
    return *client_.Create(Pods(), "d", more);
  }
  Object Now(const std::string& name) { return *client_.Get(Pods(), {"d", name}); }
  void AddBudget(int least) {
    server_.store().Put(
        "poddisruptionbudgets", {"d", "b"},
        {{"spec", {{"minAvailable", least}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}});
  }
  static Json Ready(const char* ready) {
    return {{"metadata", {{"labels", {{"app", "x"}}}}},
            {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}};
  }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_;
  FakeTransport transport_{server_, clock_};
  ApiClient client_{transport_, pacer_};
};

TEST_F(ApiClientTest, WhatWasMadeIsFound) {
  const Object pod = AddPod("a");
  EXPECT_EQ(Now("a").uid, pod.uid);
  EXPECT_TRUE(absl::IsNotFound(client_.Get(Pods(), {"d", "b"}).status()));
}
TEST_F(ApiClientTest, ANameIsTakenOnce) {
  AddPod("a");
  const absl::Status again = client_.Create(Pods(), "d", {{"metadata", {{"name", "a"}}}}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
}

TEST_F(ApiClientTest, AListHasAllPagesOfOneMoment) {
  for (const char* name : {"a", "b", "c", "e", "f"}) AddPod(name);
  const auto list = client_.List(Pods(), {}, 2);
  ASSERT_TRUE(list.ok());
  EXPECT_THAT(list->items, SizeIs(5));
  EXPECT_EQ(list->version, std::to_string(server_.store().version()));
}
TEST_F(ApiClientTest, AListWhoseTokenExpiresBeginsAgainWithoutPages) {
  for (const char* name : {"a", "b", "c"}) AddPod(name);
  const auto first = client_.GetPage(Pods(), {}, 2, "");
  server_.Compact();
  EXPECT_TRUE(absl::IsOutOfRange(client_.GetPage(Pods(), {}, 2, first->next).status()));

  transport_.Add({.kind = Kind::kSlow, .path = "/pods", .takes = seconds(1)});
  transport_.Add({.kind = Kind::kAnswer, .path = "/pods", .code = 410, .reason = "Expired"});
  const auto list = client_.List(Pods(), {}, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->items, SizeIs(3));
  EXPECT_EQ(transport_.asked().back(), "GET /api/v1/pods");
}
TEST_F(ApiClientTest, AListSelects) {
  AddPod("a", {{"metadata", {{"labels", {{"app", "x"}}}}}});
  AddPod("b");
  EXPECT_THAT(client_.List(Pods(), {.labels = "app=x"})->items, SizeIs(1));
  EXPECT_THAT(client_.List(Pods(), {.fields = "metadata.name=b"})->items, SizeIs(1));
}

TEST_F(ApiClientTest, LookingIsTriedAgain) {
  AddPod("a");
  transport_.Add({.kind = Kind::kUnreachable, .path = "/pods/a", .times = 3});
  EXPECT_TRUE(client_.Get(Pods(), {"d", "a"}).ok());
}
TEST_F(ApiClientTest, NotForEver) {
  transport_.Add({.kind = Kind::kAnswer, .path = "/pods/a", .times = 100, .code = 503});
  EXPECT_TRUE(absl::IsUnavailable(client_.Get(Pods(), {"d", "a"}).status()));
  EXPECT_THAT(transport_.asked(), SizeIs(4));
}
TEST_F(ApiClientTest, AChangeThatMayBeDoneIsNotTriedAgain) {
  transport_.Add({.kind = Kind::kAnswerLost, .path = "/pods"});
  EXPECT_TRUE(absl::IsUnavailable(client_.Create(Pods(), "d", {{"metadata", {{"name", "a"}}}}).status()));
  EXPECT_THAT(transport_.asked(), SizeIs(1));
  EXPECT_EQ(Now("a").name.name, "a");
}
TEST_F(ApiClientTest, AChangeThatABusyServerHasNotDoneIs) {
  transport_.Add({.kind = Kind::kAnswer, .path = "/pods", .code = 429, .retry_after = seconds(9)});
  AddPod("a");
  EXPECT_GE(clock_.Now(), FromMicros(0) + seconds(9));
}
TEST_F(ApiClientTest, AServerThatIsBusyForLongIsNotWaitedFor) {
  transport_.Add({.kind = Kind::kAnswer, .path = "/pods", .code = 429, .retry_after = seconds(600)});
  EXPECT_TRUE(absl::IsResourceExhausted(client_.List(Pods(), {}).status()));
}
TEST_F(ApiClientTest, AStopEndsACall) {
  std::stop_source stop;
  ApiClient client(transport_, pacer_, stop.get_token());
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(client.Get(Pods(), {"d", "a"}).status()));
}
TEST_F(ApiClientTest, ARoleThatIsTooSmallIsNamed) {
  transport_.Forbid(HttpMethod::kGet, "pods");
  const absl::Status status = client_.List(Pods(), {}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(), HasSubstr("list pods: 403 Forbidden"));
}

TEST_F(ApiClientTest, AMergePatchKeepsTheRest) {
  AddPod("a", {{"spec", {{"unknown", 1}}}});
  const auto pod = client_.MergePatch(Pods(), {"d", "a"}, {{"spec", {{"more", 2}}}});
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ((*pod->json)["spec"], Json({{"unknown", 1}, {"more", 2}}));
}
TEST_F(ApiClientTest, AMergePatchOfAnotherVersionIsAborted) {
  const Object pod = AddPod("a");
  const Json patch = {{"metadata", {{"resourceVersion", pod.version}, {"labels", {{"l", "1"}}}}}};
  EXPECT_TRUE(client_.MergePatch(Pods(), {"d", "a"}, patch).ok());
  EXPECT_TRUE(absl::IsAborted(client_.MergePatch(Pods(), {"d", "a"}, patch).status()));
}
TEST_F(ApiClientTest, AMergePatchOfAnotherUidIsInvalid) {
  AddPod("a");
  const Json patch = {{"metadata", {{"uid", "other"}}}};
  EXPECT_TRUE(absl::IsInvalidArgument(client_.MergePatch(Pods(), {"d", "a"}, patch).status()));
}
TEST_F(ApiClientTest, AJsonPatchWhoseTestDoesNotHoldChangesNothing) {
  AddPod("a", {{"spec", {{"schedulingGates", {{{"name", "g"}}}}}}});
  const Json patch = {{{"op", "test"}, {"path", "/spec/schedulingGates/0/name"}, {"value", "other"}},
                      {{"op", "remove"}, {"path", "/spec/schedulingGates/0"}}};
  EXPECT_TRUE(absl::IsInvalidArgument(client_.JsonPatch(Pods(), {"d", "a"}, patch).status()));
  EXPECT_THAT((*Now("a").json)["spec"]["schedulingGates"], SizeIs(1));
}
TEST_F(ApiClientTest, AStatusIsAllThatIsWrittenByItsWay) {
  AddPod("a", {{"spec", {{"x", 1}}}});
  const Json patch = {{"spec", {{"x", 2}}}, {"status", {{"phase", "Running"}}}};
  const auto pod = client_.MergePatch(Pods(), {"d", "a"}, patch, "status");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ((*pod->json)["spec"]["x"], 1);
  EXPECT_EQ((*pod->json)["status"]["phase"], "Running");
}
TEST_F(ApiClientTest, OfTwoWhoReplaceALeaseOneIsAborted) {
  const Resource leases{"coordination.k8s.io", "v1", "leases"};
  const auto lease = client_.Create(leases, "d", {{"metadata", {{"name", "l"}}}, {"spec", {{"holder", ""}}}});
  ASSERT_TRUE(lease.ok()) << lease.status();
  Json mine = *lease->json;
  mine["spec"]["holder"] = "a";
  EXPECT_TRUE(client_.Replace(leases, lease->name, mine).ok());
  EXPECT_TRUE(absl::IsAborted(client_.Replace(leases, lease->name, mine).status()));
}

TEST_F(ApiClientTest, OnlyThePodThatIsMeantIsDeleted) {
  const Object pod = AddPod("a");
  EXPECT_TRUE(absl::IsAborted(client_.Delete(Pods(), pod.name, {.uid = "other"})));
  EXPECT_TRUE(client_.Delete(Pods(), pod.name, {.uid = pod.uid, .version = pod.version}).ok());
}
TEST_F(ApiClientTest, AnEvictedPodIsThereUntilItsGraceIsOver) {
  const Object pod = AddPod("a", {{"spec", {{"nodeName", "n"}}}});
  EXPECT_TRUE(client_.Evict(pod.name, {.uid = pod.uid}, seconds(10), "v1beta1").ok());
  EXPECT_NE(TextAt(*Now("a").json, {"metadata", "deletionTimestamp"}), "");
  clock_.Advance(seconds(10));
  EXPECT_TRUE(absl::IsNotFound(client_.Get(Pods(), pod.name).status()));
}
TEST_F(ApiClientTest, WhetherAPodMayBeEvictedIsOnlyAsked) {
  AddPod("a", Ready("True"));
  EXPECT_TRUE(client_.MayEvict({"d", "a"}, {}, "v1beta1").ok());
  EXPECT_TRUE(client_.Get(Pods(), {"d", "a"}).ok());
  AddBudget(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(client_.MayEvict({"d", "a"}, {}, "v1beta1")));
}
TEST_F(ApiClientTest, ABudgetIsInTheWayOnceAndForAll) {
  AddBudget(1);
  AddPod("a", Ready("True"));
  const absl::Status status = client_.Evict({"d", "a"}, {}, {}, "v1beta1");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(ErrorOf(status)->IsBudget());
  EXPECT_THAT(transport_.asked(), SizeIs(2));
}
TEST_F(ApiClientTest, ABudgetSaysNothingOfAPodThatIsNotReady) {
  AddBudget(1);
  AddPod("a", Ready("False"));
  EXPECT_TRUE(client_.Evict({"d", "a"}, {}, {}, "v1beta1").ok());
}
TEST_F(ApiClientTest, AnEvictionOfAnotherVersionIsRefused) {
  AddPod("a");
  EXPECT_TRUE(absl::IsInvalidArgument(client_.Evict({"d", "a"}, {}, {}, "v1")));
}

TEST_F(ApiClientTest, ABoundPodIsOnItsNode) {
  const Object pod = AddPod("a");
  const auto bound = client_.Bind(pod.name, pod.uid, "n");
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(TextAt(*bound->json, {"spec", "nodeName"}), "n");
}
TEST_F(ApiClientTest, ABindingOfAnotherPodIsFoundOut) {
  AddPod("a");
  const absl::Status status = client_.Bind({"d", "a"}, "other", "n").status();
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(status.message(), HasSubstr("another pod has this name now"));
}
TEST_F(ApiClientTest, ABindingWhoseAnswerIsLostIsFoundDone) {
  const Object pod = AddPod("a");
  transport_.Add({.kind = Kind::kAnswerLost, .path = "/binding"});
  EXPECT_TRUE(client_.Bind(pod.name, pod.uid, "n").ok());
  EXPECT_TRUE(client_.Bind(pod.name, pod.uid, "n").ok());
}
TEST_F(ApiClientTest, APodIsBoundToOneNode) {
  const Object pod = AddPod("a");
  ASSERT_TRUE(client_.Bind(pod.name, pod.uid, "n").ok());
  EXPECT_TRUE(absl::IsAborted(client_.Bind(pod.name, pod.uid, "m").status()));
}

TEST_F(ApiClientTest, AWatchShowsWhatCameAfterAVersion) {
  const Object pod = AddPod("a");
  AddPod("b");
  std::vector<std::string> seen;
  const auto read = [&](absl::string_view line) {
    seen.push_back(EventFrom(line, "watch")->object.name.name);
    return true;
  };
  EXPECT_TRUE(client_.Watch(Pods(), {}, pod.version, seconds(60), read).ok());
  EXPECT_THAT(seen, ElementsAre("b", ""));  // a bookmark at the end
}
TEST_F(ApiClientTest, APodThatLeavesTheSelectionIsDeletedFromIt) {
  const Object pod = AddPod("a", {{"metadata", {{"labels", {{"app", "x"}}}}}});
  ASSERT_TRUE(client_.MergePatch(Pods(), pod.name, {{"metadata", {{"labels", {{"app", "y"}}}}}}).ok());
  std::vector<WatchEvent::Kind> seen;
  const auto read = [&](absl::string_view line) {
    seen.push_back(EventFrom(line, "watch")->kind);
    return true;
  };
  EXPECT_TRUE(client_.Watch(Pods(), {.labels = "app=x"}, pod.version, seconds(60), read).ok());
  EXPECT_EQ(seen.front(), WatchEvent::Kind::kDeleted);
}

TEST_F(ApiClientTest, DiscoveryFindsTheEviction) {
  const auto found = Discover(client_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->eviction, "v1beta1");
  EXPECT_EQ(found->server, "v1.20.2");
  EXPECT_TRUE(found->Has("coordination.k8s.io", "v1"));
  EXPECT_FALSE(found->Has("resource.k8s.io", "v1"));
}
TEST_F(ApiClientTest, AResourceIsThereOrNot) {
  EXPECT_TRUE(*HasResource(client_, {"policy", "v1", "poddisruptionbudgets", true}));
  EXPECT_FALSE(*HasResource(client_, {"policy", "v1", "others", true}));
  EXPECT_FALSE(*HasResource(client_, {"policy", "v2", "poddisruptionbudgets", true}));
  EXPECT_FALSE(*HasResource(client_, OnDemandRequests()));
}

TEST_F(ApiClientTest, WhoMayNotActMayLook) {
  const Object pod = AddPod("a");
  auto guarded = NewGuardedTransport(std::make_unique<FakeTransport>(server_, clock_),
                                     [] { return absl::AbortedError("fenced"); });
  ApiClient client(*guarded, pacer_);
  EXPECT_TRUE(client.Get(Pods(), pod.name).ok());
  EXPECT_THAT(client.Delete(Pods(), pod.name, {}).message(), HasSubstr("fenced"));
  EXPECT_TRUE(client_.Get(Pods(), pod.name).ok());
}

}  // namespace
}  // namespace siding::kubernetes
