#include "common/tls/expiry_watch.h"

#include "common/tls/certificates.h"
#include "common/tls/tls_fixture.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class ExpiryWatchTest : public TlsTest {
 protected:
  static constexpr Duration kDay = std::chrono::hours(24);
  // As its text has it, in whole seconds.
  Time Issue(Duration lifetime) {
    const auto issued = IssueFor({Kind::kNode, "n1"}, authority_, lifetime, clock_.Now());
    EXPECT_TRUE(issued.ok());
    Write("n1.pem", issued->certificate);
    return *EndOfValidity(issued->certificate);
  }
  FakeClock clock_{now_};
};

TEST_F(ExpiryWatchTest, FollowsRenewals) {
  const Time first = Issue(std::chrono::hours(1));
  ExpiryWatch watch(Path("n1.pem"), clock_);
  EXPECT_EQ(watch.Look(), first);
  clock_.Advance(std::chrono::minutes(2));
  const Time second = Issue(std::chrono::hours(2));
  EXPECT_GT(second, first);
  EXPECT_EQ(watch.Look(), second);
}

TEST_F(ExpiryWatchTest, OfNoFileNothingIsKnown) {
  EXPECT_EQ(ExpiryWatch("", clock_).Look(), std::nullopt);
  EXPECT_EQ(ExpiryWatch(Path("none.pem"), clock_).Look(), std::nullopt);
}

TEST_F(ExpiryWatchTest, OfAChainTheFirstEndCounts) {
  const auto issued = IssueFor({Kind::kNode, "n1"}, authority_, std::chrono::hours(1), now_);
  EXPECT_EQ(*EndOfValidity(authority_.certificate + issued->certificate),
            *EndOfValidity(issued->certificate));
  EXPECT_FALSE(EndOfValidity("no certificate").ok());
}

}  // namespace
}  // namespace siding
