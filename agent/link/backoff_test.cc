#include "agent/link/backoff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Ge;
using testing::Le;

class BackoffTest : public testing::TestWithParam<unsigned> {
 protected:
  void Fail(int times) {
    for (int i = 0; i < times; ++i) backoff_(false);
  }
  Backoff backoff_{GetParam(), 100ms, 1s};
};

TEST_P(BackoffTest, BeginsWithTheFirst) { EXPECT_THAT(backoff_(false), AllOf(Ge(50ms), Le(100ms))); }
TEST_P(BackoffTest, DoublesWithEveryFailure) {
  Fail(2);
  EXPECT_THAT(backoff_(false), AllOf(Ge(200ms), Le(400ms)));
}
TEST_P(BackoffTest, StopsAtTheLongest) {
  Fail(20);
  EXPECT_THAT(backoff_(false), AllOf(Ge(500ms), Le(1s)));
}
TEST_P(BackoffTest, AWelcomeStartsItAfresh) {
  Fail(20);
  EXPECT_THAT(backoff_(true), AllOf(Ge(50ms), Le(100ms)));
}
TEST_P(BackoffTest, GrowsAgainAfterAWelcome) {
  Fail(20);
  backoff_(true);
  EXPECT_THAT(backoff_(false), AllOf(Ge(100ms), Le(200ms)));
}

INSTANTIATE_TEST_SUITE_P(Seeds, BackoffTest, testing::Range(1U, 11U));

TEST(Backoff, AgentsDoNotComeBackTogether) { EXPECT_NE(Backoff(1)(false), Backoff(2)(false)); }

}  // namespace
}  // namespace siding
