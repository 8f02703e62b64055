#include "controller/platform/kubernetes/objects/placement.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kLabels[] = "matchExpressions";

// One element alone in braces is a list to some compilers only.
Json List(const Json& only) { return Json::array({only}); }

Json Affinity(const std::vector<Json>& terms) {
  return {{"affinity",
           {{"nodeAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}}}};
}
Json Term(const std::string& key, const std::string& op, const std::vector<std::string>& values,
          const char* of = kLabels) {
  return {{of, List({{"key", key}, {"operator", op}, {"values", values}})}};
}

// The node n1 has zone=a, cores=8 and what taints are given.
std::string WhyNot(const Json& spec, const std::vector<Taint>& taints = {}) {
  return WhyNotThere(PlacementFrom({{"spec", spec}}), "n1", {{"zone", "a"}, {"cores", "8"}}, taints);
}
Json Tolerating(const Json& toleration) { return {{"tolerations", List(toleration)}}; }

TEST(Placement, APodThatAsksNothingMayBeAnywhere) { EXPECT_EQ(WhyNot(Json::object()), ""); }

TEST(Placement, TheSelectorIsOfLabels) {
  EXPECT_EQ(WhyNot({{"nodeSelector", {{"zone", "a"}}}}), "");
  EXPECT_EQ(WhyNot({{"nodeSelector", {{"zone", "b"}}}}), "the node has not the label zone=b");
  EXPECT_EQ(WhyNot({{"nodeSelector", {{"gpu", "yes"}}}}), "the node has not the label gpu=yes");
}

TEST(Placement, OneTermIsEnough) {
  EXPECT_EQ(WhyNot(Affinity({Term("zone", "In", {"b"}), Term("zone", "In", {"a"})})), "");
  EXPECT_NE(WhyNot(Affinity({Term("zone", "In", {"b"})})), "");
}
TEST(Placement, ATermThatAsksNothingIsMetByNone) {
  EXPECT_NE(WhyNot(Affinity({Json::object()})), "");
  EXPECT_NE(WhyNot(Affinity({})), "");
}
TEST(Placement, OperatorsAreTheSchedulers) {
  for (const auto& [op, key, values, met] :
       std::vector<std::tuple<std::string, std::string, std::vector<std::string>, bool>>{
           {"In", "zone", {"a", "b"}, true},
           {"NotIn", "zone", {"a"}, false},
           {"NotIn", "none", {"a"}, true},
           {"Exists", "zone", {}, true},
           {"Exists", "none", {}, false},
           {"DoesNotExist", "none", {}, true},
           {"DoesNotExist", "zone", {}, false},
           {"Gt", "cores", {"7"}, true},
           {"Gt", "cores", {"8"}, false},
           {"Lt", "cores", {"9"}, true},
           {"Lt", "none", {"9"}, false},
           {"Gt", "zone", {"7"}, false},
           {"Near", "cores", {"8"}, false},
       }) {
    EXPECT_EQ(WhyNot(Affinity({Term(key, op, values)})).empty(), met) << op << " " << key;
  }
}
TEST(Placement, ATermMayNameTheNode) {
  EXPECT_EQ(WhyNot(Affinity({Term("metadata.name", "In", {"n1"}, "matchFields")})), "");
  EXPECT_NE(WhyNot(Affinity({Term("metadata.name", "In", {"n2"}, "matchFields")})), "");
}

TEST(Placement, ATaintKeepsPodsOffThatDoNotTolerateIt) {
  const std::vector<Taint> taints = {{"team", "x", "NoSchedule"}};
  EXPECT_EQ(WhyNot(Json::object(), taints), "the node has the taint team=x:NoSchedule");
  EXPECT_EQ(WhyNot(Json::object(), {{"team", "x", "PreferNoSchedule"}}), "");
  for (const auto& [toleration, tolerated] : std::vector<std::pair<Json, bool>>{
           {{{"key", "team"}, {"value", "x"}}, true},
           {{{"key", "team"}, {"operator", "Equal"}, {"value", "y"}}, false},
           {{{"key", "team"}, {"operator", "Exists"}}, true},
           {{{"operator", "Exists"}}, true},
           {{{"operator", "Equal"}, {"value", "x"}}, false},
           {{{"key", "team"}, {"value", "x"}, {"effect", "NoSchedule"}}, true},
           {{{"key", "team"}, {"value", "x"}, {"effect", "NoExecute"}}, false},
       }) {
    EXPECT_EQ(WhyNot(Tolerating(toleration), taints).empty(), tolerated) << toleration;
  }
}

TEST(Placement, WhatIsNotPlannedWithIsSaid) {
  const Json required = {{"requiredDuringSchedulingIgnoredDuringExecution", List(Json::object())}};
  const Json spec = {{"affinity", {{"podAffinity", required}, {"podAntiAffinity", required}}},
                     {"topologySpreadConstraints", List({{"whenUnsatisfiable", "DoNotSchedule"}})},
                     {"resourceClaims", List({{"name", "gpu"}})},
                     {"containers", List({{"ports", List({{"hostPort", 80}})}})}};
  EXPECT_THAT(PlacementFrom({{"spec", spec}}).not_planned,
              ElementsAre("required affinity to other pods", "required anti-affinity to other pods",
                          "a required topology spread", "resource claims", "ports of the host"));
}
TEST(Placement, WhatIsOnlyPreferredIsNoHindrance) {
  const Json preferred = {{"preferredDuringSchedulingIgnoredDuringExecution", List(Json::object())}};
  const Json spec = {{"affinity", {{"podAffinity", preferred}}},
                     {"topologySpreadConstraints", List({{"whenUnsatisfiable", "ScheduleAnyway"}})},
                     {"containers", List({{"ports", List({{"containerPort", 80}})}})}};
  EXPECT_THAT(PlacementFrom({{"spec", spec}}).not_planned, IsEmpty());
}

}  // namespace
}  // namespace siding::kubernetes
