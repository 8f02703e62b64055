#include "agent/node/leftovers.h"

#include <future>
#include <memory>
#include <vector>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

// What a removal that hangs waits for.
void AwaitGate(const std::shared_future<void>& gate) { EXPECT_TRUE(Comes(gate)) << "the gate to be opened"; }

TEST(Leftovers, OfOneUserAreRemovedInTheirOrder) {
  Leftovers leftovers;
  const auto seen = std::make_shared<std::vector<int>>();
  const auto done = std::make_shared<std::promise<void>>();
  for (int i = 0; i < 3; ++i) leftovers.Add(1000, [seen, i] { seen->push_back(i); });
  leftovers.Add(1000, [done] { done->set_value(); });
  ASSERT_TRUE(Comes(done->get_future())) << "the last of the user's leftovers";
  EXPECT_EQ(*seen, (std::vector<int>{0, 1, 2}));
}

TEST(Leftovers, OneThatHangsConcernsItsUserOnly) {
  const auto gate = std::make_shared<std::promise<void>>();
  const auto other = std::make_shared<std::promise<void>>();
  const auto own = std::make_shared<std::promise<void>>();
  Leftovers leftovers;
  leftovers.Add(1000, [passed = gate->get_future().share()] { AwaitGate(passed); });
  leftovers.Add(1000, [own] { own->set_value(); });
  leftovers.Add(1001, [other] { other->set_value(); });
  EXPECT_TRUE(Comes(other->get_future())) << "those of the other user";
  std::future<void> after = own->get_future();
  EXPECT_EQ(after.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate->set_value();
  EXPECT_TRUE(Comes(after)) << "those behind the one that hung";
}

TEST(Leftovers, OneThatHangsMayOutliveThem) {
  const auto gate = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  {
    Leftovers leftovers;
    const auto begun = std::make_shared<std::promise<void>>();
    leftovers.Add(1000, [passed = gate->get_future().share(), begun, ended] {
      begun->set_value();
      AwaitGate(passed);
      ended->set_value();
    });
    EXPECT_TRUE(Comes(begun->get_future())) << "the removal to begin";
  }
  gate->set_value();
  EXPECT_TRUE(Comes(ended->get_future())) << "the removal to end";
}

}  // namespace
}  // namespace siding
