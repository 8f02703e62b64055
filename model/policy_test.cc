#include "model/policy.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

JobSpec Of(const std::string& user, const std::map<std::string, std::string>& labels = {}) {
  JobSpec spec;
  spec.user = user;
  spec.labels = labels;
  return spec;
}

TEST(JobMatch, WithoutKeysMatchesEveryJob) { EXPECT_TRUE(JobMatch().Matches(Of("ada"))); }

TEST(JobMatch, WantsOneOfTheValuesOfEachKey) {
  const JobMatch match{{{"user", {"ada", "bob"}}, {"qos", {"low"}}}};
  EXPECT_TRUE(match.Matches(Of("bob", {{"qos", "low"}})));
  EXPECT_FALSE(match.Matches(Of("eve", {{"qos", "low"}})));
  EXPECT_FALSE(match.Matches(Of("ada", {{"qos", "high"}})));
  EXPECT_FALSE(match.Matches(Of("ada")));
}

TEST(Policy, TheFirstClassThatMatchesCounts) {
  Policy policy;
  policy.classes = {{.name = "low", .match = {{{"qos", {"low"}}}}}, {.name = "all"}};
  EXPECT_EQ(policy.ClassOf(Of("ada", {{"qos", "low"}})), 0);
  EXPECT_EQ(policy.ClassOf(Of("ada")), 1);
  policy.classes.pop_back();
  EXPECT_EQ(policy.ClassOf(Of("ada")), -1);
}

TEST(Policy, NamesReadBack) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(*ParseStrategy(ToString(static_cast<Strategy>(i))), static_cast<Strategy>(i));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*ParseWhenLate(ToString(static_cast<WhenLate>(i))), static_cast<WhenLate>(i));
  }
  EXPECT_EQ(ParseWhenLate("later").status().message(), "expected refuse, best-effort or queue, got 'later'");
}

TEST(Policy, AClassMaySayHowMuchWorkIsLost) {
  Policy policy;
  policy.most_lost_work = std::chrono::seconds(60);
  policy.classes = {{.name = "low", .match = {{{"qos", {"low"}}}}, .most_lost_work = Duration(0)},
                    {.name = "all"}};
  EXPECT_EQ(policy.MostLostWork(Of("ada", {{"qos", "low"}})), Duration(0));
  EXPECT_EQ(policy.MostLostWork(Of("ada")), std::chrono::seconds(60));
}

}  // namespace
}  // namespace siding
