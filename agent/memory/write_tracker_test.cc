// Against this machine's kernel: what it says of a process that writes.
#include "agent/memory/write_tracker.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <optional>

#include "agent/memory/writer_for_test.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

constexpr uint64_t kOfArea = 64;

class WriteTrackerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at_ = writer_.Map(kOfArea);
    writer_.Store(at_, kOfArea, 1);
    auto tracker = WriteTracker::Make(writer_.pid(), writer_.Userfaultfd());
    if (absl::IsUnimplemented(tracker.status())) GTEST_SKIP() << tracker.status().message();
    tracker_.emplace(*std::move(tracker));
    ASSERT_TRUE(tracker_->NextLap().ok());
  }

  uint64_t At(uint64_t page) const { return at_ + page * PageSize(); }
  // The pages of [at, at + pages) that there are with that flag in the next lap, counted from `at`.
  std::vector<uint64_t> Lap(uint32_t flag, uint64_t at, uint64_t pages) {
    std::vector<uint64_t> found;
    const auto lap = tracker_->NextLap();
    EXPECT_TRUE(lap.ok()) << lap.status();
    for (const PageRun& run : lap->pages) {
      for (uint64_t a = run.address; a < run.end(); a += PageSize())
        if (run.flags == flag && a >= at && a < at + pages * PageSize())
          found.push_back((a - at) / PageSize());
    }
    return found;
  }
  std::vector<uint64_t> Written() { return Lap(kPagePresent, at_, kOfArea); }

  Writer writer_;
  uint64_t at_ = 0;
  std::optional<WriteTracker> tracker_;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(WriteTrackerTest, WhereNothingWasWrittenAllIsAsBefore) {
  EXPECT_THAT(Lap(kPageInParent, at_, kOfArea), SizeIs(kOfArea));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(WriteTrackerTest, WhatWasWrittenIsSaidOnce) {
  writer_.Store(At(3), 2, 7);
  EXPECT_THAT(Written(), ElementsAre(3, 4));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(WriteTrackerTest, CountingTakesNothing) {
  writer_.Store(At(3), 2, 7);
  const auto count = tracker_->CountPages();
  ASSERT_TRUE(count.ok());
  EXPECT_GE(count->present, kOfArea);
  EXPECT_GE(count->written, 2u);
  EXPECT_THAT(Written(), ElementsAre(3, 4));
}

TEST_F(WriteTrackerTest, AnotherProcessWritesToItToo) {
  const uint64_t value = 9;
  const UniqueFd mem(open(("/proc/" + std::to_string(writer_.pid()) + "/mem").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(pwrite(mem.get(), &value, sizeof value, static_cast<off_t>(At(5))),
            static_cast<ssize_t>(sizeof value));
  EXPECT_THAT(Written(), ElementsAre(5));
}

TEST_F(WriteTrackerTest, PagesThatAreDroppedAreNone) {
  writer_.Drop(At(10), 4);
  EXPECT_THAT(Lap(kPageInParent, at_, kOfArea), SizeIs(kOfArea - 4));
  writer_.Store(At(11), 1, 5);
  EXPECT_THAT(Written(), ElementsAre(11));
}

TEST_F(WriteTrackerTest, WhatIsMappedAnewAtTheSamePlaceIsWritten) {
  writer_.Unmap(At(8), 8);
  ASSERT_EQ(writer_.MapAt(At(8), 8), At(8));
  writer_.Store(At(9), 1, 5);
  EXPECT_THAT(Written(), ElementsAre(9));
}

TEST_F(WriteTrackerTest, WhatWasMovedIsWrittenAllOfIt) {
  const uint64_t to = writer_.Move(at_, kOfArea, 2 * kOfArea);
  EXPECT_THAT(Lap(kPagePresent, to, 2 * kOfArea), SizeIs(kOfArea));
  EXPECT_THAT(Lap(kPagePresent, to, 2 * kOfArea), IsEmpty());
}

// The kernel merges the two again, forgets to track the first, and keeps its protection (Linux 6.18): stores
// to it would not be seen.
TEST_F(WriteTrackerTest, WhatWasMovedBackBesideATrackedAreaIsWritten) {
  constexpr uint64_t kHalf = kOfArea / 2;
  const uint64_t elsewhere = writer_.Map(4 * kOfArea) + kOfArea * PageSize();
  writer_.Unmap(elsewhere - kOfArea * PageSize(), 4 * kOfArea);
  writer_.Move(At(kHalf), kHalf, kHalf, elsewhere);
  ASSERT_TRUE(tracker_->NextLap().ok());
  writer_.Move(elsewhere, kHalf, kHalf, At(kHalf));
  writer_.Store(At(3), 1, 8);
  EXPECT_THAT(Written(), ::testing::Contains(3));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(WriteTrackerTest, PagesThatNobodyMayReadAreAsTheyWere) {
  writer_.Store(At(2), 1, 6);
  writer_.Hide(at_, kOfArea);
  EXPECT_THAT(Written(), ElementsAre(2));
  EXPECT_THAT(Lap(kPageInParent, at_, kOfArea), SizeIs(kOfArea));
}

// As above, but that the area cannot be registered again: another has it.
TEST_F(WriteTrackerTest, ProtectionThatIsLeftOverSaysNothing) {
  constexpr uint64_t kHalf = kOfArea / 2;
  const uint64_t elsewhere = writer_.Map(4 * kOfArea) + kOfArea * PageSize();
  writer_.Unmap(elsewhere - kOfArea * PageSize(), 4 * kOfArea);
  writer_.Move(At(kHalf), kHalf, kHalf, elsewhere);
  ASSERT_TRUE(tracker_->NextLap().ok());
  writer_.Move(elsewhere, kHalf, kHalf, At(kHalf));
  const UniqueFd other = writer_.Userfaultfd();
  uffdio_api api = {};
  api.api = UFFD_API;
  ASSERT_EQ(ioctl(other.get(), UFFDIO_API, &api), 0);
  uffdio_register area = {};
  area.range = {at_, kOfArea * PageSize()};
  area.mode = UFFDIO_REGISTER_MODE_WP;
  ASSERT_EQ(ioctl(other.get(), UFFDIO_REGISTER, &area), 0);
  EXPECT_THAT(Written(), SizeIs(kOfArea));
}

TEST_F(WriteTrackerTest, ItEndsWithTheDescriptor) {
  tracker_.reset();
  writer_.Store(at_, kOfArea, 3);
  auto anew = WriteTracker::Make(writer_.pid(), writer_.Userfaultfd());
  ASSERT_TRUE(anew.ok());
  tracker_.emplace(*std::move(anew));
  EXPECT_THAT(Written(), SizeIs(kOfArea));
}

TEST(WriteTracker, WhatIsNoUserfaultfdTracksNothing) {
  EXPECT_TRUE(absl::IsUnimplemented(
      WriteTracker::Make(getpid(), UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC))).status()));
}

}  // namespace
}  // namespace siding
