// Against this machine's kernel: what it says of a process that writes.
#include "agent/memory/write_tracker.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "agent/memory/writer_for_test.h"
#include "agent/os/stop_tree.h"
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

using ::testing::Contains;
using ::testing::Each;
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

// The kernel looks at a process for 512 regions at a time.
TEST_F(WriteTrackerTest, OfManyRegionsEachIsSaidOnceInOrder) {
  for (const uint64_t pages : {1100, 20'000, 40'000}) {
    const uint64_t area = writer_.Map(pages);
    writer_.Store(area, pages, 1);
    ASSERT_TRUE(tracker_->NextLap().ok());
    std::vector<uint64_t> even, odd;
    for (uint64_t page = 0; page < pages; ++page) {
      if (page % 2 == 0) writer_.Store(area + page * PageSize(), 1, 2);
      (page % 2 == 0 ? even : odd).push_back(page);
    }
    EXPECT_GE(tracker_->CleanPages().value().size(), pages / 2);
    const auto lap = tracker_->NextLap();
    ASSERT_TRUE(lap.ok());
    uint64_t after = 0;
    std::vector<uint64_t> written, others;
    for (const PageRun& run : lap->pages) {
      EXPECT_GE(run.address, after);
      after = run.end();
      for (uint64_t at = run.address; at < run.end(); at += PageSize())
        if (at >= area && at < area + pages * PageSize())
          (run.present() ? written : others).push_back((at - area) / PageSize());
    }
    EXPECT_EQ(written, even);
    EXPECT_EQ(others, odd);
    writer_.Unmap(area, pages);
  }
}

TEST_F(WriteTrackerTest, CountingTakesNothing) {
  writer_.Store(At(3), 2, 7);
  const auto count = tracker_->CountPages();
  ASSERT_TRUE(count.ok());
  EXPECT_GE(count->present, kOfArea);
  EXPECT_GE(count->written, 2u);
  EXPECT_THAT(Written(), ElementsAre(3, 4));
}

TEST_F(WriteTrackerTest, WhatWasWrittenCanBeAskedForAlone) {
  writer_.Store(At(3), 2, 7);
  EXPECT_GE(*tracker_->CountWritten(), 2u);
  const auto written = tracker_->NextWritten();
  ASSERT_TRUE(written.ok());
  EXPECT_THAT(*written, Contains(PageRun{At(3), 2, kPagePresent}));
  EXPECT_THAT(*written, Each(::testing::Field(&PageRun::flags, kPagePresent)));
  EXPECT_THAT(Written(), IsEmpty()) << "it begins the next lap as well";
}

TEST_F(WriteTrackerTest, WhereTheKernelWritesByARingThereIsNoSuchLap) {
  writer_.MakeRing();
  writer_.Store(At(3), 2, 7);
  EXPECT_FALSE(tracker_->NextWritten().ok());
  EXPECT_THAT(Written(), ElementsAre(3, 4)) << "nothing was taken";
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
  EXPECT_THAT(Written(), Contains(3));
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

// A process that reads a file past the page tables (O_DIRECT) all the time. What such a read writes after its
// pages were protected is not seen. (Without the stop this test fails within a few laps, on a file system
// that has such reads.)
class DirectReader {
 public:
  static constexpr uint64_t kPages = 256;

  explicit DirectReader(const std::string& path)
      : shared_(static_cast<Shared*>(
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    for (uint64_t page = 0; page < 2 * kPages; ++page)
      EXPECT_TRUE(
          siding::WriteAll(file, std::string(PageSize(), static_cast<char>(page * 7 + 1)), path).ok());
    EXPECT_EQ(fsync(file.get()), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int direct = open(path.c_str(), O_RDONLY | O_DIRECT);
    char* const to = static_cast<char*>(
        mmap(nullptr, kPages * PageSize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    shared_->userfaultfd =
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
    for (uint64_t i = 0;
         pread(direct, to, kPages * PageSize(), static_cast<off_t>(i * 13 % kPages * PageSize())) > 0; ++i)
      shared_->buffer = reinterpret_cast<uint64_t>(to);
    shared_->has_failed = true;
    _exit(1);
  }
  ~DirectReader() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }
  DirectReader(const DirectReader&) = delete;
  DirectReader& operator=(const DirectReader&) = delete;

  // False: the file system has no such reads.
  bool Reads() const {
    PollUntil([&] { return shared_->buffer > 0 || shared_->has_failed; }, std::chrono::seconds(60));
    return !shared_->has_failed;
  }
  pid_t pid() const { return pid_; }
  uint64_t buffer() const { return shared_->buffer; }
  UniqueFd Userfaultfd() const {
    const auto process = OpenPidfd(pid_);
    return UniqueFd(
        static_cast<int>(syscall(SYS_pidfd_getfd, process->get(), shared_->userfaultfd.load(), 0)));
  }
  std::string Memory() const {
    std::string memory(kPages * PageSize(), '\0');
    const UniqueFd mem(open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(pread(mem.get(), memory.data(), memory.size(), static_cast<off_t>(buffer())),
              static_cast<ssize_t>(memory.size()));
    return memory;
  }

 private:
  struct Shared {
    std::atomic<uint64_t> buffer;
    std::atomic<int> userfaultfd;
    std::atomic<bool> has_failed;
  };
  Shared* const shared_;
  pid_t pid_ = -1;
};

TEST(WriteTracker, WhatIsReadPastThePageTablesIsSeen) {
  const DirectReader reader(testing::TempDir() + "/direct");
  if (!reader.Reads()) GTEST_SKIP() << "no O_DIRECT there";
  auto tracker = WriteTracker::Make(reader.pid(), reader.Userfaultfd());
  if (absl::IsUnimplemented(tracker.status())) GTEST_SKIP() << tracker.status().message();
  std::string before;
  for (int i = 0; i < 100; ++i) {
    const absl::Status looked =
        WhileStopped(reader.pid(), std::chrono::seconds(60), [&](const StoppedTree&) -> absl::Status {
          const auto written = tracker->NextWritten();
          if (!written.ok()) return written.status();
          std::string now = reader.Memory();
          for (const PageRun& run : *written) {
            for (uint64_t at = run.address; at < run.end() && !before.empty(); at += PageSize()) {
              if (at < reader.buffer() || at >= reader.buffer() + now.size()) continue;
              const uint64_t offset = at - reader.buffer();
              before.replace(offset, PageSize(), now, offset, PageSize());
            }
          }
          EXPECT_TRUE(before.empty() || before == now) << "in lap " << i;
          before = std::move(now);
          return absl::OkStatus();
        });
    ASSERT_EQ(looked, absl::OkStatus());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(WriteTracker, WhatIsNoUserfaultfdTracksNothing) {
  EXPECT_TRUE(absl::IsUnimplemented(
      WriteTracker::Make(getpid(), UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC))).status()));
}

}  // namespace
}  // namespace siding
