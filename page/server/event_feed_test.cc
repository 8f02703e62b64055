#include "page/server/event_feed.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kPart = 3;

class EventFeedTest : public testing::Test {
 protected:
  // Of the journal up to `newest_`; those that are multiples of `hidden_` are not for everybody's eyes.
  absl::StatusOr<FeedPart> Part(int64_t after) {
    asked_.push_back(after);
    if (!source_answers_.ok()) return source_answers_;
    clock_.Advance(cost_);
    if (after < newest_ && !earlier_are_told_.ok()) return earlier_are_told_;
    FeedPart part{.next = std::max(after, std::min(newest_, after + kPart))};
    for (int64_t seq = after + 1; seq <= part.next; ++seq) {
      if (hidden_ == 0 || seq % hidden_ != 0) part.events.push_back({seq, absl::StrCat("{", seq, "}")});
    }
    part.more = part.next < newest_;
    return part;
  }
  void Turns() {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  }
  // What has come, and the sequence by which its reader would come back.
  static std::vector<std::string> Read(ByteStream& stream, int64_t* last = nullptr) {
    std::string text(1 << 20, '\0');
    const ssize_t size = stream.Read(
        text.data(), text.size(), [] {}, [] {});
    std::vector<std::string> events;
    for (const auto line : absl::StrSplit(text.substr(0, size > 0 ? size : 0), '\n')) {
      if (absl::StartsWith(line, "data: ")) events.emplace_back(line.substr(6));
      if (absl::StartsWith(line, "id: ") && last != nullptr) *last = std::stoll(std::string(line.substr(4)));
    }
    return events;
  }

  int64_t newest_ = 5;
  int64_t hidden_ = 0;
  std::vector<int64_t> asked_;  // what parts followed on
  absl::Status source_answers_;
  absl::Status earlier_are_told_;  // those from before the newest one
  absl::Status is_here_;
  Duration cost_{0};  // of a part
  FakeClock clock_;
  EventFeed::Source source_{.newest = [this]() -> absl::StatusOr<int64_t> {
                              if (!source_answers_.ok()) return source_answers_;
                              return newest_;
                            },
                            .read = [this](int64_t after, Duration) { return Part(after); },
                            .here = [this] { return is_here_; }};
  EventFeed feed_{source_, clock_};
};

TEST_F(EventFeedTest, AFollowerSeesWhatHappensFromNowOn) {
  const auto stream = feed_.Follow(std::nullopt);
  newest_ = 7;
  Turns();
  EXPECT_THAT(Read(*stream), ElementsAre("{6}", "{7}"));
}
TEST_F(EventFeedTest, AFollowerKnowsAtOnceWhereItIs) {
  int64_t last = 0;
  EXPECT_THAT(Read(*feed_.Follow(std::nullopt), &last), IsEmpty());
  EXPECT_EQ(last, 5);
}
TEST_F(EventFeedTest, OneThatComesBackHasMissedNothingAndSeesNothingTwice) {
  const auto stream = feed_.Follow(1);
  newest_ = 7;
  Turns();
  EXPECT_THAT(Read(*stream), ElementsAre("{2}", "{3}", "{4}", "{5}", "{6}", "{7}"));
}
TEST_F(EventFeedTest, OneThatSleptThroughManyEndsAsAFreshOne) {
  newest_ = 10'000;
  const auto fresh = feed_.Follow(0), slept = feed_.Follow(4);
  std::vector<std::string> all, rest;
  for (int i = 0; i < 4000; ++i) {
    EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
    for (std::string& event : Read(*fresh)) all.push_back(event);
    for (std::string& event : Read(*slept)) rest.push_back(event);
  }
  EXPECT_EQ(all.size(), 10'000u);
  EXPECT_EQ(rest, std::vector<std::string>(all.begin() + 4, all.end()));
}
TEST_F(EventFeedTest, OneOfTheFutureFollowsFromNowOn) {
  const auto stream = feed_.Follow(1'000'000);
  newest_ = 6;
  Turns();
  EXPECT_THAT(Read(*stream), ElementsAre("{6}"));
}
TEST_F(EventFeedTest, WhatIsNotForItsEyesIsNotAskedForAgain) {
  hidden_ = 2;
  const auto stream = feed_.Follow(1);
  Turns();
  int64_t last = 0;
  EXPECT_THAT(Read(*stream, &last), ElementsAre("{3}", "{5}"));
  newest_ = 6;
  Turns();
  clock_.Advance(EventFeed::kBeat);
  Turns();
  EXPECT_THAT(Read(*stream, &last), IsEmpty());
  EXPECT_EQ(last, 6);
}
TEST_F(EventFeedTest, AFollowerThatIsBehindIsGivenNoMoreThanItReads) {
  newest_ = 1'000'000;
  EventFeed feed(source_, clock_);
  const auto stream = feed.Follow(0);
  for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(feed.Turn(Duration(0)).ok());
  EXPECT_FALSE(stream->HasEnded());
  EXPECT_LT(stream->Unread(), 2 * EventFeed::kUnreadAhead);
}
TEST_F(EventFeedTest, ThoseThatAreUpToDateComeBeforeThoseThatAreBehind) {
  const auto live = feed_.Follow(std::nullopt);
  const auto behind = feed_.Follow(1);
  asked_.clear();
  newest_ = 6;
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  EXPECT_THAT(asked_, ElementsAre(5, 1));
  EXPECT_THAT(Read(*live), ElementsAre("{6}"));
  EXPECT_THAT(Read(*behind), ElementsAre("{2}", "{3}", "{4}"));
}
TEST_F(EventFeedTest, OfManyThatAreBehindSomeGetAPartInATurnAndAllInTheEnd) {
  newest_ = 10;
  EventFeed feed(source_, clock_);
  std::vector<std::shared_ptr<ByteStream>> streams;
  for (size_t i = 0; i < 3 * EventFeed::kBehindAtOnce; ++i) streams.push_back(feed.Follow(0));
  for (int part = 0; part < 4; ++part) {
    for (int turn = 0; turn < 3; ++turn) {
      asked_.clear();
      EXPECT_TRUE(feed.Turn(Duration(0)).ok());
      EXPECT_EQ(asked_.size(), 1 + EventFeed::kBehindAtOnce);
    }
    // Each had its turn.
    for (const auto& stream : streams) EXPECT_EQ(Read(*stream).size(), part < 3 ? size_t{kPart} : 1);
  }
}
TEST_F(EventFeedTest, WhereNothingIsLeftAFollowerIsAsFarAsTheOthers) {
  const auto stream = feed_.Follow(1);
  newest_ = 0;  // what it was to be told of is gone
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  asked_.clear();
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  EXPECT_EQ(asked_.size(), 1u);
}
TEST_F(EventFeedTest, OneThatDoesNotReadIsDroppedAndTheOthersGoOn) {
  const auto asleep = feed_.Follow(std::nullopt), awake = feed_.Follow(std::nullopt);
  while (!asleep->HasEnded() && newest_ < 1'000'000) {
    newest_ += kPart;
    EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
    Read(*awake);
  }
  EXPECT_TRUE(asleep->HasEnded());
  EXPECT_FALSE(awake->HasEnded());
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  EXPECT_EQ(feed_.followers(), 1u);
}
TEST_F(EventFeedTest, SaysNowAndThenThatItLives) {
  const auto stream = feed_.Follow(std::nullopt);
  Read(*stream);
  Turns();
  EXPECT_EQ(stream->Unread(), 0u);
  clock_.Advance(EventFeed::kBeat);
  Turns();
  std::string text(100, '\0');
  text.resize(static_cast<size_t>(stream->Read(
      text.data(), text.size(), [] {}, [] {})));
  EXPECT_EQ(text, ": here\nid: 5\n\n");
}
TEST_F(EventFeedTest, ASourceThatHangsGetsNoBeatAndIsAway) {
  const auto stream = feed_.Follow(std::nullopt);
  is_here_ = absl::DeadlineExceededError("no answer");
  Turns();
  clock_.Advance(EventFeed::kBeat);
  EXPECT_TRUE(absl::IsDeadlineExceeded(feed_.Turn(Duration(0))));
  EXPECT_TRUE(stream->HasEnded());
  EXPECT_TRUE(absl::IsDeadlineExceeded(feed_.standing()));
}
TEST_F(EventFeedTest, ASourceThatRefusesToSayWhetherItIsThereIsThere) {
  const auto stream = feed_.Follow(std::nullopt);
  is_here_ = absl::ResourceExhaustedError("too many calls");
  clock_.Advance(EventFeed::kBeat);
  Turns();
  EXPECT_FALSE(stream->HasEnded());
}
TEST_F(EventFeedTest, WhereOneThatIsBehindIsToldTooLateItsStreamEndsAndTheOthersGoOn) {
  const auto live = feed_.Follow(std::nullopt), behind = feed_.Follow(1);
  for (const absl::Status& status : {absl::DeadlineExceededError("slow"), absl::InternalError("odd")}) {
    earlier_are_told_ = status;
    asked_.clear();
    Turns();
    EXPECT_TRUE(behind->HasEnded());
    EXPECT_FALSE(live->HasEnded());
    EXPECT_TRUE(feed_.refusal().ok());
  }
  EXPECT_EQ(feed_.followers(), 1u);
}
TEST_F(EventFeedTest, OneThatIsBehindFindsOutThatTheSourceIsAway) {
  const auto live = feed_.Follow(std::nullopt), behind = feed_.Follow(1);
  earlier_are_told_ = absl::UnavailableError("gone");
  EXPECT_TRUE(absl::IsUnavailable(feed_.Turn(Duration(0))));
  EXPECT_TRUE(live->HasEnded());
  EXPECT_TRUE(behind->HasEnded());
}
TEST_F(EventFeedTest, WherePartsOfThoseThatAreBehindTakeLongThereIsOneInATurnAndAllGetTheirs) {
  std::vector<std::shared_ptr<ByteStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(feed_.Follow(1));
  cost_ = EventFeed::kBehindFor;
  for (int i = 0; i < 3; ++i) {
    asked_.clear();
    EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
    EXPECT_THAT(asked_, ElementsAre(5, 1));
  }
  for (const auto& stream : streams) EXPECT_THAT(Read(*stream), ElementsAre("{2}", "{3}", "{4}"));
}
// Whoever refuses is there: it is asked other questions.
TEST_F(EventFeedTest, ASourceThatRefusesItsEventsIsNotAway) {
  const auto dropped = feed_.Follow(std::nullopt);
  source_answers_ = absl::ResourceExhaustedError("too many streams");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsResourceExhausted(feed_.Turn(Duration(0))));
    EXPECT_TRUE(dropped->HasEnded());
    EXPECT_TRUE(absl::IsResourceExhausted(feed_.refusal()));
    EXPECT_TRUE(feed_.standing().ok());
  }
  source_answers_ = absl::OkStatus();
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  EXPECT_TRUE(feed_.refusal().ok());
}
// Whoever asked whether events are told, a moment ago, may be told the end of them.
TEST_F(EventFeedTest, WhereNoEventsAreToldAStreamEndsAtOnce) {
  feed_.Leave(absl::UnavailableError("gone"));
  EXPECT_TRUE(feed_.Follow(std::nullopt)->HasEnded());
  EXPECT_EQ(feed_.followers(), 0u);
}
TEST_F(EventFeedTest, HowOftenTheSourceCameBackIsCounted) {
  const int64_t before = feed_.comebacks();
  Turns();
  EXPECT_EQ(feed_.comebacks(), before);
  feed_.Leave(absl::UnavailableError("gone"));
  Turns();
  EXPECT_EQ(feed_.comebacks(), before + 1);
}
// A stream that went on without events would be taken for a sign of life.
TEST_F(EventFeedTest, WhereTheSourceIsAwayAllAreDroppedAndComeBackWithoutMissingAnything) {
  const auto dropped = feed_.Follow(std::nullopt);
  source_answers_ = absl::UnavailableError("gone");
  EXPECT_TRUE(absl::IsUnavailable(feed_.Turn(Duration(0))));
  EXPECT_TRUE(dropped->HasEnded());
  EXPECT_TRUE(absl::IsUnavailable(feed_.standing()));
  newest_ = 7;
  source_answers_ = absl::OkStatus();
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  EXPECT_TRUE(feed_.standing().ok());
  const auto back = feed_.Follow(5);
  Turns();
  EXPECT_THAT(Read(*back), ElementsAre("{6}", "{7}"));
}
TEST_F(EventFeedTest, ASourceThatComesBackWithAnotherJournalIsFollowedFromItsNewest) {
  feed_.Leave(absl::UnavailableError("gone"));
  newest_ = 2;
  EXPECT_TRUE(feed_.Turn(Duration(0)).ok());
  int64_t last = 0;
  const auto stream = feed_.Follow(5);
  EXPECT_THAT(Read(*stream, &last), IsEmpty());
  EXPECT_EQ(last, 2);
}
TEST_F(EventFeedTest, ASourceThatIsAwayAtFirstIsFollowedOnceItIsThere) {
  source_answers_ = absl::UnavailableError("not yet");
  EventFeed feed(source_, clock_);
  EXPECT_TRUE(absl::IsUnavailable(feed.Turn(Duration(0))));
  source_answers_ = absl::OkStatus();
  EXPECT_TRUE(feed.Turn(Duration(0)).ok());
  const auto stream = feed.Follow(std::nullopt);
  newest_ = 6;
  EXPECT_TRUE(feed.Turn(Duration(0)).ok());
  EXPECT_THAT(Read(*stream), ElementsAre("{6}"));
}
TEST_F(EventFeedTest, TheEndIsEverybodysAndNobodyFollowsAfterIt) {
  const auto stream = feed_.Follow(std::nullopt);
  feed_.End();
  EXPECT_TRUE(stream->HasEnded());
  EXPECT_TRUE(feed_.Follow(std::nullopt)->HasEnded());
}

}  // namespace
}  // namespace siding::page
