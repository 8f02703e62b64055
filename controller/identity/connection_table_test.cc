#include "controller/identity/connection_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr uint32_t kAda = 1000, kBob = 1001, kCleo = 1002, kRoot = 0;

// Two connections a user, three in all.
class ConnectionTableTest : public testing::Test {
 protected:
  void Connect(uint32_t uid) {
    ++fd_;
    inodes_[fd_] = 100 + fd_;
    table_.Add(fd_, {uid, uid});
  }
  void Close(int fd) { inodes_.erase(fd); }
  std::string Refusal(uint32_t uid) { return std::string(table_.MayAdd(uid).message()); }

  int fd_ = 0;  // of the last connection
  std::map<int, uint64_t> inodes_;
  ConnectionTable table_{{.connections = 3, .connections_per_user = 2},
                         [this](int fd) { return inodes_.contains(fd) ? inodes_[fd] : 0; }};
};

TEST_F(ConnectionTableTest, KnowsWhoseAConnectionIs) {
  Connect(kAda);
  EXPECT_EQ(table_.Find(fd_)->uid, kAda);
}
TEST_F(ConnectionTableTest, KnowsNothingOfOtherDescriptors) { EXPECT_FALSE(table_.Find(7)); }
// Agents that come back again and again are root's, which has no limit.
TEST_F(ConnectionTableTest, ClosedConnectionsAreForgottenThoughNoLimitIsReached) {
  for (int i = 0; i < 10'000; ++i) {
    Connect(kRoot);
    Close(fd_);
  }
  EXPECT_LE(table_.size(), 1024u);
}
TEST_F(ConnectionTableTest, OpenConnectionsAreNotForgotten) {
  Connect(kRoot);
  const int first = fd_;
  for (int i = 0; i < 10'000; ++i) Connect(kRoot);
  EXPECT_TRUE(table_.Find(first));
}
TEST_F(ConnectionTableTest, AUserMayHaveAsManyAsTheLimitSays) {
  Connect(kAda);
  EXPECT_TRUE(table_.MayAdd(kAda).ok());
}
TEST_F(ConnectionTableTest, AUserMayNotHaveMore) {
  Connect(kAda);
  Connect(kAda);
  EXPECT_THAT(Refusal(kAda),
              HasSubstr("uid 1000 has 2 connections already; limits.connections_per_user is 2"));
}
TEST_F(ConnectionTableTest, AnotherUserIsNotConcerned) {
  Connect(kAda);
  Connect(kAda);
  EXPECT_TRUE(table_.MayAdd(kBob).ok());
}
TEST_F(ConnectionTableTest, AllUsersTogetherHaveALimit) {
  Connect(kAda);
  Connect(kAda);
  Connect(kBob);
  EXPECT_THAT(Refusal(kCleo), HasSubstr("users have 3 connections already; limits.connections is 3"));
}
TEST_F(ConnectionTableTest, RootGetsInAlways) {
  for (uint32_t uid : {kAda, kAda, kBob, kRoot, kRoot}) Connect(uid);
  EXPECT_TRUE(table_.MayAdd(kRoot).ok());
}
TEST_F(ConnectionTableTest, RootsConnectionsTakeNobodysPlace) {
  for (uint32_t uid : {kRoot, kRoot, kRoot}) Connect(uid);
  EXPECT_TRUE(table_.MayAdd(kAda).ok());
}
TEST_F(ConnectionTableTest, OneThatWasClosedMakesRoomForItsUser) {
  Connect(kAda);
  Connect(kAda);
  Close(fd_);
  EXPECT_TRUE(table_.MayAdd(kAda).ok());
}
TEST_F(ConnectionTableTest, OneThatWasClosedMakesRoomForOthers) {
  for (uint32_t uid : {kAda, kAda, kBob}) Connect(uid);
  Close(fd_);
  EXPECT_TRUE(table_.MayAdd(kCleo).ok());
}
TEST_F(ConnectionTableTest, ADescriptorThatIsSomethingElseByNowIsNotTheConnection) {
  Connect(kAda);
  Connect(kAda);
  inodes_[fd_] = 999;
  EXPECT_TRUE(table_.MayAdd(kAda).ok());
}
TEST_F(ConnectionTableTest, ANumberThatIsUsedAgainBelongsToTheNewOwner) {
  Connect(kAda);
  table_.Add(fd_, {kBob, kBob});
  EXPECT_EQ(table_.Find(fd_)->uid, kBob);
}
TEST_F(ConnectionTableTest, ANumberThatIsUsedAgainCountsOnce) {
  Connect(kAda);
  table_.Add(fd_, {kBob, kBob});
  Connect(kAda);
  EXPECT_TRUE(table_.MayAdd(kAda).ok());
}

}  // namespace
}  // namespace siding
