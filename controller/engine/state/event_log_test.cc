#include "controller/engine/state/event_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Ten events have happened, and the last four are in memory.
class EventLogTest : public testing::Test {
 protected:
  EventLogTest() {
    for (int64_t seq = 1; seq <= 10; ++seq) {
      const std::vector<Event> events = {{seq, FromMicros(seq), JobId(1), Noted{"n"}}};
      EXPECT_TRUE(journal_->Append(events).ok());
      log_.Append(events);
    }
  }
  std::vector<int64_t> After(int64_t seq, size_t limit) const {
    std::vector<int64_t> seqs;
    for (const Event& event : log_.After(seq, limit, 0s)) seqs.push_back(event.seq);
    return seqs;
  }

  const std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  EventLog log_{*journal_, 4};
};

TEST_F(EventLogTest, TellsWhatIsNew) { EXPECT_THAT(After(8, 100), ElementsAre(9, 10)); }
TEST_F(EventLogTest, TellsNoMoreThanIsAskedFor) { EXPECT_THAT(After(6, 2), ElementsAre(7, 8)); }
TEST_F(EventLogTest, TellsNothingTwice) {
  log_.Append({{9, FromMicros(9), JobId(1), Noted{"n"}}, {11, FromMicros(11), JobId(1), Noted{"n"}}});
  EXPECT_THAT(After(8, 100), ElementsAre(9, 10, 11));
}
TEST_F(EventLogTest, HasNothingAfterTheLast) { EXPECT_THAT(After(10, 100), IsEmpty()); }
TEST_F(EventLogTest, ReadsInTheJournalWhatItNoLongerHas) { EXPECT_THAT(After(0, 3), ElementsAre(1, 2, 3)); }
TEST_F(EventLogTest, LeavesNothingOutBetweenJournalAndMemory) {
  EXPECT_THAT(After(4, 100), ElementsAre(5, 6, 7, 8, 9, 10));
}

TEST_F(EventLogTest, ShowsWhatIsInMemoryUntilItHasShownEnough) {
  std::vector<int64_t> seqs;
  EXPECT_TRUE(log_.VisitAfter(6, [&](const Event& event) {
    seqs.push_back(event.seq);
    return event.seq < 9;
  }));
  EXPECT_THAT(seqs, ElementsAre(7, 8, 9));
}
TEST_F(EventLogTest, ShowsNothingWhereSomeAreInMemoryNoMore) {
  const auto fail = [](const Event&) {
    ADD_FAILURE();
    return true;
  };
  EXPECT_FALSE(log_.VisitAfter(5, fail));
  EXPECT_TRUE(log_.VisitAfter(10, fail));
}

}  // namespace
}  // namespace siding
