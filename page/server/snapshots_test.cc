#include "page/server/snapshots.h"

#include "absl/strings/str_cat.h"
#include "common/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::page {
namespace {

using namespace std::chrono_literals;

class SnapshotsTest : public testing::Test {
 protected:
  Snapshot Of(const std::string& key) {
    const auto snapshot = snapshots_.Of(key, [&] {
      clock_.Advance(cost_);
      return absl::StrCat(key, " ", ++made_);
    });
    EXPECT_TRUE(snapshot.ok());
    return snapshot.value_or(Snapshot());
  }

  // Of these two have less than may be unread.
  absl::StatusOr<Snapshot> Large(const std::string& key) {
    return snapshots_.Of(key, [&] {
      ++made_;
      return std::string(kMostUnread / 5 * 2, 'x');
    });
  }

  static constexpr size_t kMostUnread = 1 << 20;
  FakeClock clock_;
  Snapshots snapshots_{clock_, 1s, kMostUnread};
  int made_ = 0;
  Duration cost_{0};  // of one
};

TEST_F(SnapshotsTest, AllWhoAskWithinAMomentHaveTheSame) {
  const Snapshot first = Of("jobs");
  clock_.Advance(999ms);
  EXPECT_EQ(Of("jobs").body, first.body);
  EXPECT_EQ(made_, 1);
}
TEST_F(SnapshotsTest, ThenItIsMadeAgain) {
  Of("jobs");
  clock_.Advance(1s);
  EXPECT_EQ(*Of("jobs").body, "jobs 2");
}
TEST_F(SnapshotsTest, OneThatTookLongIsGoodForThoseWhoWaitedForIt) {
  cost_ = 3s;
  const Snapshot first = Of("jobs");
  EXPECT_EQ(Of("jobs").body, first.body);
  clock_.Advance(Snapshots::kShare * cost_ - 1ms);
  EXPECT_EQ(Of("jobs").body, first.body);
  clock_.Advance(1ms);
  EXPECT_EQ(*Of("jobs").body, "jobs 2");
}
TEST_F(SnapshotsTest, OneThatTookAMomentIsGoodForOne) {
  cost_ = 10ms;
  Of("jobs");
  clock_.Advance(999ms);
  EXPECT_EQ(*Of("jobs").body, "jobs 1");
  clock_.Advance(1ms);
  EXPECT_EQ(*Of("jobs").body, "jobs 2");
}
TEST_F(SnapshotsTest, AnotherQuestionHasAnotherOne) {
  Of("jobs");
  EXPECT_EQ(*Of("nodes").body, "nodes 2");
}
TEST_F(SnapshotsTest, TheTagIsThatOfTheBody) {
  const auto tag = [&](const std::string& body) {
    clock_.Advance(1s);
    return snapshots_.Of("", [&] { return body; })->tag;
  };
  const std::string first = tag("a");
  EXPECT_EQ(tag("a"), first);
  EXPECT_NE(tag("b"), first);
}
TEST_F(SnapshotsTest, ALongBodyIsThereAsBrowsersTakeIt) {
  const std::string body(5000, 'x');
  const auto snapshot = snapshots_.Of("", [&] { return body; });
  ASSERT_NE(snapshot->packed, nullptr);
  EXPECT_EQ(*snapshot->packed, Gzip(body));
  EXPECT_EQ(Of("jobs").packed, nullptr) << "too short";
}
TEST_F(SnapshotsTest, AnErrorIsNotKept) {
  EXPECT_FALSE(snapshots_.Of("jobs", [] { return absl::NotFoundError("none"); }).ok());
  EXPECT_EQ(*Of("jobs").body, "jobs 1");
}
TEST_F(SnapshotsTest, BeyondWhatMayBeUnreadNoneIsMade) {
  std::vector<Snapshot> unread;
  for (const char* key : {"jobs", "nodes", "site"}) unread.push_back(Large(key).value_or(Snapshot()));
  EXPECT_THAT(unread.back().body, testing::NotNull());
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(1min);
    EXPECT_EQ(Large("policy").status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(made_, 3);
  unread.pop_back();
  EXPECT_TRUE(Large("policy").ok());
}
TEST_F(SnapshotsTest, WhatManyHaveIsThereOnce) {
  std::vector<Snapshot> unread;
  for (int i = 0; i < 10; ++i) unread.push_back(Large("jobs").value_or(Snapshot()));
  EXPECT_TRUE(Large("nodes").ok());
}
TEST_F(SnapshotsTest, WhatNobodyReadsAnyMoreIsInNobodysWay) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Large(absl::StrCat(i)).ok());
}
TEST_F(SnapshotsTest, ManyQuestionsAreAnsweredAndNotKept) {
  for (int i = 0; i < 1000; ++i) Of(absl::StrCat(i));
  EXPECT_EQ(made_, 1000);
  Of("0");
  EXPECT_EQ(made_, 1001);
}
// Who reads nothing takes his own share, and no other reader's.
TEST(SnapshotsOfReadersTest, EachHasAShareOfWhatAllMayLeaveUnread) {
  const FakeClock clock;
  const auto bytes = std::make_shared<std::atomic<size_t>>(0);
  Snapshots one(clock, std::chrono::seconds(1), 3000, bytes, 1000);
  Snapshots other(clock, std::chrono::seconds(1), 3000, bytes, 1000);
  const auto large = [] { return std::string(999, 'x'); };
  const auto first = one.Once(large), second = one.Once(large);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(one.Once(large).status()));
  EXPECT_TRUE(other.Once(large).ok());
}

}  // namespace
}  // namespace siding::page
