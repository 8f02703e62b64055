#include "common/backoff.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::seconds;

TEST(Backoff, GrowsAndIsTheSameForTheSameSeed) {
  Backoff one(seconds(1), seconds(10), 7);
  Backoff other(seconds(1), seconds(10), 7);
  Duration pause{0};
  for (int i = 0; i < 10; ++i) {
    pause = one.Next();
    EXPECT_EQ(pause, other.Next());
  }
  EXPECT_GE(pause, Duration(seconds(5)));
  EXPECT_LE(pause, Duration(seconds(10)));
  one.Reset();
  EXPECT_LE(one.Next(), Duration(seconds(1)));
}

}  // namespace
}  // namespace siding
