#include "controller/platform/kubernetes/watch/informer_state.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = WatchEvent::Kind;

Object Of(const std::string& name, int version, const std::string& uid = "u") {
  return {{"d", name}, uid, std::to_string(version), std::make_shared<const Json>()};
}

class InformerStateTest : public testing::Test {
 protected:
  void Page(std::vector<Object> items, int version, const std::string& next = "") {
    state_.OnPage({std::move(items), std::to_string(version), next});
  }
  void Event(Kind kind, const Object& object) { state_.OnEvent({kind, object}); }
  void WatchEnds(const absl::Status& status, Duration after = seconds(10)) {
    state_.OnWatchBegun(now_);
    now_ += after;
    state_.OnWatchEnded(status, now_);
  }
  static absl::Status Expired() { return ToStatus({.code = 410, .reason = "Expired"}, "watch pods"); }
  // "+a1", "a1>a2", "-a2"
  std::vector<std::string> Changes() {
    std::vector<std::string> said;
    for (const ObjectChange& change : state_.TakeChanges()) {
      const auto text = [](const std::optional<Object>& o) { return o ? o->name.name + o->version : ""; };
      said.push_back(!change.before  ? absl::StrCat("+", text(change.after))
                     : !change.after ? absl::StrCat("-", text(change.before))
                                     : absl::StrCat(text(change.before), ">", text(change.after)));
    }
    return said;
  }

  InformerState state_;
  Time now_ = FromMicros(1'000'000'000);
};

TEST_F(InformerStateTest, BeginsWithAList) {
  EXPECT_TRUE(state_.Next().list);
  EXPECT_FALSE(state_.synced());
}
TEST_F(InformerStateTest, WatchesFromTheList) {
  Page({Of("a", 3)}, 5);
  EXPECT_TRUE(state_.synced());
  EXPECT_FALSE(state_.Next().list);
  EXPECT_EQ(state_.Next().version, "5");
  EXPECT_THAT(Changes(), ElementsAre("+a3"));
}
TEST_F(InformerStateTest, ShowsNothingOfAListBeforeItIsWhole) {
  Page({Of("a", 3)}, 5, "t");
  EXPECT_EQ(state_.Next().token, "t");
  EXPECT_THAT(state_.objects(), IsEmpty());
  Page({Of("b", 4)}, 5);
  EXPECT_THAT(Changes(), ElementsAre("+a3", "+b4"));
}
TEST_F(InformerStateTest, AnExpiredTokenGivesUpPagesAtOnce) {
  Page({Of("a", 3)}, 5, "t");
  state_.OnListFailed(Expired(), now_);
  EXPECT_EQ(state_.Next().limit, 0);
  EXPECT_EQ(state_.Next().token, "");
  EXPECT_LE(state_.Next().not_before, now_);
  Page({Of("b", 6)}, 6);
  EXPECT_THAT(Changes(), ElementsAre("+b6"));
}
TEST_F(InformerStateTest, AListThatFailsIsTriedLaterAndLater) {
  Duration pause{0};
  for (int i = 0; i < 8; ++i) {
    state_.OnListFailed(absl::UnavailableError("refused"), now_);
    pause = state_.Next().not_before - now_;
    EXPECT_GT(pause, Duration(0));
  }
  EXPECT_GE(pause, Duration(seconds(15)));
  EXPECT_LE(pause, Duration(seconds(30)));
}
TEST_F(InformerStateTest, AFailureIsTheHealthUntilSomethingIsHeard) {
  state_.OnListFailed(absl::PermissionDeniedError("no"), now_);
  EXPECT_TRUE(absl::IsPermissionDenied(state_.health()));
  Page({}, 5);
  EXPECT_TRUE(state_.health().ok());
}

TEST_F(InformerStateTest, EventsChangeWhatIsKnown) {
  Page({Of("a", 3)}, 5);
  Changes();
  Event(Kind::kAdded, Of("b", 6));
  Event(Kind::kModified, Of("a", 7));
  Event(Kind::kDeleted, Of("b", 8));
  EXPECT_THAT(Changes(), ElementsAre("+b6", "a3>a7", "-b6"));
  EXPECT_EQ(state_.Next().version, "8");
}
TEST_F(InformerStateTest, ABookmarkMovesOnlyTheVersion) {
  Page({}, 5);
  Event(Kind::kBookmark, {.version = "90"});
  EXPECT_EQ(state_.Next().version, "90");
  EXPECT_THAT(Changes(), IsEmpty());
}
TEST_F(InformerStateTest, WhatIsToldTwiceHappensOnce) {
  Page({Of("a", 3)}, 5);
  Changes();
  for (int i = 0; i < 2; ++i) Event(Kind::kModified, Of("a", 6));
  EXPECT_THAT(Changes(), ElementsAre("a3>a6"));
  for (int i = 0; i < 2; ++i) Event(Kind::kDeleted, Of("a", 7));
  EXPECT_THAT(Changes(), ElementsAre("-a6"));
}
TEST_F(InformerStateTest, WhatIsToldTwiceLeavesTheVersionAsItIs) {
  Page({Of("a", 3)}, 5);
  Event(Kind::kModified, Of("a", 7));
  Event(Kind::kModified, Of("a", 6));
  EXPECT_EQ(state_.Next().version, "7");
}
TEST_F(InformerStateTest, WhatIsGoneIsNotBroughtBackByWhatIsToldAgain) {
  Page({Of("a", 3)}, 5);
  Event(Kind::kDeleted, Of("a", 7));
  Event(Kind::kModified, Of("a", 6));
  EXPECT_THAT(state_.objects(), IsEmpty());
}
TEST_F(InformerStateTest, AnotherOfTheSameNameIsADeletionAndAnAddition) {
  Page({Of("a", 3, "u1")}, 5);
  Changes();
  Event(Kind::kAdded, Of("a", 9, "u2"));
  EXPECT_THAT(Changes(), ElementsAre("-a3", "+a9"));
}

TEST_F(InformerStateTest, ABrokenWatchGoesOnWhereItWas) {
  Page({}, 5);
  state_.OnWatchBegun(now_);
  Event(Kind::kAdded, Of("a", 6));
  state_.OnWatchEnded(absl::UnavailableError("reset"), now_ + seconds(10));
  EXPECT_FALSE(state_.Next().list);
  EXPECT_EQ(state_.Next().version, "6");
  EXPECT_LE(state_.Next().not_before, now_ + seconds(10));
  EXPECT_TRUE(state_.health().ok());
}
TEST_F(InformerStateTest, AnExpiredVersionMeansAList) {
  Page({Of("a", 3), Of("b", 4)}, 5);
  Changes();
  WatchEnds(Expired());
  EXPECT_TRUE(state_.Next().list);
  Page({Of("b", 8), Of("c", 9)}, 9);
  EXPECT_THAT(Changes(), ElementsAre("-a3", "b4>b8", "+c9"));
}
TEST_F(InformerStateTest, WhatIsKnownStaysUntilTheNewListIsWhole) {
  Page({Of("a", 3)}, 5);
  WatchEnds(Expired());
  Page({}, 9, "t");
  EXPECT_EQ(state_.objects().size(), 1U);
}
TEST_F(InformerStateTest, AListFindsWhatWasReplacedMeanwhile) {
  Page({Of("a", 3, "u1")}, 5);
  Changes();
  WatchEnds(Expired());
  Page({Of("a", 8, "u2")}, 9);
  EXPECT_THAT(Changes(), ElementsAre("-a3", "+a8"));
}
TEST_F(InformerStateTest, GarbageMeansAList) {
  Page({}, 5);
  WatchEnds(absl::InvalidArgumentError("not JSON"));
  EXPECT_TRUE(state_.Next().list);
  EXPECT_GT(state_.Next().not_before, now_);
}
TEST_F(InformerStateTest, ALineThatIsTooLongMeansAList) {
  Page({}, 5);
  WatchEnds(absl::ResourceExhaustedError("line"));
  EXPECT_TRUE(state_.Next().list);
}
TEST_F(InformerStateTest, AWatchThatEndsAtOnceIsNoBusyLoop) {
  Page({}, 5);
  WatchEnds(absl::OkStatus(), Duration(0));
  EXPECT_GE(state_.Next().not_before, now_ + seconds(1));
}
TEST_F(InformerStateTest, AServerWhoseListsAreTooOldForItsWatchesIsAskedLaterAndLater) {
  Duration pause{0};
  for (int i = 0; i < 8; ++i) {
    Page({}, 5);
    WatchEnds(Expired(), Duration(0));
    pause = state_.Next().not_before - now_;
  }
  EXPECT_GE(pause, Duration(seconds(15)));
}

}  // namespace
}  // namespace siding::kubernetes
