#include "model/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

PlanKeep Kept(KeepRule rule, const std::string& key = "", const std::string& job_class = "") {
  PlanKeep keep;
  keep.rule = rule;
  keep.policy_key = key;
  keep.job_class = job_class;
  return keep;
}

TEST(KeepRules, HaveNamesOfTheirOwn) {
  for (int i = 0; i < kKeepRuleCount; ++i)
    EXPECT_EQ(ParseKeepRule(ToString(static_cast<KeepRule>(i))), static_cast<KeepRule>(i));
  EXPECT_EQ(ParseKeepRule("because"), std::nullopt);
}

TEST(KeepRules, ToldApartByTheirKeyAndClass) {
  const auto groups = GroupKept({Kept(KeepRule::kCooldown, "cooldown"), Kept(KeepRule::kNotNeeded),
                                 Kept(KeepRule::kNotNeeded), Kept(KeepRule::kCooldown, "cooldown", "vip"),
                                 Kept(KeepRule::kNotNeeded)});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].rule, KeepRule::kNotNeeded) << "the largest first";
  EXPECT_EQ(groups[0].jobs, 3);
  EXPECT_EQ(groups[1].job_class, "");
  EXPECT_EQ(groups[2].job_class, "vip");
}

}  // namespace
}  // namespace siding
