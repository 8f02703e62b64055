#include "controller/engine/decide/plan_bases.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

SharedTask TaskWith(size_t nodes) {
  auto task = std::make_shared<PlanningTask>();
  task->alone.nodes.resize(nodes);
  return task;
}

TEST(PlanBasesTest, EachPlanOfARequestHasItsOwn) {
  PlanBases bases;
  const auto first = TaskWith(1), second = TaskWith(2);
  bases.Keep(JobId(1), 0, {}, first);
  bases.Keep(JobId(1), 1, {}, second);
  EXPECT_EQ(bases.Find(JobId(1), 0)->task, first);
  EXPECT_EQ(bases.Find(JobId(1), 1)->task, second);
}

TEST(PlanBasesTest, OfAnUnknownPlanThereIsNone) {
  PlanBases bases;
  bases.Keep(JobId(1), 0, {}, TaskWith(1));
  EXPECT_FALSE(bases.Find(JobId(2), 0));
  EXPECT_FALSE(bases.Find(JobId(1), 1));
}

TEST(PlanBasesTest, TheOldestGoWhenThereIsTooMuch) {
  PlanBases bases(2 * (PlanBases::kOfEach + 4));
  for (int i = 1; i <= 4; ++i) bases.Keep(JobId(i), 0, {}, TaskWith(4));
  EXPECT_FALSE(bases.Find(JobId(2), 0));
  EXPECT_TRUE(bases.Find(JobId(3), 0));
  EXPECT_TRUE(bases.Find(JobId(4), 0));
}

TEST(PlanBasesTest, TheNewestIsKeptWhateverItHas) {
  PlanBases bases(10);
  bases.Keep(JobId(1), 0, {}, TaskWith(100));
  EXPECT_TRUE(bases.Find(JobId(1), 0));
}

TEST(PlanBasesTest, SmallOnesAreNotKeptWithoutEnd) {
  PlanBases bases(10 * PlanBases::kOfEach);
  for (int i = 1; i <= 100; ++i) bases.Keep(JobId(i), 0, {}, TaskWith(0));
  EXPECT_FALSE(bases.Find(JobId(90), 0));
  EXPECT_TRUE(bases.Find(JobId(91), 0));
}

// A cluster manager gives numbers again.
TEST(PlanBasesTest, OfTheSameNumberTheNewestCounts) {
  PlanBases bases;
  const auto older = TaskWith(1), newer = TaskWith(1);
  bases.Keep(JobId(1), 0, {}, older);
  bases.Keep(JobId(1), 0, {}, newer);
  EXPECT_EQ(bases.Find(JobId(1), 0)->task, newer);
}

TEST(PlanBasesTest, OfAForgottenRequestNothingIsKept) {
  PlanBases bases;
  for (const int job : {1, 2}) bases.Keep(JobId(job), 0, {}, TaskWith(1));
  bases.Forget(JobId(1));
  EXPECT_FALSE(bases.Find(JobId(1), 0));
  EXPECT_TRUE(bases.Find(JobId(2), 0));
}

}  // namespace
}  // namespace siding
