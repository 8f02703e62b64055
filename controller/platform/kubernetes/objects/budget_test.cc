#include "controller/platform/kubernetes/objects/budget.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

Budget BudgetWith(const std::string& patch = "{}") {
  Json json = Json::parse(R"({
    "metadata": {"name": "b", "namespace": "d", "uid": "u", "resourceVersion": "1", "generation": 2},
    "spec": {"selector": {"matchLabels": {"app": "x"}}},
    "status": {"expectedPods": 3, "disruptionsAllowed": 1, "observedGeneration": 2}})");
  json.merge_patch(Json::parse(patch));
  return BudgetFrom(*ObjectFrom(std::move(json)));
}
Pod PodWithLabels(const Json& labels, const std::string& space = "d") {
  return PodFrom(*ObjectFrom(
      {{"metadata",
        {{"name", "a"}, {"namespace", space}, {"uid", "u"}, {"resourceVersion", "1"}, {"labels", labels}}},
       {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}}));
}

TEST(BudgetTest, ItCoversPodsOfItsNamespaceWithItsLabels) {
  EXPECT_TRUE(Covers(BudgetWith(), PodWithLabels({{"app", "x"}, {"more", "y"}})));
  EXPECT_FALSE(Covers(BudgetWith(), PodWithLabels({{"app", "z"}})));
  EXPECT_FALSE(Covers(BudgetWith(), PodWithLabels({{"app", "x"}}, "elsewhere")));
}
TEST(BudgetTest, ExpressionsCountAsWell) {
  const Budget budget = BudgetWith(
      R"({"spec": {"selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["free"]}]}}})");
  EXPECT_TRUE(Covers(budget, PodWithLabels({{"app", "x"}, {"tier", "paid"}})));
  EXPECT_FALSE(Covers(budget, PodWithLabels({{"app", "x"}, {"tier", "free"}})));
}
TEST(BudgetTest, OneThatCountsNoPodsCoversNone) {
  EXPECT_FALSE(Covers(BudgetWith(R"({"status": {"expectedPods": 0}})"), PodWithLabels({{"app", "x"}})));
}
TEST(BudgetTest, WhetherItLetsOneGoItsControllerSays) {
  EXPECT_EQ(BudgetWith(R"({"status": {"disruptionsAllowed": 2}})").lets_go, 2);
  EXPECT_EQ(BudgetWith(R"({"status": {"disruptionsAllowed": 0}})").lets_go, 0);
}
TEST(BudgetTest, OneThatHasJustBeenChangedLetsNobodyGo) {
  EXPECT_EQ(BudgetWith(R"({"metadata": {"generation": 3}})").lets_go, 0);
}
TEST(BudgetTest, APodIsReadyWhenItSaysSo) {
  EXPECT_TRUE(IsReady(PodWithLabels({})));
  EXPECT_FALSE(IsReady(PodFrom(*ObjectFrom(
      {{"metadata", {{"name", "a"}, {"namespace", "d"}, {"uid", "u"}, {"resourceVersion", "1"}}}}))));
}

}  // namespace
}  // namespace siding::kubernetes
