// A tier that is away is neither empty nor another one.
#include "store/tier.h"

#include "gmock/gmock.h"
#include "store/disk.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TierTest : public StoreTest {
 protected:
  // As by a node that remembers what it has used at that root.
  absl::StatusOr<std::unique_ptr<ImageStore>> OpenRemembered(const std::string& root) const {
    return OpenDirectoryStore(root, {.remembered = folder_ + "/remembered"});
  }
  // An empty folder is where the tier was, as if it were not mounted.
  void Unmount() const {
    std::filesystem::create_directory(folder_ + "/away");
    for (const std::string name : {"images", "staging", "tier"})
      std::filesystem::rename(folder_ + "/" + name, folder_ + "/away/" + name);
  }
  // Another agent has made a store in the empty mount point.
  void UnmountAndMakeAnother() const {
    Unmount();
    ASSERT_TRUE(OpenDirectoryStore(folder_).ok());
  }
};

TEST_F(TierTest, KeepsItsId) {
  const std::string id = TierId({folder_}).value();
  EXPECT_EQ(id.size(), 32u);
  Open();
  EXPECT_EQ(TierId({folder_}).value(), id);
}

TEST_F(TierTest, OfTwoThatIdentifyItAtOnceOneWins) {
  std::filesystem::remove_all(folder_ + "/tier");
  std::string ids[2];
  std::thread other([&] { ids[0] = TierId({folder_}).value(); });
  ids[1] = TierId({folder_}).value();
  other.join();
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(TierTest, IsOpenedAgain) {
  ASSERT_TRUE(OpenRemembered(folder_).ok());
  EXPECT_TRUE(OpenRemembered(folder_).ok());
}

TEST_F(TierTest, EmptyMountPointIsRefusedAndStaysEmpty) {
  ASSERT_TRUE(OpenRemembered(folder_).ok());
  const std::string empty = folder_ + "/empty";
  std::filesystem::create_directory(empty);
  const absl::Status status = OpenRemembered(empty).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(empty + " is not"), HasSubstr("remove " + folder_ + "/remembered")));
  EXPECT_TRUE(std::filesystem::is_empty(empty));
}

TEST_F(TierTest, AnotherTierIsRefusedUntilTheOldOneIsForgotten) {
  ASSERT_TRUE(OpenRemembered(folder_).ok());
  const std::string other = folder_ + "/other";
  ASSERT_TRUE(OpenDirectoryStore(other).ok());
  EXPECT_TRUE(absl::IsUnavailable(OpenRemembered(other).status()));
  std::filesystem::remove(folder_ + "/remembered");
  EXPECT_TRUE(OpenRemembered(other).ok());
}

class TierInMemoryTest : public FolderTest {
 protected:
  TierInMemoryTest() : FolderTest(kMemory), on_disk_("/tmp/siding-store-XXXXXX") {
    EXPECT_NE(mkdtemp(on_disk_.data()), nullptr) << strerror(errno);
  }
  ~TierInMemoryTest() override { std::filesystem::remove_all(on_disk_); }
  absl::Status OpenAt(const std::string& root, const std::string& boot) const {
    return OpenDirectoryStore(root, {.remembered = folder_ + "/remembered", .boot = boot}).status();
  }
  std::string on_disk_;
};

TEST_F(TierInMemoryTest, AnEmptyOneIsTheTierOfTheMachinesNextStart) {
  ASSERT_EQ(OpenAt(folder_ + "/first", "first"), absl::OkStatus());
  EXPECT_EQ(OpenAt(folder_ + "/second", "second"), absl::OkStatus());
  EXPECT_EQ(OpenAt(folder_ + "/second", "second"), absl::OkStatus());
}

TEST_F(TierInMemoryTest, AnEmptyOneDuringTheSameStartIsNotTheTier) {
  ASSERT_EQ(OpenAt(folder_ + "/first", "first"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(OpenAt(folder_ + "/second", "first")));
  EXPECT_TRUE(absl::IsUnavailable(OpenAt(folder_ + "/second", ""))) << "which start this is is not known";
}

// An earlier agent has not said that it is in memory.
TEST_F(TierInMemoryTest, OneThatWasUsedBeforeIsRememberedWithItsStart) {
  ASSERT_EQ(OpenAt(folder_ + "/first", ""), absl::OkStatus());
  ASSERT_EQ(OpenAt(folder_ + "/first", "first"), absl::OkStatus());
  EXPECT_EQ(OpenAt(folder_ + "/second", "second"), absl::OkStatus());
}

TEST_F(TierInMemoryTest, WhereItIsNotMountedYetItIsAway) {
  if (IsInMemory(on_disk_)) GTEST_SKIP() << on_disk_ << " is in memory";
  ASSERT_EQ(OpenAt(folder_ + "/first", "first"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(OpenAt(on_disk_, "second")));
}

TEST_F(TierInMemoryTest, OneOnADiskIsTheSameAfterAStart) {
  if (IsInMemory(on_disk_)) GTEST_SKIP() << on_disk_ << " is in memory";
  ASSERT_EQ(OpenAt(on_disk_, "first"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(OpenAt(folder_ + "/second", "second")));
  EXPECT_EQ(OpenAt(on_disk_, "second"), absl::OkStatus());
}

TEST_F(TierTest, WhatIsInATierThatIsAwayIsUnavailable) {
  Put(key_);
  Unmount();
  EXPECT_TRUE(absl::IsUnavailable(store_->Path(key_).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Verify(key_).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->List().status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Begin(key_).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->FreeSpace().status()));
}

TEST_F(TierTest, AStoreInTheEmptyMountPointIsNotTheTier) {
  Put(key_);
  UnmountAndMakeAnother();
  EXPECT_TRUE(absl::IsUnavailable(store_->Path(key_).status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->List().status()));
  EXPECT_TRUE(absl::IsUnavailable(store_->Begin(key_).status()));
}

TEST_F(TierTest, NothingIsGoneFromATierThatIsAway) {
  Put(key_);
  Unmount();
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(key_)));
  EXPECT_TRUE(absl::IsUnavailable(Quarantine(*store_, key_)));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/damaged"));
}

TEST_F(TierTest, NothingIsGoneThatIsNotInTheStoreInItsPlace) {
  Put(key_);
  UnmountAndMakeAnother();
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(key_)));
  EXPECT_TRUE(absl::IsUnavailable(Quarantine(*store_, key_)));
}

TEST_F(TierTest, WithoutStagingNothingIsTakenForDeleted) {
  Put(key_);
  std::filesystem::remove(Staging());
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete(key_)));
}

TEST_F(TierTest, WhatIsMissingFromATierThatIsThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store_->Path(key_).status()));
}

TEST_F(TierTest, AnErrorOfTheDiskIsNotAMissingImage) {
  const ImageKey unreadable{CheckpointId("42.9"), 0};
  const std::string folder = folder_ + "/images";
  std::filesystem::remove(folder);
  std::filesystem::create_symlink(folder, folder);  // ELOOP
  EXPECT_TRUE(absl::IsUnavailable(store_->Path(unreadable).status()));
}

}  // namespace
}  // namespace siding::store
