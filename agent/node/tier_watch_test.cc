#include "agent/node/tier_watch.h"

#include <future>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

TEST(TierWatch, SaysWhatItHasSeen) {
  const FakeClock clock{FromMicros(1'000'000)};
  const TierWatch watch([] { return Bytes{7}; }, clock);
  EXPECT_EQ(watch.free(), Bytes{7});
}

TEST(TierWatch, ATierThatDoesNotAnswerHoldsUpNobodyAndHasNoRoom) {
  FakeClock clock{FromMicros(1'000'000)};
  std::promise<void> answer, asked;
  int looks = 0;
  const auto look = [&] {
    if (++looks == 2) {
      asked.set_value();
      EXPECT_TRUE(Comes(answer.get_future())) << "the tier's answer";
    }
    return Bytes{7};
  };
  const TierWatch watch(look, clock);
  EXPECT_TRUE(Comes(asked.get_future())) << "the second look";
  clock.Advance(TierWatch::kOldest);
  EXPECT_EQ(watch.free(), Bytes{7}) << "it may still answer";
  clock.Advance(1s);
  EXPECT_EQ(watch.free(), Bytes{0});
  answer.set_value();
}

}  // namespace
}  // namespace siding
