#include "agent/link/dial_pause.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Ge;
using testing::Le;

class DialPauseTest : public testing::TestWithParam<unsigned> {
 protected:
  void Fail(int times) {
    for (int i = 0; i < times; ++i) pause_(false);
  }
  DialPause pause_{GetParam(), 100ms, 1s};
};

TEST_P(DialPauseTest, BeginsWithTheFirst) { EXPECT_THAT(pause_(false), AllOf(Ge(50ms), Le(100ms))); }
TEST_P(DialPauseTest, DoublesWithEveryFailure) {
  Fail(2);
  EXPECT_THAT(pause_(false), AllOf(Ge(200ms), Le(400ms)));
}
TEST_P(DialPauseTest, StopsAtTheLongest) {
  Fail(20);
  EXPECT_THAT(pause_(false), AllOf(Ge(500ms), Le(1s)));
}
TEST_P(DialPauseTest, AWelcomeStartsItAfresh) {
  Fail(20);
  EXPECT_THAT(pause_(true), AllOf(Ge(50ms), Le(100ms)));
}
TEST_P(DialPauseTest, GrowsAgainAfterAWelcome) {
  Fail(20);
  pause_(true);
  EXPECT_THAT(pause_(false), AllOf(Ge(100ms), Le(200ms)));
}

INSTANTIATE_TEST_SUITE_P(Seeds, DialPauseTest, testing::Range(1U, 11U));

TEST(DialPause, AgentsDoNotComeBackTogether) { EXPECT_NE(DialPause(1)(false), DialPause(2)(false)); }

}  // namespace
}  // namespace siding
