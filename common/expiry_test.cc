#include "common/expiry.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
const Time kNow = FromMicros(1'777'636'800'000'000);

TEST(Expiry, IsNearFromAMonthBefore) {
  EXPECT_EQ(HowNear(kNow + 31 * kDay, kNow), Expiry::kFar);
  EXPECT_EQ(HowNear(kNow + 30 * kDay, kNow), Expiry::kWithinAMonth);
  EXPECT_EQ(HowNear(kNow + 7 * kDay, kNow), Expiry::kWithinAWeek);
  EXPECT_EQ(HowNear(kNow, kNow), Expiry::kOver);
}

TEST(Expiry, IsSaidWithTheTimeThatIsLeft) {
  EXPECT_EQ(ExpiryText(kNow + 31 * kDay, kNow), "");
  EXPECT_EQ(ExpiryText(kNow + 6 * kDay + std::chrono::hours(2), kNow),
            "expires in 6d02h, at " + FormatTime(kNow + 6 * kDay + std::chrono::hours(2)));
  EXPECT_EQ(ExpiryText(kNow - kDay, kNow), "expired at " + FormatTime(kNow - kDay));
}

}  // namespace
}  // namespace siding
