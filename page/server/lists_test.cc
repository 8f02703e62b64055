#include "page/server/lists.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "page/server/json.h"

namespace siding::page {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class ListsTest : public testing::Test {
 protected:
  ListsTest() {
    for (int64_t id = 1; id <= 10; ++id) SetState(id, "running");
  }
  void SetState(int64_t id, const std::string& state) {
    while (jobs_.jobs_size() < id) jobs_.add_jobs()->set_id(jobs_.jobs_size());
    jobs_.mutable_jobs(static_cast<int>(id) - 1)->set_state(state);
  }
  absl::StatusOr<Snapshot> Of(const std::string& key, const std::string& since) {
    return lists_.Of(key, since, [&]() -> absl::StatusOr<v1::ListJobsResponse> {
      ++asked_;
      clock_.Advance(cost_);
      if (!error_.ok()) return error_;
      return jobs_;
    });
  }
  json Told(const std::string& since, const std::string& key = "jobs") {
    const auto snapshot = Of(key, since);
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return json::parse(*snapshot.value_or(MakeSnapshot("{}")).body);
  }

  static constexpr size_t kMostUnread = 1 << 20;
  FakeClock clock_;
  Snapshots snapshots_{clock_, 1s, kMostUnread};
  std::shared_ptr<ListMemory> memory_ = std::make_shared<ListMemory>();
  Lists lists_{clock_, snapshots_, memory_};
  v1::ListJobsResponse jobs_;
  absl::Status error_;
  Duration cost_{0};
  int asked_ = 0;
};

TEST_F(ListsTest, AtFirstItIsTheWholeAndThenWhatIsDifferent) {
  const json whole = Told("");
  EXPECT_EQ(whole["whole"], true);
  EXPECT_EQ(whole["jobs"].size(), 10);
  SetState(3, "parked");
  clock_.Advance(1s);
  const json changes = Told(whole["version"]);
  EXPECT_EQ(changes["whole"], false);
  ASSERT_EQ(changes["jobs"].size(), 1);
  EXPECT_EQ(changes["jobs"][0]["id"], "3");
  EXPECT_EQ(changes["jobs"][0]["state"], "parked");
  EXPECT_EQ(Told("")["jobs"].size(), 10);
}
TEST_F(ListsTest, HoweverManyAskInAMomentItIsAskedForOnce) {
  const std::string first = Told("")["version"];
  SetState(3, "parked");
  clock_.Advance(1s);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Told(first)["jobs"].size(), 1);
    EXPECT_EQ(Told("")["jobs"].size(), 10);
  }
  EXPECT_EQ(asked_, 2);
}
TEST_F(ListsTest, WhatIsKeptIsAsOldAsItSays) {
  const Time began = clock_.Now();
  cost_ = 50ms;
  const std::string first = Told("")["version"];
  clock_.Advance(Lists::kShare * cost_ - 1ms);
  EXPECT_EQ(Of("jobs", "")->since, began);
  EXPECT_EQ(Of("jobs", first)->since, began);
  clock_.Advance(1ms);
  const Time later = clock_.Now();
  EXPECT_EQ(Of("jobs", first)->since, later);
  EXPECT_EQ(Of("jobs", "")->since, later) << "though it is not another one";
}
TEST_F(ListsTest, NobodyWaitsLongForNews) {
  const auto good_for = [&](Duration cost) {
    cost_ = cost;
    const std::string key = absl::StrCat("jobs ", cost / 1ms);
    Told("", key);
    Duration passed{0};
    for (const int asked = asked_; asked_ == asked; Told("", key)) {
      clock_.Advance(50ms);
      passed += 50ms;
    }
    return passed;
  };
  EXPECT_EQ(good_for(0ms), 1s) << "a moment";
  EXPECT_EQ(good_for(50ms), Lists::kShare * 50ms);
  EXPECT_EQ(good_for(200ms), Lists::kWait);
  EXPECT_EQ(good_for(2s), Snapshots::kShare * 2s) << "else it did nothing else";
}
TEST_F(ListsTest, TheWholeIsEncodedOnceForAll) { EXPECT_EQ(Of("jobs", "")->body, Of("jobs", "")->body); }
TEST_F(ListsTest, TheTagIsTheVersions) {
  const auto snapshot = Of("jobs", "");
  EXPECT_EQ(snapshot->tag, absl::StrCat("W/\"", std::string(Told("")["version"]), "\""));
}
TEST_F(ListsTest, AnotherListHasVersionsOfItsOwn) {
  const std::string first = Told("")["version"];
  EXPECT_EQ(Told(first, "others")["whole"], true);
}
TEST_F(ListsTest, AnErrorIsToldAndWhatWasKnownIsKept) {
  const std::string first = Told("")["version"];
  clock_.Advance(1s);
  error_ = absl::UnavailableError("away");
  EXPECT_EQ(Of("jobs", first).status(), error_);
  error_ = absl::OkStatus();
  EXPECT_EQ(Told(first)["whole"], false);
}
TEST_F(ListsTest, TheOneThatWasAskedForLongestAgoMakesRoom) {
  const std::string first = Told("")["version"];
  for (size_t i = 1; i < Lists::kMost; ++i) {
    clock_.Advance(1s);
    Told("", absl::StrCat("other ", i));
  }
  clock_.Advance(1s);
  EXPECT_EQ(Told(first)["whole"], false);
  clock_.Advance(1s);
  Told("", "one more");
  EXPECT_EQ(Told(first)["whole"], false);
  clock_.Advance(Lists::kForgotten);
  EXPECT_EQ(Told(first)["whole"], true);
}
TEST_F(ListsTest, WhatNobodyAsksForIsForgottenThoughNobodyAsksForAnything) {
  const std::string first = Told("")["version"];
  clock_.Advance(Lists::kForgotten - 1s);
  lists_.Forget();
  EXPECT_EQ(Told(first)["whole"], false);
  clock_.Advance(Lists::kForgotten);
  lists_.Forget();
  EXPECT_EQ(Told(first)["whole"], true);
}
TEST_F(ListsTest, BeyondWhatMayBeUnreadNothingIsTold) {
  const std::string first = Told("")["version"];
  const auto unread = snapshots_.Of("large", [] { return std::string(kMostUnread, 'x'); });
  EXPECT_EQ(Of("jobs", first).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Of("jobs", "").status().code(), absl::StatusCode::kResourceExhausted);
}

// ---- With little memory. ----

class ListMemoryTest : public ListsTest {
 protected:
  // For two lists of ten jobs, and not for three.
  ListMemoryTest() { memory_ = std::make_shared<ListMemory>(2 * Bytes() + Bytes() / 2); }
  size_t Bytes() {
    ChangingList list;
    std::vector<ChangingList::Entry> entries;
    for (const v1::Job& job : jobs_.jobs()) entries.push_back({job.id(), ToJson(job)});
    list.Update(std::move(entries));
    return list.bytes();
  }
  bool IsKept(Lists& lists) {
    const auto told = [&](const std::string& since) {
      const auto snapshot =
          lists.Of("jobs", since, [&]() -> absl::StatusOr<v1::ListJobsResponse> { return jobs_; });
      return json::parse(*snapshot.value_or(MakeSnapshot("{}")).body);
    };
    const json first = told("");
    EXPECT_EQ(first["jobs"].size(), 10);
    return told(first["version"])["whole"] == false;
  }
};

TEST_F(ListMemoryTest, AListForWhichThereIsNoneIsToldInWhole) {
  Lists one(clock_, snapshots_, memory_), two(clock_, snapshots_, memory_),
      three(clock_, snapshots_, memory_);
  EXPECT_TRUE(IsKept(one));
  EXPECT_TRUE(IsKept(two));
  EXPECT_FALSE(IsKept(three));
  EXPECT_TRUE(IsKept(one));
}
TEST_F(ListMemoryTest, WhatIsForgottenIsGivenBack) {
  Lists one(clock_, snapshots_, memory_), two(clock_, snapshots_, memory_),
      three(clock_, snapshots_, memory_);
  EXPECT_TRUE(IsKept(one));
  EXPECT_TRUE(IsKept(two));
  clock_.Advance(Lists::kForgotten);
  one.Forget();
  EXPECT_TRUE(IsKept(three));
}
TEST_F(ListMemoryTest, OneThatDoesNotFitIsNotKeptAlsoWhereItCannotBeTold) {
  Snapshots crowded(clock_, 1s, 1);
  Lists lists(clock_, crowded, std::make_shared<ListMemory>(1));
  int asked = 0;
  const auto ask = [&] {
    return lists.Of("jobs", "", [&]() -> absl::StatusOr<v1::ListJobsResponse> {
      ++asked;
      return jobs_;
    });
  };
  absl::StatusOr<Snapshot> unread = ask();
  ASSERT_TRUE(unread.ok()) << unread.status();
  EXPECT_TRUE(absl::IsResourceExhausted(ask().status()));
  unread = absl::CancelledError("it was read");
  EXPECT_TRUE(ask().ok());
  EXPECT_EQ(asked, 3);
}
TEST_F(ListMemoryTest, AListThatGrowsTakesMore) {
  Lists one(clock_, snapshots_, memory_), two(clock_, snapshots_, memory_);
  ListMemory::Share rest(memory_);
  EXPECT_TRUE(IsKept(one));
  EXPECT_TRUE(rest.Resize(Bytes()));
  EXPECT_FALSE(rest.Resize(2 * Bytes()));
  EXPECT_FALSE(IsKept(two));
  EXPECT_TRUE(rest.Resize(1)) << "less is always there";
  EXPECT_TRUE(IsKept(two));
}

}  // namespace
}  // namespace siding::page
