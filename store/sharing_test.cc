// Files that images share: the same bytes once, for as long as one of them is there.
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "store/disk.h"
#include "store/faulty_disk.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SharingTest : public StoreTest {
 protected:
  SharingTest() {
    Put(key_, "12345");
    base_ = store_->Read(key_).value();
  }
  // An image of its own file, with 3 bytes, and the base's.
  std::unique_ptr<ImageDraft> BeginSharing() {
    auto draft = store_->Begin(next_, &base_).value();
    EXPECT_TRUE(WriteAt(draft->path() + "/core-1.img", "new"));
    EXPECT_TRUE(draft->Share(base_.files[0], "parent-1.core-1.img").ok());
    return draft;
  }
  Manifest PutSharing() {
    const auto draft = BeginSharing();
    Manifest manifest = draft->Seal({}).value();
    EXPECT_TRUE(draft->Commit().ok());
    return manifest;
  }
  std::string Shared() const { return store_->Path(next_).value() + "/parent-1.core-1.img"; }

  const ImageKey next_{CheckpointId("42.4"), 0};
  Manifest base_;
};

TEST_F(SharingTest, TheFileIsInBoth) {
  PutSharing();
  EXPECT_EQ(ReadFile(Shared()).value(), "12345");
  EXPECT_EQ(fs::hard_link_count(Shared()), 2u);
  EXPECT_TRUE(store_->Verify(next_).ok());
}

TEST_F(SharingTest, SizesSayWhatIsNew) {
  const Manifest manifest = PutSharing();
  EXPECT_EQ(manifest.TotalSize(), Bytes{8});
  EXPECT_EQ(manifest.NewSize(), Bytes{3});
  EXPECT_EQ(store_->Read(next_)->NewSize(), Bytes{3});
}

TEST_F(SharingTest, ASharedFileCanGetAnotherName) {
  const auto draft = BeginSharing();
  ASSERT_TRUE(draft->RenameShared("parent-1.core-1.img", "parent-2.core-1.img").ok());
  ASSERT_TRUE(draft->Seal({}).ok());
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_FALSE(fs::exists(Shared()));
  EXPECT_EQ(store_->Read(next_)->Find("parent-2.core-1.img")->checksum, base_.files[0].checksum);
  EXPECT_EQ(store_->Read(next_)->NewSize(), Bytes{3});
  EXPECT_TRUE(store_->Verify(next_).ok());
}

TEST_F(SharingTest, ButNotThatOfAnotherFile) {
  const auto draft = BeginSharing();
  EXPECT_TRUE(absl::IsAlreadyExists(draft->RenameShared("parent-1.core-1.img", "core-1.img")));
  EXPECT_EQ(ReadFile(draft->path() + "/core-1.img").value(), "new");
  EXPECT_TRUE(fs::exists(draft->path() + "/parent-1.core-1.img"));
}

TEST_F(SharingTest, OneThatIsNotSharedCannot) {
  const auto draft = BeginSharing();
  EXPECT_TRUE(absl::IsFailedPrecondition(draft->RenameShared("core-1.img", "core-2.img")));
  ASSERT_TRUE(draft->Seal({}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(draft->RenameShared("parent-1.core-1.img", "parent-2.core-1.img")))
      << "it is sealed";
}

TEST_F(SharingTest, WhatIsSharedIsNoProgress) {
  const auto draft = BeginSharing();
  EXPECT_TRUE(Eventually([&] { return draft->BytesSoFar() == Bytes{3}; }));
  ASSERT_TRUE(draft->Share(base_.files[0], "parent-2.core-1.img").ok());
  ASSERT_TRUE(WriteAt(draft->path() + "/core-2.img", "more"));
  EXPECT_TRUE(Eventually([&] { return draft->BytesSoFar() == Bytes{7}; }));
}

TEST_F(SharingTest, OfFilesElsewhereNothingIsKnown) {
  EXPECT_TRUE(IsOnThisMachine("/dev/shm"));
  EXPECT_FALSE(IsOnThisMachine("/proc"));
  EXPECT_FALSE(IsOnThisMachine("/no/such/folder"));
}

TEST_F(SharingTest, WhatIsInMemoryIsOnNoDisk) {
  EXPECT_FALSE(IsOnDisk("/dev/shm"));
  EXPECT_FALSE(IsOnDisk("/proc"));
}

class OverANetworkTest : public SharingTest {
 protected:
  OverANetworkTest() {
    disk_.is_far = true;
    store_ = OpenDirectoryStore(folder_, {.disk = &disk_}).value();
  }
  ~OverANetworkTest() override { store_.reset(); }  // before the disk
  FaultyDisk disk_;
};

TEST_F(OverANetworkTest, TheyShareAsWell) {
  const auto draft = BeginSharing();
  EXPECT_FALSE(draft->is_near());
  EXPECT_EQ(CountEntries(draft->path()), 2u) << "nothing is left of a trial";
}

TEST_F(OverANetworkTest, ButNotWhereNoHardLinksAreMade) {
  disk_.can_link = false;
  EXPECT_EQ(store_->Begin(next_, &base_).value()->base(), nullptr);
}

TEST_F(SharingTest, AScratchFileHasNoName) {
  const UniqueFd scratch = store_->OpenScratch().value();
  struct stat info = {};
  ASSERT_EQ(fstat(scratch.get(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(CountEntries(folder_ + "/staging"), 0u);
}

TEST_F(SharingTest, ItOutlivesTheBase) {
  PutSharing();
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(store_->Verify(next_).ok());
}

TEST_F(SharingTest, TheBaseOutlivesIt) {
  PutSharing();
  ASSERT_TRUE(store_->Delete(next_).ok());
  EXPECT_TRUE(store_->Verify(key_).ok());
}

TEST_F(SharingTest, ADraftThatIsGivenUpLeavesTheBase) {
  BeginSharing().reset();
  EXPECT_TRUE(store_->Verify(key_).ok());
}

TEST_F(SharingTest, DamageIsFoundInBoth) {
  PutSharing();
  ASSERT_TRUE(WriteAt(Shared(), "X"));
  EXPECT_THAT(store_->Verify(next_).status().message(), HasSubstr("parent-1.core-1.img is damaged"));
  EXPECT_THAT(store_->Verify(key_).status().message(), HasSubstr("core-1.img is damaged"));
}

TEST_F(SharingTest, AFileThatIsNotWhatTheManifestSaysIsNotShared) {
  const auto draft = store_->Begin(next_, &base_).value();
  ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/core-1.img", "longer than it was"));
  EXPECT_TRUE(absl::IsDataLoss(draft->Share(base_.files[0], "parent-1.core-1.img")));
  EXPECT_EQ(CountEntries(draft->path()), 0u);
}

TEST_F(SharingTest, OfABaseThatIsGoneNothingIsShared) {
  const auto draft = store_->Begin(next_, &base_).value();
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_FALSE(draft->Share(base_.files[0], "parent-1.core-1.img").ok());
  EXPECT_EQ(CountEntries(draft->path()), 0u);
}

TEST_F(SharingTest, AnotherFileInTheSharedOnesPlaceIsNotTakenForIt) {
  const auto draft = BeginSharing();
  ASSERT_TRUE(WriteAt(draft->path() + "/other", "54321"));
  fs::rename(draft->path() + "/other", draft->path() + "/parent-1.core-1.img");
  EXPECT_THAT(draft->Seal({}).status().message(), HasSubstr("another file is in its place"));
}

TEST_F(SharingTest, WithoutABaseThereIsNothingToShare) {
  const auto draft = store_->Begin(next_).value();
  EXPECT_EQ(draft->base(), nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(draft->Share(base_.files[0], "parent-1.core-1.img")));
}

// Each of its files is bound to its image.
TEST_F(SharingTest, AnEncryptedImageSharesNothing) {
  const auto ring = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  const auto store = OpenDirectoryStore(folder_, {.keys = ring, .plain_folder = folder_ + "/plain"}).value();
  EXPECT_EQ(store->Begin(next_, &base_).value()->base(), nullptr);
}

// As an older siding would: it knows no parents, and CRIU would miss pages.
TEST_F(SharingTest, ItsManifestIsOfAVersionOfItsOwn) {
  PutSharing();
  EXPECT_THAT(ReadFile(store_->Path(next_).value() + "/manifest.json").value(), HasSubstr("\"version\": 3"));
  EXPECT_THAT(ReadFile(store_->Path(key_).value() + "/manifest.json").value(), HasSubstr("\"version\": 1"));
}

}  // namespace
}  // namespace siding::store
