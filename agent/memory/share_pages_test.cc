#include "agent/memory/share_pages.h"

#include <filesystem>

#include "agent/memory/pagemap.h"
#include "gmock/gmock.h"
#include "store/parents.h"
#include "store/test_support.h"

namespace siding {
namespace {

namespace fs = std::filesystem;
using store::Pattern;
using store::WriteAt;

constexpr uint64_t kMemoryAt = 0x7f0000000000;
constexpr size_t kPages = 1024;  // of a process; enough to be shared

// What a process, or shared memory, has: pages by address, each of some content.
using Memory = std::map<uint64_t, std::string>;

class SharePagesTest : public store::StoreTest {
 protected:
  static std::string Page(unsigned content) { return Pattern(PageSize(), content); }
  static uint64_t At(size_t page) { return kMemoryAt + page * PageSize(); }
  static Memory Filled(size_t pages = kPages) {
    Memory memory;
    for (size_t i = 0; i < pages; ++i) memory[At(i)] = Page(static_cast<unsigned>(i));
    return memory;
  }

  // As CRIU writes it: all of the memory.
  static void Dump(const std::string& folder, const Memory& memory, const std::string& name = "7",
                   uint32_t pages_id = 107) {
    Pagemap map{.pages_id = pages_id, .has_64_bit_counts = true};
    std::string pages;
    for (const auto& [address, page] : memory) {
      if (map.runs.empty() || map.runs.back().end() != address)
        map.runs.push_back({address, 0, kPagePresent});
      ++map.runs.back().pages;
      pages += page;
    }
    ASSERT_TRUE(WriteAt(absl::StrCat(folder, "/pagemap-", name, ".img"), PagemapText(map)));
    ASSERT_TRUE(WriteAt(absl::StrCat(folder, "/pages-", pages_id, ".img"), pages));
  }

  // What CRIU reads from the folder of a whole image.
  static Memory Restored(const std::string& folder, const std::string& name = "7") {
    Memory memory;
    const Pagemap map =
        ParsePagemap(ReadFile(absl::StrCat(folder, "/pagemap-", name, ".img")).value()).value();
    const std::string pages = ReadFile(absl::StrCat(folder, "/pages-", map.pages_id, ".img")).value();
    size_t offset = 0;
    for (const PageRun& run : map.runs) {
      EXPECT_EQ(run.flags, kPagePresent);
      for (uint64_t at = run.address; at < run.end(); at += PageSize(), offset += PageSize())
        memory[at] = pages.substr(offset, PageSize());
    }
    EXPECT_EQ(offset, pages.size());
    return memory;
  }

  // An image of a memory, the base of the next.
  Manifest Put(const Memory& memory, int number, const std::string& name = "7") {
    const ImageKey key{CheckpointId(absl::StrCat("42.", number)), 0};
    const auto draft = store_->Begin(key, base_ ? &*base_ : nullptr).value();
    Dump(draft->path(), memory, name);
    std::map<std::string, std::string> metadata;
    if (draft->base() != nullptr)
      metadata[kMetadataUnused] = absl::StrCat(SharePages(*draft, {}).value().value);
    Manifest manifest = draft->Seal(metadata).value();
    EXPECT_TRUE(draft->Commit().ok());
    EXPECT_TRUE(store_->Verify(key).ok());
    EXPECT_EQ(RestoredOf(manifest, name), memory);
    base_ = manifest;
    return manifest;
  }
  Memory RestoredOf(const Manifest& manifest, const std::string& name = "7") const {
    const std::string image = store_->Path(manifest.key).value();
    if (store::ParentsOf(manifest) == 0) return Restored(image, name);
    EXPECT_TRUE(UnitePages(manifest, image, folder_ + "/united", [] { return false; }).ok());
    return Restored(folder_ + "/united", name);
  }
  // A draft of that memory, beside the base.
  std::unique_ptr<ImageDraft> Begin(const Memory& memory) {
    auto draft = store_->Begin({CheckpointId("42.100"), 0}, &*base_).value();
    Dump(draft->path(), memory);
    return draft;
  }
  // Sharing has left the draft as it was.
  void ExpectWhole(ImageDraft& draft, const Memory& memory) {
    ASSERT_TRUE(SharePages(draft, {}).ok());
    EXPECT_EQ(store::CountEntries(draft.path()), 2u);
    EXPECT_EQ(Restored(draft.path()), memory);
  }
  static Bytes OfPages(size_t pages) { return Bytes{static_cast<int64_t>(pages * PageSize())}; }

  std::optional<Manifest> base_;
};

TEST_F(SharePagesTest, OnlyWhatHasChangedIsNew) {
  Memory memory = Filled();
  Put(memory, 1);
  for (const size_t page : {0, 1, 500, 1023}) memory[At(page)] = Page(5000);
  const Manifest manifest = Put(memory, 2);
  EXPECT_EQ(fs::file_size(store_->Path(manifest.key).value() + "/pages-107.img"), 4 * PageSize());
  EXPECT_LT(manifest.NewSize(), OfPages(5));
}

TEST_F(SharePagesTest, WhereNothingHasChangedNothingIsNew) {
  const Memory memory = Filled();
  Put(memory, 1);
  const Manifest manifest = Put(memory, 2);
  EXPECT_LT(manifest.NewSize(), OfPages(1));
}

TEST_F(SharePagesTest, PagesThatCameAndWentAreAsTheyAre) {
  Memory memory = Filled();
  Put(memory, 1);
  for (size_t page = 100; page < 200; ++page) memory.erase(At(page));
  for (size_t page = 3000; page < 3050; ++page) memory[At(page)] = Page(9);
  memory[kMemoryAt - 7 * PageSize()] = Page(1);
  const Manifest manifest = Put(memory, 2);
  EXPECT_LT(manifest.NewSize(), OfPages(52));
}

// The same bytes elsewhere are not what CRIU would find there.
TEST_F(SharePagesTest, PagesThatMovedAreNew) {
  Memory memory = Filled();
  Put(memory, 1);
  for (size_t page = 0; page < 10; ++page) std::swap(memory[At(page)], memory[At(page + 10)]);
  const Manifest manifest = Put(memory, 2);
  EXPECT_GE(manifest.NewSize(), OfPages(20));
}

TEST_F(SharePagesTest, EachImageOfALongRowIsOfItsMomentWhateverIsDeleted) {
  Memory memory = Filled();
  std::vector<std::pair<Manifest, Memory>> made;
  for (int number = 1; number <= 12; ++number) {
    for (size_t page = 0; page < 20; ++page)
      memory[At((static_cast<size_t>(number) * 37 + page * 11) % kPages)] =
          Page(static_cast<unsigned>(number * 1000 + page));
    made.emplace_back(Put(memory, number), memory);
  }
  for (const size_t gone : {0, 1, 3, 4, 8, 10}) ASSERT_TRUE(store_->Delete(made[gone].first.key).ok());
  for (const size_t kept : {2, 5, 6, 7, 9, 11}) {
    EXPECT_EQ(RestoredOf(made[kept].first), made[kept].second) << kept;
    EXPECT_TRUE(store_->Verify(made[kept].first.key).ok()) << kept;
  }
}

// Each time another page.
TEST_F(SharePagesTest, HoweverLongARowIsItIsNotWrittenWholeAgain) {
  constexpr int kImages = 4 * store::kMostParents;
  Memory memory = Filled();
  Put(memory, 1);
  Bytes all;
  for (int number = 2; number <= kImages; ++number) {
    memory[At(static_cast<size_t>(number))] = Page(7000);
    const Manifest manifest = Put(memory, number);
    EXPECT_LE(store::ParentsOf(manifest), store::kMostParents);
    all += manifest.NewSize();
  }
  // A page and its pagemap each, and each page again a few times.
  EXPECT_LT(all, OfPages(6 * kImages));
}

TEST_F(SharePagesTest, WhatNobodyUsesAnyMoreIsNotKept) {
  Memory memory = Filled();
  Put(memory, 1);
  for (int number = 2; number <= 5; ++number) {
    for (size_t page = 0; page < 100; ++page)
      memory[At(page)] = Page(static_cast<unsigned>(number * 1000 + page));
    const Manifest manifest = Put(memory, number);
    EXPECT_EQ(store::ParentsOf(manifest), 1) << "the first, and none of those between";
    EXPECT_LT(manifest.NewSize(), OfPages(102));
  }
}

// Two fifths change each time: what is of no use any more adds up.
TEST_F(SharePagesTest, ParentsDoNotHoldMuchThatNobodyUses) {
  Memory memory = Filled();
  for (int number = 1; number <= 12; ++number) {
    for (size_t page = 0; page < kPages * 2 / 5; ++page)
      memory[At((page + static_cast<size_t>(number) * 300) % kPages)] =
          Page(static_cast<unsigned>(number * 5000 + page));
    const Manifest manifest = Put(memory, number);
    EXPECT_LE(manifest.TotalSize().value, OfPages(kPages).value * 3 / 2 + (64 << 10));
  }
}

TEST_F(SharePagesTest, WhatIsWrittenAgainIsThatOfTheImageThatHadIt) {
  Memory memory = Filled();
  std::vector<std::pair<Manifest, Memory>> made;
  for (int number = 1; number <= 30; ++number) {
    for (size_t i = 0; i < 60; ++i)
      memory[At((static_cast<size_t>(number) * 131 + i * 17) % kPages)] =
          Page(static_cast<unsigned>(number * 1000 + i));
    if (number % 5 == 0) memory.erase(At(static_cast<size_t>(number)));
    made.emplace_back(Put(memory, number), memory);
    if (number > 4) {
      ASSERT_TRUE(store_->Delete(made[static_cast<size_t>(number - 4)].first.key).ok());
    }
  }
  EXPECT_EQ(RestoredOf(made.back().first), memory);
}

// Whose pages had the same number in one image as another memory's in another.
TEST_F(SharePagesTest, TwoMemoriesThatWouldHaveFilesOfOneNameDoNotTakeThemFromEachOther) {
  Memory first = Filled(), second = Filled();
  const auto put = [&](int number, bool swapped) {
    const ImageKey key{CheckpointId(absl::StrCat("42.", number)), 0};
    const auto draft = store_->Begin(key, base_ ? &*base_ : nullptr).value();
    Dump(draft->path(), first, "7", swapped ? 108 : 107);
    Dump(draft->path(), second, "8", swapped ? 107 : 108);
    if (base_) {
      EXPECT_TRUE(SharePages(*draft, {}).ok());
    }
    base_ = draft->Seal({}).value();
    EXPECT_TRUE(draft->Commit().ok());
    EXPECT_EQ(RestoredOf(*base_, "7"), first) << number;
    EXPECT_EQ(RestoredOf(*base_, "8"), second) << number;
  };
  put(1, false);
  for (int number = 2; number < 20; ++number) {
    // Of the one all that changes changes again; of the other always another page.
    for (size_t page = 0; page < 50; ++page)
      first[At(page)] = Page(static_cast<unsigned>(number * 100 + page));
    second[At(static_cast<size_t>(number))] = Page(static_cast<unsigned>(number));
    put(number, number % 3 == 0);
  }
}

TEST_F(SharePagesTest, ASmallProcessIsWrittenWhole) {
  const Memory memory = Filled(10);
  Put(memory, 1);
  ExpectWhole(*Begin(memory), memory);
}

TEST_F(SharePagesTest, WhereMostHasChangedAllIsWritten) {
  Put(Filled(), 1);
  Memory memory = Filled();
  for (size_t page = 0; page < kPages * 4 / 5; ++page)
    memory[At(page)] = Page(static_cast<unsigned>(page + 9000));
  ExpectWhole(*Begin(memory), memory);
}

TEST_F(SharePagesTest, ANewProcessIsWrittenWhole) {
  const Memory memory = Filled();
  Put(memory, 1);
  const auto draft = store_->Begin({CheckpointId("42.100"), 0}, &*base_).value();
  Dump(draft->path(), memory, "8");
  ASSERT_TRUE(SharePages(*draft, {}).ok());
  EXPECT_EQ(Restored(draft->path(), "8"), memory);
}

// Else damage to one image would be damage to all that follow.
TEST_F(SharePagesTest, OfADamagedBaseNothingIsShared) {
  const Memory memory = Filled();
  const std::string folder = store_->Path(Put(memory, 1).key).value();
  for (const std::string file : {"/pages-107.img", "/pagemap-7.img"}) {
    const std::string good = ReadFile(folder + file).value();
    std::string flipped = good.substr(good.size() / 2, 1);
    flipped[0] ^= 1;
    ASSERT_TRUE(WriteAt(folder + file, flipped, static_cast<off_t>(good.size() / 2)));
    ExpectWhole(*Begin(memory), memory);
    ASSERT_TRUE(WriteAt(folder + file, good));
  }
}

TEST_F(SharePagesTest, OfABaseThatIsDeletedMeanwhileNothingIsShared) {
  const Memory memory = Filled();
  Put(memory, 1);
  const auto draft = Begin(memory);
  ASSERT_TRUE(store_->Delete(base_->key).ok());
  ExpectWhole(*draft, memory);
}

TEST_F(SharePagesTest, AFileThatIsNotWhatItsPagemapSaysIsLeftAlone) {
  const Memory memory = Filled();
  Put(memory, 1);
  const auto draft = Begin(memory);
  fs::resize_file(draft->path() + "/pages-107.img", PageSize());
  ASSERT_TRUE(SharePages(*draft, {}).ok());
  EXPECT_EQ(fs::file_size(draft->path() + "/pages-107.img"), PageSize());
  EXPECT_EQ(store::CountEntries(draft->path()), 2u);
}

TEST_F(SharePagesTest, ItEndsSoonWhenItIsToldTo) {
  Put(Filled(), 1);
  int calls = 0;
  for (bool through = false; !through; ++calls) {
    int asked = 0;
    const auto stop = [&] { return asked++ >= calls; };
    const absl::Status status = SharePages(*Begin(Filled()), {.stop = stop}).status();
    EXPECT_LE(asked, calls + 1) << "once it has been told";
    through = status.ok();
    EXPECT_TRUE(through || absl::IsCancelled(status)) << status;
  }
  EXPECT_GE(calls, 8) << "while the base is read, and while pages are compared";
}

TEST_F(SharePagesTest, OfSharedMemoryOnlyWhatHasChangedIsNew) {
  Memory memory = Filled();
  Put(memory, 1, "shmem-4711");
  memory[At(3)] = Page(5000);
  EXPECT_LT(Put(memory, 2, "shmem-4711").NewSize(), OfPages(2));
}

TEST_F(SharePagesTest, WhatThereIsNoTimeForIsWrittenWhole) {
  const Memory memory = Filled();
  Put(memory, 1);
  const auto draft = Begin(memory);
  ASSERT_TRUE(SharePages(*draft, {.until = std::chrono::steady_clock::now()}).ok());
  EXPECT_EQ(store::CountEntries(draft->path()), 2u);
  EXPECT_EQ(Restored(draft->path()), memory);
}

TEST_F(SharePagesTest, WhatIsScatteredOverTooManyPiecesIsWrittenWhole) {
  Memory memory = Filled();
  Put(memory, 1);
  for (size_t page = 0; page < 40; page += 2) memory[At(page)] = Page(static_cast<unsigned>(8000 + page));
  const auto draft = Begin(memory);
  ASSERT_TRUE(SharePages(*draft, {.most_runs = 30}).ok());
  EXPECT_EQ(store::CountEntries(draft->path()), 2u);
  EXPECT_EQ(Restored(draft->path()), memory);
}

TEST_F(SharePagesTest, WhatParentsHoldBeyondThatIsNoPartOfItsSize) {
  Memory memory = Filled();
  const Manifest whole = Put(memory, 1);
  EXPECT_EQ(UsedSize(whole), whole.TotalSize());
  for (size_t page = 0; page < 100; ++page) memory[At(page)] = Page(static_cast<unsigned>(8000 + page));
  const Manifest second = Put(memory, 2);
  EXPECT_EQ(second.TotalSize() - UsedSize(second), OfPages(100));
  Manifest tampered = second;
  for (const std::string said : {"-1", "999999999999", "x"}) {
    tampered.metadata[kMetadataUnused] = said;
    EXPECT_GE(UsedSize(tampered), tampered.NewSize()) << said;
    EXPECT_LE(UsedSize(tampered), tampered.TotalSize()) << said;
  }
}

class UnitePagesTest : public SharePagesTest {
 protected:
  UnitePagesTest() {
    Memory memory = Filled();
    Put(memory, 1);
    memory[At(3)] = Page(5000);
    Put(memory, 2);
    image_ = store_->Path(base_->key).value();
  }
  absl::Status Unite() const {
    return UnitePages(*base_, image_, folder_ + "/united", [] { return false; });
  }
  std::string image_;
};

TEST_F(UnitePagesTest, NothingOfAnEarlierOneIsLeft) {
  fs::create_directories(folder_ + "/united/parent");
  ASSERT_TRUE(Unite().ok());
  EXPECT_EQ(store::CountEntries(folder_ + "/united"), 2u);
}

TEST_F(UnitePagesTest, ItEndsSoonWhenItIsToldToAndLeavesNothing) {
  int asked = 0;
  EXPECT_TRUE(
      absl::IsCancelled(UnitePages(*base_, image_, folder_ + "/united", [&] { return ++asked == 2; })));
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(fs::exists(folder_ + "/united"));
}

TEST_F(UnitePagesTest, TheImageStaysAsItIs) {
  ASSERT_TRUE(Unite().ok());
  fs::remove_all(folder_ + "/united");
  EXPECT_TRUE(store_->Verify(base_->key).ok());
}

TEST_F(UnitePagesTest, FilesThatAreCopiedMayBeChanged) {
  const ImageKey key{CheckpointId("42.9"), 0};
  StoreTest::Put(key, "registers");
  const Manifest manifest = store_->Read(key).value();
  const std::string image = store_->Path(key).value(), united = folder_ + "/united";
  ASSERT_TRUE(UnitePages(
                  manifest, image, united, [] { return false; }, OtherFiles::kCopied)
                  .ok());
  EXPECT_EQ(ReadFile(united + "/core-1.img").value(), "registers");
  EXPECT_FALSE(fs::equivalent(united + "/core-1.img", image + "/core-1.img"));
}

TEST_F(UnitePagesTest, AnImageThatContradictsItselfIsRefusedAndLeavesNothing) {
  for (const std::string file : {"parent-1.pagemap-7.img", "parent-1.pages-107.img"}) {
    const std::string good = ReadFile(image_ + "/" + file).value();
    fs::resize_file(image_ + "/" + file, good.size() - 1);
    EXPECT_TRUE(absl::IsDataLoss(Unite())) << Unite();
    EXPECT_FALSE(fs::exists(folder_ + "/united"));
    ASSERT_TRUE(WriteAt(image_ + "/" + file, good));
  }
}

TEST_F(UnitePagesTest, APageThatNoParentHasIsMissed) {
  Pagemap parent = ParsePagemap(ReadFile(image_ + "/parent-1.pagemap-7.img").value()).value();
  parent.runs.back().pages -= 1;
  fs::remove(image_ + "/parent-1.pagemap-7.img");
  ASSERT_TRUE(WriteAt(image_ + "/parent-1.pagemap-7.img", PagemapText(parent)));
  EXPECT_THAT(std::string(Unite().message()), testing::HasSubstr("said to be in a parent, and is not"));
}

}  // namespace
}  // namespace siding
