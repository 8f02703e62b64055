#include "controller/platform/kubernetes/objects/admission.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Time kNow = *ParseTime("2026-05-01T12:00:00Z", Time{});

class AdmissionTest : public testing::Test {
 protected:
  static Json Annotated(const Json& annotations, const Json& spec = Json::object()) {
    Json object = {{"metadata", {{"annotations", annotations}}}, {"spec", spec}};
    object["spec"]["containers"] = Json::array({{{"name", "main"}}});
    return object;
  }
  static Json Waiting(const std::string& start_by, Json spec = Json::object()) {
    spec["schedulerName"] = "siding";
    return Annotated({{"siding.dev/start-by", start_by}}, spec);
  }
  // A Job, a Deployment and so on with this template.
  static Json Of(const Json& pod) { return {{"spec", {{"template", pod}}}}; }

  // Its "response".
  Json Ask(const std::string& kind, const Json& object, const Json& before = nullptr) const {
    const Json review = {{"request",
                          {{"uid", "u"},
                           {"kind", {{"kind", kind}}},
                           {"namespace", "d"},
                           {"name", "a"},
                           {"object", object},
                           {"oldObject", before}}}};
    const absl::StatusOr<Json> answer = AnswerReview(review, rules_, kNow);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(TextAt(*answer, {"apiVersion"}), "admission.k8s.io/v1");
    EXPECT_EQ(TextAt(*answer, {"response", "uid"}), "u");
    return (*answer)["response"];
  }
  // Why it is refused; "": it is not.
  std::string Why(const std::string& kind, const Json& object, const Json& before = nullptr) const {
    const Json response = Ask(kind, object, before);
    EXPECT_EQ(IsTrueAt(response, {"allowed"}), TextAt(response, {"status", "message"}).empty());
    return TextAt(response, {"status", "message"});
  }
  std::vector<std::string> Warnings(const std::string& kind, const Json& object) const {
    const Json response = Ask(kind, object);
    EXPECT_TRUE(IsTrueAt(response, {"allowed"}));
    return response.value("warnings", std::vector<std::string>());
  }

  AdmissionRules rules_{.left_alone = {"kube-system"}, .saves = true};
};

TEST_F(AdmissionTest, WhatAsksNothingIsLetThrough) {
  const Json response = Ask("Pod", Annotated(Json::object()));
  EXPECT_TRUE(IsTrueAt(response, {"allowed"}));
  EXPECT_FALSE(response.contains("warnings"));
}
TEST_F(AdmissionTest, WhatCannotBeReadIsRefusedWithItsName) {
  EXPECT_EQ(
      Why("Pod", Annotated({{"siding.dev/preemptible", "sometimes"}})),
      "metadata: siding.dev/preemptible: expected suspend, checkpoint and kill, or some of them, with commas "
      "between");
  const Json response = Ask("Pod", Annotated({{"siding.dev/preemptible", "sometimes"}}));
  EXPECT_EQ(WholeAt(response, {"status", "code"}), 400);
}
TEST_F(AdmissionTest, ATemplateIsLookedAtWhereItsKindHasIt) {
  const Json pod = Annotated({{"siding.dev/frob", "1"}});
  for (const char* kind :
       {"Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"})
    EXPECT_THAT(Why(kind, Of(pod)), HasSubstr("spec.template.metadata: siding.dev/frob: expected"));
  EXPECT_THAT(Why("CronJob", {{"spec", {{"jobTemplate", Of(pod)}}}}),
              HasSubstr("spec.jobTemplate.spec.template.metadata: siding.dev/frob"));
}
TEST_F(AdmissionTest, AKindWithoutPodsIsLetThrough) {
  EXPECT_THAT(Why("ConfigMap", Of(Annotated({{"siding.dev/frob", "1"}}))), IsEmpty());
}
TEST_F(AdmissionTest, ADeadlineThatIsOverIsRefused) {
  EXPECT_THAT(Why("Pod", Waiting("2026-05-01T11:59:59Z")), HasSubstr("expected a time to come"));
  EXPECT_THAT(Why("Pod", Waiting("2026-05-01T12:00:01Z")), IsEmpty());
  EXPECT_THAT(Why("Pod", Waiting("+1s")), IsEmpty());
}
TEST_F(AdmissionTest, ADeadlineNeedsAPodThatWaitsForSiding) {
  EXPECT_THAT(Why("Pod", Annotated({{"siding.dev/start-by", "+60s"}})), HasSubstr("schedulerName: siding"));
}
TEST_F(AdmissionTest, WhatSidingDoesNotPlanWithIsNamed) {
  const Json claims = {{"resourceClaims", Json::array({{{"name", "c"}}})}};
  EXPECT_THAT(Why("Pod", Waiting("+60s", claims)), HasSubstr("nothing that siding does not plan with"));
}

TEST_F(AdmissionTest, APodThatCannotBeSavedIsLetThroughWithAWarning) {
  const Json both = {{"siding.dev/preemptible", "checkpoint,kill"}};
  EXPECT_THAT(Warnings("Pod", Annotated(both, {{"runtimeClassName", "siding"}})),
              ElementsAre(AllOf(HasSubstr("it has no owner"), HasSubstr("evicted and begin again"))));
  EXPECT_THAT(Warnings("Pod", Annotated({{"siding.dev/preemptible", "checkpoint"}})),
              ElementsAre(HasSubstr("does not make way")));
}
TEST_F(AdmissionTest, APodOfAJobsTemplateHasAnOwner) {
  const Json pod = Annotated({{"siding.dev/preemptible", "checkpoint"}}, {{"runtimeClassName", "siding"}});
  EXPECT_THAT(Warnings("Job", Of(pod)), IsEmpty());
  EXPECT_THAT(Warnings("Deployment", Of(pod)), IsEmpty());
}
TEST_F(AdmissionTest, WithoutAgentsNoPodIsSaved) {
  rules_.saves = false;
  const Json pod =
      Annotated({{"siding.dev/preemptible", "checkpoint,kill"}}, {{"runtimeClassName", "siding"}});
  EXPECT_THAT(Warnings("Job", Of(pod)), ElementsAre(HasSubstr("only evicted in this cluster")));
}
TEST_F(AdmissionTest, AnAnnotationBesideTheTemplateIsSeenByNobody) {
  Json job = Of(Annotated(Json::object()));
  job["metadata"]["annotations"] = {{"siding.dev/preemptible", "kill"}};
  EXPECT_THAT(Warnings("Job", job), ElementsAre(HasSubstr("belongs into spec.template.metadata")));
}
TEST_F(AdmissionTest, InANamespaceThatIsLeftAloneNothingIsRefused) {
  rules_.left_alone.insert("d");
  EXPECT_THAT(Warnings("Pod", Waiting("2026-05-01T11:59:59Z")), ElementsAre(HasSubstr("leaves pods")));
}

TEST_F(AdmissionTest, WhatAControllerMakesIsLetThrough) {
  Json pod = Annotated({{"siding.dev/frob", "1"}});
  pod["metadata"]["ownerReferences"] = Json::array({{{"kind", "Job"}, {"controller", true}}});
  EXPECT_THAT(Why("Pod", pod), IsEmpty());
}
TEST_F(AdmissionTest, WhatStaysAsItIsMayChangeOtherwise) {
  const Json wrong = Annotated({{"siding.dev/frob", "1"}});
  Json moved = wrong;
  moved["metadata"]["finalizers"] = Json::array();
  moved["metadata"]["annotations"]["siding.dev/job"] = "7";
  EXPECT_THAT(Why("Pod", moved, wrong), IsEmpty());
  EXPECT_THAT(Why("Job", Of(moved), Of(wrong)), IsEmpty());
}
TEST_F(AdmissionTest, AChangeToNonsenseIsRefused) {
  EXPECT_THAT(Why("Pod", Annotated({{"siding.dev/frob", "1"}}), Annotated(Json::object())),
              HasSubstr("siding.dev/frob"));
}
TEST_F(AdmissionTest, WhatIsDeletedIsLetThrough) {
  EXPECT_THAT(Why("Pod", nullptr, Annotated({{"siding.dev/frob", "1"}})), IsEmpty());
}

TEST_F(AdmissionTest, ARequestIsLookedAtFieldByField) {
  const auto request = [](const std::string& start_by) -> Json {
    return {{"spec",
             {{"startBy", start_by},
              {"template", {{"spec", {{"containers", Json::array({{{"name", "a"}}})}}}}}}}};
  };
  EXPECT_THAT(Why("OnDemandRequest", request("soon")), HasSubstr("spec.startBy: expected a time"));
  EXPECT_THAT(Why("OnDemandRequest", request("2026-05-01T11:00:00Z")),
              HasSubstr("spec.startBy: expected a time to come"));
  EXPECT_THAT(Why("OnDemandRequest", request("+60s")), IsEmpty());
  EXPECT_THAT(Why("OnDemandRequest", request("soon"), request("soon")), IsEmpty());
}

TEST_F(AdmissionTest, WhatIsNoReviewIsAnError) {
  EXPECT_FALSE(AnswerReview(Json::object(), rules_, kNow).ok());
  EXPECT_FALSE(AnswerReview(Json::array(), rules_, kNow).ok());
  EXPECT_FALSE(AnswerReview({{"request", {{"uid", "u"}}}}, rules_, kNow).ok());
}

}  // namespace
}  // namespace siding::kubernetes
