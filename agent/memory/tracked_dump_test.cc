// Images of a process that is tracked, by this machine's kernel; CRIU's part is played.
#include "agent/memory/tracked_dump.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "agent/memory/share_pages.h"
#include "agent/memory/writer_for_test.h"
#include "gmock/gmock.h"
#include "store/faulty_disk.h"
#include "store/parents.h"
#include "store/test_support.h"

namespace siding {
namespace {

using store::WriteAt;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Memory = std::map<uint64_t, std::string>;
constexpr uint64_t kOfProcess = 2048;   // pages, so that it is tracked
constexpr uint64_t kWorthARound = 600;  // pages
const std::function<bool()> kGoOn = [] { return false; };

class TrackedDumpTest : public store::StoreTest {
 protected:
  void SetUp() override {
    tracking_.stop_patience = std::chrono::seconds(60);
    at_ = writer_.Map(kOfProcess);
    writer_.Store(at_, kOfProcess, 1);
    if (absl::IsUnimplemented(WriteTracker::Make(writer_.pid(), writer_.Userfaultfd()).status()))
      GTEST_SKIP() << "this kernel does not track";
  }

  std::string Name() const { return absl::StrCat("pagemap-", writer_.pid(), ".img"); }
  uint64_t At(uint64_t page) const { return at_ + page * PageSize(); }

  // What CRIU writes of the process: all, or, if it is to leave it out, what is in none of its areas. A page
  // of a file's is there always.
  void Dump(const std::string& folder, bool left_out) {
    Pagemap map{.pages_id = 3, .has_64_bit_counts = true, .runs = {{PageSize(), 1, kPagePresent}}};
    std::string pages(PageSize(), 'f');
    if (left_out) {
      const ProcessMaps maps = ReadMaps(writer_.pid()).value();
      for (const MemoryArea& area : maps.areas)
        map.runs.push_back({area.begin, (area.end - area.begin) / PageSize(), kPageInParent});
    } else {
      for (const auto& [address, page] : writer_.Memory()) {
        if (map.runs.back().end() != address) map.runs.push_back({address, 0, kPagePresent});
        ++map.runs.back().pages;
        pages += page;
      }
    }
    ASSERT_TRUE(WriteAt(folder + "/" + Name(), PagemapText(map)));
    ASSERT_TRUE(WriteAt(folder + "/pages-3.img", pages));
  }

  // Pages that it has. It is tracked.
  uint64_t Present() const { return tracking_.processes.at(writer_.pid()).tracker->CountPages()->present; }

  // The next image, begun.
  struct Tried {
    explicit Tried(TrackedDumpTest& test)
        : key(test.Next()),
          draft(test.store_->Begin(key, &*test.base_).value()),
          dump(test.tracking_, test.writer_.pid(), key, *draft, *test.store_) {
      EXPECT_TRUE(dump.Begin().ok());
    }
    const ImageKey key;
    const std::unique_ptr<ImageDraft> draft;
    TrackedDump dump;
  };

  ImageKey Next() { return {CheckpointId(absl::StrCat("42.", ++number_)), 0}; }

  struct Taken {
    Manifest manifest;
    bool left_out = false;
    Bytes fresh, precopied;
    size_t known_areas = 0;
  };
  // The next image, with whatever CRIU is asked for. `meanwhile`: after it has been copied from while it
  // runs.
  Taken Take(const std::function<void()>& meanwhile = {}) {
    Taken taken;
    const ImageKey key = Next();
    const auto draft = store_->Begin(key, base_ ? &*base_ : nullptr).value();
    std::optional<TrackedDump> tracked;
    if (draft->base() != nullptr || tracking_.since) {
      tracked.emplace(tracking_, writer_.pid(), key, *draft, *store_);
      EXPECT_TRUE(tracked->Begin().ok());
      taken.left_out = !tracked->LeftOut().empty();
      taken.known_areas = tracked->AreaFiles().size();
      for (const pid_t pid : tracked->ToTrack()) tracked->Give(pid, writer_.Userfaultfd());
    }
    if (tracked && meanwhile) tracked->Prepare(called_off_);
    if (meanwhile) meanwhile();
    writer_.Stop();
    Dump(draft->path(), taken.left_out);
    std::map<std::string, std::string> metadata;
    if (tracked) {
      EXPECT_EQ(tracked->Capture(kGoOn), absl::OkStatus());
      const auto written = tracked->Write({});
      EXPECT_EQ(written.status(), absl::OkStatus());
      taken.fresh = written->fresh;
      taken.precopied = written->precopied;
      Bytes unused = written->unused;
      if (draft->base() != nullptr && draft->is_near())
        unused += SharePages(*draft, {}, written->pagemaps).value();
      if (draft->base() != nullptr) metadata[kMetadataUnused] = absl::StrCat(unused.value);
    }
    taken.manifest = draft->Seal(metadata).value();
    EXPECT_TRUE(draft->Commit().ok());
    if (tracked) tracked->Counts();
    EXPECT_TRUE(store_->Verify(key).ok());
    ExpectSame(Restored(taken.manifest), WithContent(writer_.Memory()));
    writer_.Continue();
    base_ = taken.manifest;
    return taken;
  }

  // All but the file's page.
  Memory Restored(const Manifest& manifest) const {
    std::string folder = store_->Path(manifest.key).value();
    if (store::ParentsOf(manifest) > 0) {
      EXPECT_EQ(UnitePages(manifest, folder, folder_ + "/united", kGoOn), absl::OkStatus());
      folder = folder_ + "/united";
    }
    const Pagemap map = ParsePagemap(ReadFile(folder + "/" + Name()).value()).value();
    const std::string pages = ReadFile(folder + "/pages-3.img").value();
    Memory memory;
    size_t offset = 0;
    for (const PageRun& run : map.runs) {
      EXPECT_EQ(run.flags, kPagePresent);
      for (uint64_t at = run.address; at < run.end(); at += PageSize(), offset += PageSize())
        memory[at] = pages.substr(offset, PageSize());
    }
    EXPECT_EQ(memory[PageSize()], std::string(PageSize(), 'f'));
    memory.erase(PageSize());
    return WithContent(memory);
  }

  static void ExpectSame(const Memory& image, const Memory& process) {
    std::string wrong;
    for (const auto& [address, page] : process) {
      const auto found = image.find(address);
      if (found == image.end()) absl::StrAppend(&wrong, " ", absl::Hex(address), " is missing,");
      if (found != image.end() && found->second != page)
        absl::StrAppend(&wrong, " ", absl::Hex(address), " is another,");
    }
    for (const auto& [address, page] : image)
      if (process.count(address) == 0) absl::StrAppend(&wrong, " ", absl::Hex(address), " is too much,");
    EXPECT_EQ(wrong, "");
  }

  // A page of zeros is as good as none.
  static Memory WithContent(Memory memory) {
    std::erase_if(memory,
                  [](const auto& page) { return page.second.find_first_not_of('\0') == std::string::npos; });
    return memory;
  }

  Writer writer_;
  uint64_t at_ = 0;
  MemoryTracking tracking_;
  std::optional<Manifest> base_;
  int number_ = 0;
  std::function<bool()> called_off_ = kGoOn;  // what is copied while it runs
};

TEST_F(TrackedDumpTest, TheThirdImageHasOnlyWhatWasWritten) {
  EXPECT_FALSE(Take().left_out);
  EXPECT_FALSE(Take().left_out) << "this one begins to track it";
  writer_.Store(At(100), 10, 2);
  const Taken third = Take();
  EXPECT_TRUE(third.left_out);
  EXPECT_LT(third.fresh, Bytes{static_cast<int64_t>(100 * PageSize())});
  EXPECT_LT(third.manifest.NewSize(), Bytes{static_cast<int64_t>(100 * PageSize())});
}

TEST_F(TrackedDumpTest, EachOfALongRowIsOfItsMoment) {
  std::vector<uint64_t> not_tracked;
  for (uint64_t i = 0; i < 21; ++i) {
    writer_.Store(At(i * 50), 30, i + 2);
    if (!Take([] {}).left_out) not_tracked.push_back(i);
  }
  EXPECT_THAT(not_tracked, ElementsAre(0, 1)) << "it begins to be tracked";
}

TEST_F(TrackedDumpTest, WhatIsWrittenAgainAndAgainIsAllThatIsWritten) {
  Take();
  Take();
  const uint64_t pages = Present() / 3, area = writer_.Map(pages);
  for (uint64_t i = 0; i < 6; ++i) {
    writer_.Store(area, pages, i + 2);
    const Taken taken = Take();
    EXPECT_LT(taken.fresh, Bytes{static_cast<int64_t>(2 * pages * PageSize())});
    EXPECT_LE(store::ParentsOf(taken.manifest), 3);
  }
}

// Of the parents, without a stop for that.
TEST_F(TrackedDumpTest, WhereTheParentsHoldTooMuchPagesOfThemAreWrittenAgain) {
  Take();
  Take();
  constexpr uint64_t kSome = 600;
  std::mt19937_64 random{4711};
  Bytes most;
  for (uint64_t i = 0; i < 10; ++i) {
    for (uint64_t k = 0; k < kSome; ++k) writer_.Store(At(random() % kOfProcess), 1, i + 2);
    const Taken taken = Take();
    EXPECT_TRUE(taken.left_out);
    most = std::max(most, taken.fresh);
    EXPECT_LE(taken.manifest.TotalSize().value, UsedSize(taken.manifest).value * 3 / 2);
  }
  EXPECT_GT(most, Bytes{static_cast<int64_t>(kSome * 3 / 2 * PageSize())});
}

class WhateverItDoesTest : public TrackedDumpTest {
 protected:
  void SetUp() override {
    TrackedDumpTest::SetUp();
    for (int i = 0; i < 8; ++i) areas_[writer_.Map(32)] = 32;
  }
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }

  void DoAnything(int times) {
    for (int i = 0; i < times; ++i) {
      const auto area = std::next(areas_.begin(), static_cast<std::ptrdiff_t>(Below(areas_.size())));
      const auto [at, pages] = *area;
      const uint64_t first = Below(pages), some = 1 + Below(pages - first), part = at + first * PageSize();
      switch (Below(8)) {
        case 0: {
          const uint64_t size = 1 + Below(64), to = writer_.Move(at, pages, size);
          // Not all of it is tracked, and it is of two areas for now.
          if (to == reinterpret_cast<uint64_t>(MAP_FAILED)) break;
          areas_.erase(area);
          areas_[to] = size;
          break;
        }
        case 1:
          writer_.Drop(part, some);
          break;
        case 2: {
          const uint64_t size = 1 + Below(64);
          areas_[writer_.Map(size)] = size;
          break;
        }
        case 3:
          if (areas_.size() < 4) break;
          writer_.Unmap(at, pages);
          areas_.erase(area);
          break;
        case 4:
          writer_.MapAt(part, some);
          break;
        default:
          writer_.Store(part, some, random_());
      }
    }
  }

  std::mt19937_64 random_{4711};
  std::map<uint64_t, uint64_t> areas_;  // number of pages, by address
};

TEST_F(WhateverItDoesTest, EachImageIsOfItsMoment) {
  int left_out = 0;
  for (int i = 0; i < 20; ++i) {
    DoAnything(12);
    left_out += Take().left_out ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "at image " << i;
  }
  EXPECT_GT(left_out, 5);
}

TEST_F(WhateverItDoesTest, AlsoWhatWasCopiedBeforeItWasStopped) {
  int precopied = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    writer_.Store(At(Below(kOfProcess - kWorthARound)), kWorthARound, i + 2);
    DoAnything(12);
    const Taken taken = Take([&] {
      writer_.Store(At(Below(kOfProcess - 20)), 20, i + 100);
      DoAnything(12);
    });
    precopied += taken.precopied > Bytes{} ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "at image " << i;
  }
  EXPECT_GT(precopied, 5);
}

TEST_F(TrackedDumpTest, OneThatRewritesItsMemoryIsLeftAlone) {
  Take();
  Take();
  // Four times as much as it has, whatever it has inherited.
  const uint64_t pages = Present() * 4;
  writer_.Store(writer_.Map(pages), pages, 5);
  EXPECT_FALSE(Take().left_out);
  EXPECT_FALSE(tracking_.processes.at(writer_.pid()).tracker);
  EXPECT_FALSE(Take().left_out) << "and not tried again at once";
  EXPECT_FALSE(tracking_.processes.at(writer_.pid()).tracker);
}

TEST_F(TrackedDumpTest, WhatWasCapturedForAnImageThatDoesNotCountIsNotKnownAnyMore) {
  Take();
  Take();
  writer_.Store(At(7), 1, 9);
  {
    Tried tried(*this);
    ASSERT_THAT(tried.dump.LeftOut(), ElementsAre(writer_.pid()));
    Dump(tried.draft->path(), true);
    ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  }
  EXPECT_FALSE(Take().left_out);
  EXPECT_FALSE(tracking_.given_up);
}

// What it has written is protected by then: the tracker does not say it again.
TEST_F(TrackedDumpTest, WhatWasCopiedForADumpThatFailedIsCopiedByTheNext) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  Tried(*this).dump.Prepare(kGoOn);
  writer_.Store(At(120), 5, 3);
  const Taken next = Take();
  EXPECT_TRUE(next.left_out);
  EXPECT_GE(next.fresh, Bytes{static_cast<int64_t>(kWorthARound * PageSize())});
  EXPECT_LT(Take().fresh, Bytes{static_cast<int64_t>(kWorthARound * PageSize())});
}

TEST_F(TrackedDumpTest, AndThatBeforeItIsStopped) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  Tried(*this).dump.Prepare(kGoOn);
  EXPECT_GE(Take([] {}).precopied, Bytes{static_cast<int64_t>(kWorthARound * PageSize())});
  EXPECT_EQ(tracking_.rest_from_rounds, 0);
}

TEST_F(TrackedDumpTest, InDoubtAllOfItIsCopiedWhenItIsStopped) {
  Take();
  Take();
  Tried tried(*this);
  writer_.Store(At(100), kWorthARound, 2);
  tracking_.processes.at(writer_.pid()).precopied.Distrust();
  tried.dump.Prepare(kGoOn);
  writer_.Stop();
  Dump(tried.draft->path(), true);
  ASSERT_EQ(tried.dump.Capture(kGoOn), absl::OkStatus());
  const auto written = tried.dump.Write({});
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->precopied, Bytes{});
  EXPECT_GE(written->fresh, Bytes{static_cast<int64_t>(kOfProcess * PageSize())});
  writer_.Continue();
}

TEST_F(TrackedDumpTest, ARingThatIsMadeAfterAllWasCopied) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  EXPECT_TRUE(Take([&] { writer_.MakeRing(); }).left_out);
  EXPECT_FALSE(tracking_.processes.at(writer_.pid()).tracker);
}

// CRIU has been told others, if it was stopped before it did so.
TEST_F(TrackedDumpTest, OneThatChangesFlagsOfItsMemoryMeanwhileFailsTheImageOnce) {
  Take();
  Take();
  {
    Tried tried(*this);
    tried.dump.Prepare(kGoOn);
    writer_.NoFork(at_, kOfProcess);
    Dump(tried.draft->path(), true);
    ASSERT_EQ(tried.dump.Capture(kGoOn), absl::OkStatus());
    EXPECT_TRUE(absl::IsAborted(tried.dump.Write({}).status()));
  }
  EXPECT_FALSE(tracking_.given_up);
  EXPECT_FALSE(Take([] {}).left_out) << "tracking begins anew";
  const Taken next = Take([] {});
  EXPECT_TRUE(next.left_out);
  EXPECT_EQ(next.known_areas, 0u);
}

TEST_F(TrackedDumpTest, WhatCriuIsToKnowIsOfThoseThatItLeavesOut) {
  Take();
  EXPECT_EQ(Take().known_areas, 0u);
  EXPECT_EQ(Take().known_areas, 1u);
}

// Its dump failed before anything was taken.
TEST_F(TrackedDumpTest, WhatWasNotCapturedIsKnownStill) {
  Take();
  Take();
  writer_.Store(At(7), 1, 9);
  { Tried tried(*this); }
  EXPECT_TRUE(Take().left_out);
}

TEST_F(TrackedDumpTest, NothingIsSaidOfAnotherBase) {
  Take();
  Take();
  base_ = store_->Read({CheckpointId("42.1"), 0}).value();
  writer_.Store(At(7), 1, 9);
  EXPECT_FALSE(Take().left_out);
  writer_.Store(At(8), 1, 9);
  EXPECT_TRUE(Take().left_out);
}

TEST_F(TrackedDumpTest, DamageToTheBaseIsNotShared) {
  Take();
  Take();
  const std::string pages = store_->Path(base_->key).value() + "/parent-1.pages-3.img";
  std::fstream(pages, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('x');
  Tried tried(*this);
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_TRUE(absl::IsDataLoss(tried.dump.Write({}).status()));
  EXPECT_FALSE(tracking_.given_up);
}

class OverANetworkTest : public TrackedDumpTest {
 protected:
  ~OverANetworkTest() override { store_.reset(); }  // before the disk
  void SetUp() override {
    disk_.is_far = true;
    store_ = OpenDirectoryStore(folder_, {.disk = &disk_}).value();
    TrackedDumpTest::SetUp();
  }
  // A byte that is in no page of memory, so that only the checksum tells.
  void Damage(int up) const {
    const std::string pages = store_->Path(base_->key).value() + "/" + store::NameOf({up, "pages-3.img"});
    std::fstream(pages, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('x');
  }
  absl::Status TryNext() {
    Tried tried(*this);
    Dump(tried.draft->path(), true);
    EXPECT_TRUE(tried.dump.Capture(kGoOn).ok());
    return tried.dump.Write({}).status();
  }
  store::FaultyDisk disk_;
};

TEST_F(OverANetworkTest, FromTheThirdOnImagesHaveOnlyWhatWasWritten) {
  EXPECT_FALSE(Take().left_out);
  EXPECT_EQ(store::ParentsOf(Take().manifest), 0) << "nothing is compared";
  writer_.Store(At(100), 10, 2);
  const Taken third = Take();
  EXPECT_TRUE(third.left_out);
  EXPECT_LT(third.manifest.NewSize(), Bytes{static_cast<int64_t>(100 * PageSize())});
}

TEST_F(OverANetworkTest, TheBaseIsReadForOneImageInFour) {
  while (tracking_.images % 4 != 2) Take();
  Damage(store::ParentsOf(*base_));
  EXPECT_TRUE(TryNext().ok());
}

TEST_F(OverANetworkTest, ForThatOneDamageIsFound) {
  while (tracking_.images % 4 != 3) Take();
  Damage(store::ParentsOf(*base_));
  EXPECT_TRUE(absl::IsDataLoss(TryNext()));
}

// The largest has more that nobody uses than it may, and is left out, in an image that does not read all.
TEST_F(OverANetworkTest, DamagedPagesAreNotWrittenAgain) {
  while (tracking_.images % 4 != 2) Take();
  Damage(store::ParentsOf(*base_));
  ASSERT_GT(kOfProcess, Present() / 2) << "of which half as much again is kept at most";
  Tried tried(*this);
  writer_.Store(at_, kOfProcess, 9);
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_TRUE(absl::IsDataLoss(tried.dump.Write({}).status()));
}

TEST_F(TrackedDumpTest, WhereTheKernelIsWrongTheImageIsRefused) {
  Take();
  Take();
  tracking_.since.reset();
  writer_.Store(at_, kOfProcess, 77);  // behind its back
  for (auto& [pid, process] : tracking_.processes) ASSERT_TRUE(process.tracker->SkipLap());
  tracking_.since = base_->key;
  Tried tried(*this);
  ASSERT_THAT(tried.dump.LeftOut(), ElementsAre(writer_.pid()));
  tried.dump.Prepare(kGoOn);
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_THAT(std::string(tried.dump.Write({}).status().message()),
              HasSubstr("the kernel says that it has not"));
  EXPECT_TRUE(tracking_.given_up);
}

// It is compared in one image of eight.
TEST_F(TrackedDumpTest, AlsoAboutOnePage) {
  Take();
  Take();
  writer_.Store(At(700), 1, 77);
  ASSERT_TRUE(tracking_.processes.at(writer_.pid()).tracker->SkipLap());
  std::string refused;
  for (int i = 0; i < 8 && refused.empty(); ++i) {
    Tried tried(*this);
    tried.dump.Prepare(kGoOn);
    writer_.Stop();
    Dump(tried.draft->path(), true);
    ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
    const absl::Status written = tried.dump.Write({}).status();
    refused = std::string(written.message());
    if (written.ok()) {
      base_ = tried.draft->Seal({}).value();
      ASSERT_TRUE(tried.draft->Commit().ok());
      tried.dump.Counts();
    }
    writer_.Continue();
  }
  EXPECT_THAT(refused, HasSubstr("has changed, and the kernel says that it has not"));
}

// Where the smallest of too many parents are left out, and the others come nearer.
TEST_F(OverANetworkTest, ADiskThatFailsIsNotTheTrackingsFault) {
  Take();
  Take();
  for (uint64_t page = 0; store::ParentsOf(*base_) < store::kMostParents; ++page) {
    writer_.Store(At(page), 1, 5);
    Take();
  }
  Tried tried(*this);
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  disk_.Fail(0, store::Fault::kOnce, EIO);
  EXPECT_TRUE(IsTierProblem(tried.dump.Write({}).status()));
  EXPECT_EQ(disk_.operations(), 1);
  EXPECT_FALSE(tracking_.given_up);
}

// While the base was looked at it has ended, and its number is another process's.
TEST_F(TrackedDumpTest, WhatCriuHasLeftOutOfAnotherProcessFailsTheImage) {
  Take();
  Take();
  Tried tried(*this);
  ASSERT_TRUE(WriteAt(tried.draft->path() + "/pagemap-58.img",
                      PagemapText({.pages_id = 3, .runs = {{at_, 1, kPageInParent}}})));
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_THAT(std::string(tried.dump.Write({}).status().message()), HasSubstr("pagemap-58.img lacks pages"));
}

TEST_F(TrackedDumpTest, OfAProcessThatHasEndedNothingIsInTheImage) {
  Take();
  Take();
  Tried tried(*this);
  ASSERT_THAT(tried.dump.LeftOut(), ElementsAre(writer_.pid()));
  ASSERT_TRUE(WriteAt(tried.draft->path() + "/core-2.img", "of another"));
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  ASSERT_TRUE(tried.dump.Write({}).ok());
  EXPECT_EQ(store::CountEntries(tried.draft->path()), 1u);
}

TEST_F(TrackedDumpTest, OneThatCanMakeNoUserfaultfdIsNotAskedAgainAtOnce) {
  Take();
  Tried tried(*this);
  ASSERT_THAT(tried.dump.ToTrack(), ElementsAre(writer_.pid()));
  tried.dump.Give(writer_.pid(), UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  Dump(tried.draft->path(), false);
  EXPECT_TRUE(tried.dump.Capture(kGoOn).ok());
  tried.dump.Counts();
  EXPECT_THAT(Tried(*this).dump.ToTrack(), IsEmpty());
}

TEST_F(TrackedDumpTest, OneWithARingForAsynchronousInputIsNotTrackedFromThenOn) {
  Take();
  Take();
  Tried tried(*this);
  writer_.MakeRing();
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_TRUE(tried.dump.Write({}).ok()) << "until now all was seen";
  EXPECT_FALSE(tracking_.processes.at(writer_.pid()).tracker);
}

TEST_F(TrackedDumpTest, TheImageAfterAWholeOneIsOfWhatWasWritten) {
  Take();
  Take();
  base_.reset();
  writer_.Store(At(7), 1, 9);
  EXPECT_FALSE(Take().left_out);
  EXPECT_TRUE(Take().left_out);
}

TEST_F(TrackedDumpTest, OneThatWasCalledOffIsTriedAgain) {
  Take();
  Take();
  writer_.Store(At(7), 1, 9);
  {
    Tried tried(*this);
    Dump(tried.draft->path(), true);
    EXPECT_TRUE(absl::IsCancelled(tried.dump.Capture([] { return true; })));
  }
  EXPECT_TRUE(Take().left_out);
}

TEST_F(TrackedDumpTest, MemoryThatIsLeftOutAndNotCapturedFailsTheImage) {
  Take();
  Take();
  Tried tried(*this);
  Dump(tried.draft->path(), true);
  ASSERT_TRUE(WriteAt(tried.draft->path() + "/pagemap-1.img",
                      PagemapText({.pages_id = 9, .runs = {{at_, 1, kPageInParent}}})));
  ASSERT_TRUE(tried.dump.Capture(kGoOn).ok());
  EXPECT_THAT(std::string(tried.dump.Write({}).status().message()), HasSubstr("pagemap-1.img lacks pages"));
  EXPECT_TRUE(tracking_.given_up);
}

TEST_F(TrackedDumpTest, MemoryThatIsNotPrivateIsNotTaken) {
  Take();
  Take();
  Tried tried(*this);
  ASSERT_TRUE(WriteAt(tried.draft->path() + "/" + Name(),
                      PagemapText({.pages_id = 3, .runs = {{PageSize(), 4, kPageInParent}}})));
  EXPECT_THAT(std::string(tried.dump.Capture(kGoOn).message()), HasSubstr("is not private"));
  EXPECT_TRUE(tracking_.given_up);
}

TEST_F(TrackedDumpTest, WhatIsNotWrittenAgainIsCopiedBeforeItIsStopped) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  const Taken third = Take([&] { writer_.Store(At(150), 10, 3); });
  EXPECT_GE(third.precopied, Bytes{static_cast<int64_t>(kWorthARound * PageSize())});
  EXPECT_GE(third.fresh, Bytes{static_cast<int64_t>(kWorthARound * PageSize())});
  EXPECT_EQ(Take([] {}).precopied, Bytes{}) << "so little is copied in one";
}

// They are protected by then: it would be said of them that they are as in the last image.
TEST_F(TrackedDumpTest, WhatWasNotCopiedAfterAllIsCopiedWhenItIsStopped) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  called_off_ = [] { return true; };
  EXPECT_EQ(Take([] {}).precopied, Bytes{});
}

TEST_F(TrackedDumpTest, WhatItGivesAwayWhileItIsCopied) {
  Take();
  Take();
  writer_.Store(At(100), kWorthARound, 2);
  called_off_ = [this, once = false]() mutable {
    if (std::exchange(once, true)) return false;
    writer_.Unmap(At(110), 20);
    writer_.Drop(At(200), 20);
    writer_.Hide(At(300), 20);
    writer_.Store(writer_.MapAt(At(400), 20), 10, 4);
    return false;
  };
  EXPECT_GT(Take([] {}).precopied, Bytes{});
}

TEST_F(TrackedDumpTest, OneThatWritesAllOfItAgainIsCopiedInOneForAWhile) {
  Take();
  Take();
  for (int i = 0; i < 10; ++i) {
    writer_.Store(At(100), kWorthARound, 2);
    const bool precopied = Take([&] { writer_.Store(At(100), kWorthARound, 3); }).precopied > Bytes{};
    EXPECT_EQ(precopied, i == 0 || i == 9) << i;
  }
}

class CapturedPagesTest : public store::StoreTest {};

TEST_F(CapturedPagesTest, WhatThereIsNoRoomForIsInAFile) {
  Writer writer;
  const uint64_t pages = 3000, at = writer.Map(pages);
  for (uint64_t i = 0; i < pages; ++i) writer.Store(at + i * PageSize(), 1, i);
  auto captured = CapturedPages::Make(0, store_->OpenScratch().value()).value();
  ASSERT_TRUE(captured.Take(writer.pid(), {{at, 100, kPagePresent}}, kGoOn).ok());
  ASSERT_TRUE(captured.Take(writer.pid(), {{at + 100 * PageSize(), pages - 100, kPagePresent}}, kGoOn).ok());
  ASSERT_EQ(captured.bytes(), pages * PageSize());
  std::string all(pages * PageSize(), '\0');
  ASSERT_TRUE(captured.Read(0, 500 * PageSize(), all.data()).ok());
  ASSERT_TRUE(
      captured.Read(500 * PageSize(), (pages - 500) * PageSize(), all.data() + 500 * PageSize()).ok());
  for (uint64_t i = 0; i < pages; ++i)
    ASSERT_EQ(*reinterpret_cast<const uint64_t*>(all.data() + i * PageSize()), i);
}

TEST_F(CapturedPagesTest, AllTogetherTakeNoMoreThanThereIsForAll) {
  const auto make = [&] {
    return CapturedPages::Make(CapturedPages::kMostRoom, store_->OpenScratch().value()).value();
  };
  for (int i = 0; i < 2; ++i) {  // and give it back
    const CapturedPages first = make(), second = make(), third = make();
    EXPECT_EQ(first.room() + second.room(), CapturedPages::kMostRoomOfAll);
    EXPECT_LT(third.room(), CapturedPages::kMostRoom / 8);
  }
}

TEST_F(CapturedPagesTest, APageThatIsGoneIsAnError) {
  Writer writer;
  const uint64_t at = writer.Map(4);
  writer.Unmap(at, 4);
  auto captured = CapturedPages::Make(0, store_->OpenScratch().value()).value();
  EXPECT_TRUE(absl::IsInternal(captured.Take(writer.pid(), {{at, 4, kPagePresent}}, kGoOn)));
}

TEST_F(CapturedPagesTest, OrIsTold) {
  Writer writer;
  const uint64_t at = writer.Map(4);
  writer.Store(at, 4, 7);
  writer.Unmap(at + PageSize(), 2);
  auto captured = CapturedPages::Make(0, store_->OpenScratch().value()).value();
  std::vector<PageRun> unread;
  ASSERT_TRUE(captured.Take(writer.pid(), {{at, 4, kPagePresent}}, kGoOn, &unread).ok());
  EXPECT_THAT(unread, ElementsAre(PageRun{at + PageSize(), 2, kPagePresent}));
  uint64_t last = 0;
  ASSERT_EQ(captured.bytes(), 4 * PageSize());
  ASSERT_TRUE(captured.Read(3 * PageSize(), sizeof last, reinterpret_cast<char*>(&last)).ok());
  EXPECT_EQ(last, 7u);
}

}  // namespace
}  // namespace siding
