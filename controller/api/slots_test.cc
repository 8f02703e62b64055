#include "controller/api/slots.h"

#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

// Two a user, three in all.
class WaitingCallsTest : public testing::Test {
 protected:
  absl::Status Call(uint32_t uid) { return slots_.emplace_back(calls_, uid).status; }

  WaitingCalls calls_{{.waiting_calls = 3, .waiting_calls_per_user = 2}};
  std::deque<WaitingCalls::Slot> slots_;
};

TEST_F(WaitingCallsTest, OneUserMayHaveSoMany) {
  EXPECT_TRUE(Call(1000).ok());
  EXPECT_TRUE(Call(1000).ok());
}
TEST_F(WaitingCallsTest, OneUserMayNotHaveMore) {
  Call(1000).IgnoreError();
  Call(1000).IgnoreError();
  EXPECT_THAT(Call(1000).message(), HasSubstr("you have 2 calls that follow or wait already"));
}
TEST_F(WaitingCallsTest, AnotherUserIsNotConcerned) {
  Call(1000).IgnoreError();
  Call(1000).IgnoreError();
  EXPECT_TRUE(Call(1001).ok());
}
TEST_F(WaitingCallsTest, AllTogetherMayNotHaveMore) {
  for (uint32_t uid : {1000, 1001, 1002}) Call(uid).IgnoreError();
  EXPECT_THAT(Call(1003).message(), HasSubstr("there are 3 calls that follow or wait already"));
}
TEST_F(WaitingCallsTest, ACallThatEndsMakesRoom) {
  for (uint32_t uid : {1000, 1000, 1001}) Call(uid).IgnoreError();
  slots_.pop_front();
  EXPECT_TRUE(Call(1000).ok());
}
TEST_F(WaitingCallsTest, ARefusedCallGivesNothingBack) {
  Call(1000).IgnoreError();
  Call(1000).IgnoreError();
  { const WaitingCalls::Slot refused(calls_, 1000); }
  EXPECT_FALSE(Call(1000).ok());
}

}  // namespace
}  // namespace siding
