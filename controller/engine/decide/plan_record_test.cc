#include "controller/engine/decide/plan_record.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

Plan PlanThatKeeps(size_t jobs) {
  Plan plan;
  for (size_t i = 1; i <= jobs; ++i) plan.kept.push_back({JobId(static_cast<int64_t>(i)), "not needed"});
  return plan;
}

TEST(PlanRecord, NamesEveryJobOfASmallCluster) {
  const Plan plan = ForTheRecord(PlanThatKeeps(kMostKeptRecorded));
  EXPECT_EQ(plan.kept.size(), kMostKeptRecorded);
  EXPECT_EQ(plan.kept.back().reason, "not needed");
}

TEST(PlanRecord, NamesSomeJobsOfALargeOneAndSaysHowManyItDoesNot) {
  const Plan plan = ForTheRecord(PlanThatKeeps(10'000));
  EXPECT_EQ(plan.kept.size(), kMostKeptRecorded);
  EXPECT_THAT(plan.kept.back().reason, HasSubstr("9950 other jobs are left alone"));
}

}  // namespace
}  // namespace siding
