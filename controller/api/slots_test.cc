#include "controller/api/slots.h"

#include <deque>

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(LongCalls, OneUserMayHaveSoManyAndNoMore) {
  LongCalls calls;
  std::deque<LongCalls::Slot> slots;
  for (int i = 0; i < kLongCallsPerUser; ++i) EXPECT_TRUE(slots.emplace_back(calls, 1000).status.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(slots.emplace_back(calls, 1000).status));
  EXPECT_TRUE(slots.emplace_back(calls, 1001).status.ok());
}

TEST(LongCalls, ACallThatEndsMakesRoom) {
  LongCalls calls;
  std::deque<LongCalls::Slot> slots;
  for (int i = 0; i < kLongCallsPerUser; ++i) slots.emplace_back(calls, 1000);
  slots.pop_front();
  EXPECT_TRUE(slots.emplace_back(calls, 1000).status.ok());
}

TEST(LongCalls, ARefusedCallGivesNothingBack) {
  LongCalls calls;
  std::deque<LongCalls::Slot> slots;
  for (int i = 0; i < kLongCallsPerUser; ++i) slots.emplace_back(calls, 1000);
  { const LongCalls::Slot refused(calls, 1000); }
  EXPECT_FALSE(slots.emplace_back(calls, 1000).status.ok());
}

}  // namespace
}  // namespace siding
