#include "controller/engine/decide/plan_record.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

Plan PlanThatKeeps(size_t jobs) {
  Plan plan;
  for (size_t i = 1; i <= jobs; ++i)
    plan.kept.push_back({JobId(static_cast<int64_t>(i)), "not needed", KeepRule::kNotNeeded});
  return plan;
}

TEST(PlanRecord, NamesEveryJobOfASmallCluster) {
  const Plan plan = ForTheRecord(PlanThatKeeps(kMostKeptRecorded));
  EXPECT_EQ(plan.kept.size(), kMostKeptRecorded);
  EXPECT_TRUE(plan.kept_groups.empty());
}

TEST(PlanRecord, NamesSomeJobsOfALargeOneAndSaysHowManyThereAre) {
  const Plan plan = ForTheRecord(PlanThatKeeps(10'000));
  EXPECT_EQ(plan.kept.size(), kMostKeptRecorded);
  ASSERT_EQ(plan.kept_groups.size(), 1U);
  EXPECT_EQ(plan.kept_groups[0].jobs, 10'000);
}

TEST(PlanRecord, NamesSomeOfEachGroup) {
  Plan whole = PlanThatKeeps(10'000);
  whole.kept[7'000].rule = KeepRule::kCooldown;
  const Plan plan = ForTheRecord(whole);
  EXPECT_LE(plan.kept.size(), kMostKeptRecorded);
  EXPECT_EQ(plan.kept.back().job, JobId(7'001));
  ASSERT_EQ(plan.kept_groups.size(), 2U);
  EXPECT_EQ(plan.kept_groups[0].jobs, 9'999);
}

TEST(PlanRecord, CutOnceMoreItSaysTheSameOfAll) {
  const Plan plan = WithSomeKept(ForTheRecord(PlanThatKeeps(10'000)), 3);
  EXPECT_EQ(plan.kept.size(), 3U);
  EXPECT_EQ(plan.kept_groups[0].jobs, 10'000);
}

}  // namespace
}  // namespace siding
