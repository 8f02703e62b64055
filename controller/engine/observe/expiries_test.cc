#include "controller/engine/observe/expiries.h"

#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

class ExpiriesTest : public EngineTest {
 protected:
  static constexpr Duration kDay = std::chrono::hours(24);
  void AgentSays(const char* node, Time ends) {
    v1::FromAgent message;
    message.mutable_heartbeat()->set_certificate_ends_us(ToMicros(ends));
    engine_->OnMessage(NodeId(node), message);
    Settle();
  }
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) {
      if (std::holds_alternative<Noted>(event.body)) said.push_back(Describe(event));
    }
    return said;
  }
};

TEST_F(ExpiriesTest, TheControllersIsSaidAMonthAndAWeekBefore) {
  const Time ends = clock_.Now() + 40 * kDay;
  engine_->SetCertificateEnd(ends);
  Settle();
  EXPECT_TRUE(Said().empty());
  clock_.Advance(12 * kDay);
  Settle(3);
  ASSERT_EQ(Said().size(), 1u);
  EXPECT_THAT(Said()[0], testing::StartsWith("certificate, the controller's: it expires in 2"));
  clock_.Advance(22 * kDay);
  Settle(3);
  EXPECT_EQ(Said().size(), 2u);
}

TEST_F(ExpiriesTest, AnAgentsIsSaidAndAgainOnlyWhenTheRenewedOneIsNearItsEnd) {
  AddNodes({"a"});
  AgentSays("a", clock_.Now() + 5 * kDay);
  ASSERT_EQ(Said().size(), 1u);
  EXPECT_THAT(Said()[0], testing::StartsWith("certificate, the agent's on node a: it expires in "));
  AgentSays("a", clock_.Now() + 300 * kDay);
  AgentSays("a", clock_.Now() + 300 * kDay);
  EXPECT_EQ(Said().size(), 1u);
}

// Two agents that take a node's name from each other, each with a certificate of its own.
TEST_F(ExpiriesTest, OfOneHolderItIsSaidOnceAMinuteAtMost) {
  AddNodes({"a"});
  for (int i = 0; i < 4; ++i) AgentSays("a", clock_.Now() + (1 + i % 2) * kDay);
  EXPECT_EQ(Said().size(), 1u);
  clock_.Advance(std::chrono::minutes(1));
  AgentSays("a", clock_.Now() + 3 * kDay);
  EXPECT_EQ(Said().size(), 2u);
}

}  // namespace
}  // namespace siding
