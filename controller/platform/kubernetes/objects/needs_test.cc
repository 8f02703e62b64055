#include "controller/platform/kubernetes/objects/needs.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

Json Container(const Json& requests, const std::string& restart = "") {
  Json container = {{"name", "main"}, {"resources", {{"requests", requests}}}};
  if (!restart.empty()) container["restartPolicy"] = restart;
  return container;
}
Json PodWith(const std::vector<Json>& containers, const std::vector<Json>& init = {}) {
  return {{"spec", {{"containers", containers}, {"initContainers", init}}}};
}
Amounts Requests(const Json& pod) {
  const auto requests = RequestsOf(pod);
  EXPECT_TRUE(requests.ok()) << requests.status();
  return requests.value_or(Amounts());
}

TEST(AmountsFrom, ReadsWhatIsThere) {
  const Json said = {
      {"cpu", "1500m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", 2}, {"hugepages-2Mi", "4Mi"}, {"pods", "110"}};
  const auto amounts = AmountsFrom(&said);
  ASSERT_TRUE(amounts.ok());
  EXPECT_EQ(amounts->cpu, 1500);
  EXPECT_EQ(amounts->memory.value, 1 << 30);
  EXPECT_EQ(amounts->gpus, 2);
  EXPECT_THAT(amounts->others, UnorderedElementsAre(Pair("hugepages-2Mi", 4 << 20)));
}
TEST(AmountsFrom, NothingIsNothing) { EXPECT_EQ(*AmountsFrom(nullptr), Amounts()); }
TEST(AmountsFrom, WhatIsWrongIsNamed) {
  const Json said = {{"memory", "1 GiB"}};
  EXPECT_THAT(AmountsFrom(&said).status().message(), HasSubstr("memory: \"1 GiB\" is no quantity"));
  const Json list = Json::array({1, 2});
  EXPECT_FALSE(AmountsFrom(&list).ok());
}

TEST(RequestsOf, ContainersRunTogether) {
  EXPECT_EQ(Requests(PodWith({Container({{"cpu", "1"}}), Container({{"cpu", "500m"}})})).cpu, 1500);
}
TEST(RequestsOf, InitContainersRunBefore) {
  const Amounts small = Requests(
      PodWith({Container({{"cpu", "1"}})}, {Container({{"cpu", "300m"}}), Container({{"cpu", "400m"}})}));
  EXPECT_EQ(small.cpu, 1000);
  const Amounts large =
      Requests(PodWith({Container({{"cpu", "1"}})}, {Container({{"cpu", "3"}, {"memory", "5"}})}));
  EXPECT_EQ(large.cpu, 3000);
  EXPECT_EQ(large.memory.value, 5);
}
TEST(RequestsOf, ThoseThatAlwaysRestartRunOn) {
  const std::vector<Json> init = {Container({{"cpu", "200m"}}, "Always"), Container({{"cpu", "900m"}}),
                                  Container({{"cpu", "300m"}}, "Always")};
  EXPECT_EQ(Requests(PodWith({Container({{"cpu", "1"}})}, init)).cpu, 1500);
  EXPECT_EQ(Requests(PodWith({Container({{"cpu", "100m"}})}, init)).cpu, 1100);
}
TEST(RequestsOf, ThePodsOwnResourcesAndItsOverheadCount) {
  Json pod = PodWith({Container({{"cpu", "1"}, {"memory", "1Ki"}})});
  pod["spec"]["resources"] = {{"requests", {{"cpu", "4"}}}};
  pod["spec"]["overhead"] = {{"cpu", "100m"}, {"memory", "1"}};
  EXPECT_EQ(Requests(pod).cpu, 4100);
  EXPECT_EQ(Requests(pod).memory.value, 1025);
}
TEST(RequestsOf, SumsStayInRange) {
  const Json huge = Container({{"memory", "9223372036854775807"}, {"nvidia.com/gpu", "2147483647"}});
  const Amounts amounts = Requests(PodWith({huge, huge}));
  EXPECT_EQ(amounts.memory.value, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(amounts.gpus, std::numeric_limits<int>::max());
}
TEST(ToResources, MoreThanSidingCountsIsTheMost) {
  const Resources most =
      ToResources({.cpu = 5'000'000, .memory = Bytes{int64_t{1} << 60}, .gpus = 2'000'000});
  EXPECT_EQ(most, (Resources{1'000'000, Bytes{int64_t{1} << 50}, 1'000'000}));
}
TEST(RequestsOf, TheContainerIsNamed) {
  EXPECT_THAT(RequestsOf(PodWith({Container({{"cpu", "many"}})})).status().message(),
              HasSubstr("container main: cpu: "));
}

}  // namespace
}  // namespace siding::kubernetes
