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

class AllCallsTest : public testing::Test {
 protected:
  absl::Status Call(uint32_t uid) { return slots_.emplace_back(calls_, uid).status; }

  AllCalls calls_{{.calls = 3, .calls_per_user = 2}};
  std::deque<CallSlots::Slot> slots_;
};

TEST_F(AllCallsTest, AUserIsToldWhichLimitItIs) {
  EXPECT_TRUE(Call(1000).ok());
  EXPECT_TRUE(Call(1000).ok());
  EXPECT_EQ(Call(1000).message(), "you have 2 calls under way already; limits.calls_per_user is 2");
  EXPECT_TRUE(absl::IsResourceExhausted(Call(1000)));
}
TEST_F(AllCallsTest, RootIsLetInHoweverManyThereAre) {
  for (uint32_t uid : {1000, 1000, 1001}) EXPECT_TRUE(Call(uid).ok());
  EXPECT_EQ(Call(1002).message(), "there are 3 calls under way already; limits.calls is 3");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Call(0).ok());
}
TEST(PlanningCallsTest, AUserHasSoManyAtATime) {
  PlanningCalls calls({.planning_calls_per_user = 1});
  const CallSlots::Slot first(calls, 1000), second(calls, 1000), other(calls, 1001);
  EXPECT_TRUE(first.status.ok());
  EXPECT_EQ(second.status.message(),
            "you have 1 calls that plan already; limits.planning_calls_per_user is 1");
  EXPECT_TRUE(other.status.ok());
}
TEST(ServiceLimitsTest, ByDefaultCallsLeaveThreadsForRoots) {
  const ServiceLimits limits;
  EXPECT_GT(limits.MostCalls(), limits.waiting_calls);
  EXPECT_LT(limits.MostCalls() + limits.MostArriving(), limits.threads);
}

}  // namespace
}  // namespace siding
