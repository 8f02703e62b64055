#include "controller/platform/kubernetes/objects/request.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/objects/asks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;
using testing::Not;

const Json kRequest = {{"metadata",
                        {{"name", "steer"},
                         {"namespace", "d"},
                         {"uid", "0b9d"},
                         {"resourceVersion", "7"},
                         {"generation", 1},
                         {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
                       {"spec",
                        {{"startBy", "+60s"},
                         {"template",
                          {{"metadata", {{"labels", {{"app", "x"}}}}},
                           {"spec", {{"containers", Json::array({{{"name", "main"}}})}}}}}}}};

Request With(const std::function<void(Json& json)>& change = [](Json&) {}) {
  Json json = kRequest;
  change(json);
  return RequestFrom(*ObjectFrom(json));
}
Request WithSpec(const std::function<void(Json& spec)>& change) {
  return With([&](Json& json) { change(json["spec"]); });
}
std::string WhyInvalid(const std::function<void(Json& spec)>& change) {
  const absl::StatusOr<RequestSpec> spec = SpecOf(WithSpec(change));
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}
Pod PodAt(const Request& request, int index) {
  Json json = PodOf(request, *SpecOf(request), index);
  json["metadata"]["uid"] = "uid";
  json["metadata"]["resourceVersion"] = "1";
  return PodFrom(*ObjectFrom(json));
}

TEST(RequestTest, ItsPodAsksWhatItAsks) {
  const Request request = WithSpec([](Json& spec) {
    spec["notBefore"] = "+30s";
    spec["walltime"] = "10m";
  });
  const Pod pod = PodAt(request, 0);
  EXPECT_EQ(pod.name.space, "d");
  EXPECT_EQ(pod.scheduler, "siding");
  const auto ask = AskOf(pod);
  ASSERT_TRUE(ask.ok() && *ask) << ask.status();
  EXPECT_EQ((*ask)->start_by, request.created + std::chrono::seconds(60));
  EXPECT_EQ((*ask)->not_before, request.created + std::chrono::seconds(30));
  EXPECT_EQ((*ask)->walltime, std::chrono::minutes(10));
  EXPECT_EQ((*ask)->gang, "");
}
TEST(RequestTest, TheDeadlineCountsFromTheRequestNotFromThePod) {
  EXPECT_EQ(SaidBy(PodAt(With(), 0), "start-by"), "2026-01-01T00:01:00.000Z");
}
TEST(RequestTest, ItsPodIsDeletedWithIt) {
  const Json pod = PodOf(With(), *SpecOf(With()), 0);
  EXPECT_EQ(pod["metadata"]["ownerReferences"], Json::array({{{"apiVersion", "siding.dev/v1alpha1"},
                                                              {"kind", "OnDemandRequest"},
                                                              {"name", "steer"},
                                                              {"uid", "0b9d"},
                                                              {"controller", true},
                                                              {"blockOwnerDeletion", true}}}));
}
TEST(RequestTest, ThePodIsTheTemplates) {
  const Request request = WithSpec([](Json& spec) {
    spec["template"]["metadata"]["annotations"] = {{"other", "y"}};
    spec["template"]["spec"]["unheardOf"] = 7;
  });
  const Json pod = PodOf(request, *SpecOf(request), 0);
  EXPECT_EQ(pod["metadata"]["labels"], Json({{"app", "x"}}));
  EXPECT_EQ(pod["metadata"]["annotations"]["other"], "y");
  EXPECT_EQ(pod["spec"]["unheardOf"], 7);
}
TEST(RequestTest, SeveralPodsAreAGang) {
  const Request request = WithSpec([](Json& spec) { spec["count"] = 3; });
  const auto ask = AskOf(PodAt(request, 2));
  ASSERT_TRUE(ask.ok()) << ask.status();
  EXPECT_EQ((*ask)->gang_size, 3);
  EXPECT_EQ((*ask)->gang, (*AskOf(PodAt(request, 0)))->gang);
}
TEST(RequestTest, ThePodsNamesAreTheSameWhoeverMakesThem) {
  EXPECT_EQ(PodNameOf(With(), 0), PodNameOf(With(), 0));
  EXPECT_NE(PodNameOf(With(), 0), PodNameOf(With(), 1));
}
TEST(RequestTest, ARequestOfTheSameNameThatComesLaterHasOtherPods) {
  EXPECT_NE(PodNameOf(With(), 0), PodNameOf(With([](Json& json) { json["metadata"]["uid"] = "1"; }), 0));
}
TEST(RequestTest, ALongNameIsCutWhereANameMayEnd) {
  const auto called = [](const std::string& name) {
    const std::string pod =
        PodNameOf(With([&](Json& json) { json["metadata"]["name"] = name; }), kMostPods - 1);
    return pod.substr(0, pod.size() - 4);
  };
  EXPECT_EQ(called(std::string(253, 'a')).size(), 63);
  EXPECT_EQ(called(std::string(53, 'a') + "." + std::string(9, 'b')).size(), 62);
  EXPECT_THAT(called(std::string(53, 'a') + ".b"), Not(HasSubstr(".")));
}

TEST(RequestTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec.erase("startBy"); }),
              HasSubstr("spec.startBy: expected a deadline"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec.erase("template"); }), HasSubstr("spec.template: expected"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["template"]["spec"].erase("containers"); }),
              HasSubstr("spec.template.spec.containers: expected"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec = 1; }), HasSubstr("spec.template: expected"));
}
TEST(RequestTest, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["startBy"] = "soon"; }),
              HasSubstr("spec.startBy: expected a time"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["startBy"] = 60; }),
              HasSubstr("spec.startBy: expected a time"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["notBefore"] = ""; }),
              HasSubstr("spec.notBefore: expected a time"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["walltime"] = "0s"; }),
              HasSubstr("spec.walltime: expected a duration"));
  for (const Json& count : {Json(0), Json(1001), Json("2"), Json(1.5)})
    EXPECT_THAT(WhyInvalid([&](Json& spec) { spec["count"] = count; }),
                HasSubstr("spec.count: expected a whole"));
}
TEST(RequestTest, WhatContradictsItselfIsNamed) {
  EXPECT_EQ(WhyInvalid([](Json& spec) { spec["notBefore"] = "+61s"; }),
            "spec.notBefore: expected a time before startBy");
}
TEST(RequestTest, WhatTheTemplateSaysForSidingIsRefused) {
  EXPECT_THAT(WhyInvalid([](Json& spec) {
                spec["template"]["metadata"]["annotations"] = {{"siding.dev/walltime", "1m"}};
              }),
              HasSubstr("spec.template.metadata.annotations[siding.dev/walltime]: expected nothing"));
  EXPECT_THAT(WhyInvalid([](Json& spec) {
                spec["template"]["metadata"]["labels"]["siding.dev/preemptible"] = "kill";
              }),
              HasSubstr("spec.template.metadata.labels[siding.dev/preemptible]: expected nothing"));
  EXPECT_THAT(WhyInvalid([](Json& spec) {
                spec["template"]["spec"]["schedulingGates"] = Json::array({{{"name", "siding.dev/wait"}}});
              }),
              HasSubstr("spec.template.spec.schedulingGates: expected no gate"));
}
TEST(RequestTest, WhatSidingWouldNotObeyIsRefused) {
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["template"]["spec"]["schedulerName"] = "other"; }),
              HasSubstr("spec.template.spec.schedulerName: expected siding"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["template"]["spec"]["nodeName"] = "n1"; }),
              HasSubstr("spec.template.spec.nodeName: expected nothing"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["template"]["metadata"]["name"] = "x"; }),
              HasSubstr("spec.template.metadata.name: expected nothing but labels"));
  EXPECT_THAT(WhyInvalid([](Json& spec) { spec["template"]["metadata"]["labels"]["a"] = 1; }),
              HasSubstr("spec.template.metadata.labels[a]: expected a text"));
}
TEST(RequestTest, WhatProgramsWriteInTemplatesIsTaken) {
  EXPECT_TRUE(SpecOf(WithSpec([](Json& spec) {
                spec["template"]["metadata"]["creationTimestamp"] = nullptr;
                spec["template"]["spec"]["schedulerName"] = "siding";
              })).ok());
}

}  // namespace
}  // namespace siding::kubernetes
