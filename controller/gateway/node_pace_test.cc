#include "controller/gateway/node_pace.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

constexpr NodePace::Clock::time_point kStart{1h};

NodePace After(int messages, size_t bytes = 0) {
  NodePace pace;
  for (int i = 0; i < messages; ++i) pace.Take(NodePace::kMessage, bytes, kStart);
  return pace;
}

TEST(NodePaceTest, ABurstIsReadAtOnce) { EXPECT_EQ(After(2000).Wait(kStart), 0s); }
TEST(NodePaceTest, WhatFollowsIsReadAsFastAsItMayCome) { EXPECT_EQ(After(2200).Wait(kStart), 1s); }
TEST(NodePaceTest, AfterAMomentTheNextOneIsRead) { EXPECT_EQ(After(2200).Wait(kStart + 1s), 0s); }
TEST(NodePaceTest, LongMessagesCostMore) { EXPECT_GT(After(30, 4 << 20).Wait(kStart), 4s); }
// The longest that an agent sends, once a second.
TEST(NodePaceTest, TheLongestHeartbeatsAreReadAsTheyCome) {
  NodePace pace;
  for (auto now = kStart; now < kStart + 1h; now += 1s) {
    pace.Take(NodePace::kMessage, 3 << 20, now);
    EXPECT_EQ(pace.Wait(now), 0s);
  }
}
TEST(NodePaceTest, ItIsFreshAfterATimeOfQuiet) {
  EXPECT_FALSE(After(1).IsFresh(kStart));
  EXPECT_TRUE(After(1).IsFresh(kStart + 1s));
}

}  // namespace
}  // namespace siding
