#include "model/totals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Totals, AValueIsInTheBucketOfTheNextBound) {
  Histogram victims;
  Observe(victims, kVictims, 3);
  Observe(victims, kVictims, 4);
  Observe(victims, kVictims, 1000);
  EXPECT_THAT(victims.counts, ElementsAre(Pair(4, 2), Pair(kNoBound, 1)));
  EXPECT_EQ(victims.sum, 1007);
  EXPECT_EQ(CountUpTo(victims, 2), 0);
  EXPECT_EQ(CountUpTo(victims, 64), 2);
  EXPECT_EQ(CountUpTo(victims, kNoBound), 3);
}
TEST(Totals, OfTwoTheLaterFailureCounts) {
  Totals sum, other;
  sum.actions[JobAction::kRestore] = {1, 1, FromMicros(20)};
  other.actions[JobAction::kRestore] = {0, 2, FromMicros(10)};
  Add(sum, other);
  EXPECT_EQ(sum.actions.at(JobAction::kRestore), (ActionCount{1, 3, FromMicros(20)}));
}
TEST(Totals, OfTwoTheMarginIsThatOfTheLaterStart) {
  Totals sum, other;
  sum.last_start = FromMicros(10);
  sum.last_margin = Duration(1);
  other.last_start = FromMicros(20);
  other.last_margin = Duration(-2);
  Add(sum, other);
  EXPECT_EQ(sum.last_margin, Duration(-2));
  Add(sum, Totals());
  EXPECT_EQ(sum.last_margin, Duration(-2));
}
TEST(Totals, EveryActionHasAName) {
  for (const JobAction action : kAllJobActions) EXPECT_EQ(ParseJobAction(ToString(action)), action);
  EXPECT_EQ(ParseJobAction("start over"), std::nullopt);
}

}  // namespace
}  // namespace siding
