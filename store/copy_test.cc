// An image of one tier becomes one of another: all of it, or nothing; each byte compared on its way.
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "store/faulty_disk.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `store_` is the tier that is copied from.
class CopyTest : public StoreTest {
 protected:
  CopyTest() { OpenTarget(); }

  void OpenTarget() { target_ = OpenDirectoryStore(folder_ + "/target", {.disk = &disk_}).value(); }
  absl::StatusOr<Bytes> Copy(const CopyOptions& options = {}) {
    return target_->CopyFrom(*store_, key_, options);
  }
  void PutPages(const ImageKey& key, const std::string& pages, const std::string& core) {
    auto draft = BeginWith(key, core);
    ASSERT_TRUE(WriteAt(draft->path() + "/pages-1.img", pages));
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  // key_ and base_ have the same pages, and base_ is in the target already.
  Manifest PutBase() {
    PutPages(key_, Pattern(100'000), "new");
    PutPages(base_, Pattern(100'000), "old");
    EXPECT_TRUE(target_->CopyFrom(*store_, base_, {}).ok());
    return target_->Read(base_).value();
  }
  std::string Source(const std::string& name) const { return store_->Path(key_).value() + "/" + name; }
  std::string Target(const ImageKey& key, const std::string& name) const {
    return target_->Path(key).value() + "/" + name;
  }
  void ExpectNothingIsLeft() {
    EXPECT_THAT(target_->List().value(), IsEmpty());
    EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
  }

  const ImageKey base_{CheckpointId("42.2"), 0};
  FaultyDisk disk_;
  std::unique_ptr<ImageStore> target_;
};

TEST_F(CopyTest, TheImageIsThereWithItsDigest) {
  PutPages(key_, Pattern(3'000'000), "registers");
  EXPECT_EQ(Copy().value(), Bytes{3'000'009});
  EXPECT_TRUE(target_->Verify(key_, {.digest = store_->Read(key_)->digest}).ok());
}

TEST_F(CopyTest, ItIsOnlyForRoot) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  struct stat info = {};
  ASSERT_EQ(stat(Target(key_, "core-1.img").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(CopyTest, TheSecondTimeNothingIsWritten) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  EXPECT_EQ(Copy().value(), Bytes{0});
}

TEST_F(CopyTest, WhatIsThereAlreadyIsDurableThen) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  disk_.Heal();
  ASSERT_TRUE(Copy().ok());
  EXPECT_GE(disk_.operations(), 3) << "its folders are synced";
}

TEST_F(CopyTest, WhatIsThereAlreadyNeedsNoSource) {
  Put(key_);
  const std::string digest = store_->Read(key_)->digest;
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(Copy({.digest = digest}).ok());
}

TEST_F(CopyTest, WhatIsThereAlreadyAndDamagedIsSetAside) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  EXPECT_EQ(Copy().value(), Bytes{7});
  EXPECT_TRUE(target_->Verify(key_).ok());
  EXPECT_EQ(CountEntries(folder_ + "/target/damaged"), 1u);
}

TEST_F(CopyTest, SoIsOneThatCannotBeRead) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(WriteAt(Target(key_, "manifest.json"), "x"));
  EXPECT_EQ(Copy().value(), Bytes{7});
}

TEST_F(CopyTest, SoIsAnotherImageOfThatKey) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(store_->Delete(key_).ok());
  Put(key_, "another");
  ASSERT_TRUE(Copy({.digest = store_->Read(key_)->digest}).ok());
  EXPECT_EQ(ReadFile(Target(key_, "core-1.img")).value(), "another");
  EXPECT_EQ(CountEntries(folder_ + "/target/damaged"), 1u);
}

TEST_F(CopyTest, DamageIsFoundAndNotCopied) {
  Put(key_);
  ASSERT_TRUE(WriteAt(Source("core-1.img"), "x"));
  const absl::Status status = Copy().status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(), HasSubstr(Source("core-1.img") + " is damaged"));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, AFileThatHasGrownIsDamage) {
  Put(key_);
  ASSERT_TRUE(WriteAt(Source("core-1.img"), "more", 7));
  EXPECT_TRUE(absl::IsDataLoss(Copy().status()));
}

TEST_F(CopyTest, AFileThatIsMissingIsDamage) {
  Put(key_);
  ASSERT_EQ(unlink(Source("core-1.img").c_str()), 0);
  EXPECT_TRUE(absl::IsDataLoss(Copy().status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, AnImageThatWasReplacedIsNotCopied) {
  Put(key_);
  EXPECT_TRUE(absl::IsDataLoss(Copy({.digest = std::string(64, '0')}).status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, NoImage) { EXPECT_TRUE(absl::IsNotFound(Copy().status())); }

TEST_F(CopyTest, WhatTheBaseHasIsLinked) {
  const Manifest base = PutBase();
  EXPECT_EQ(Copy({.base = &base}).value(), Bytes{3});
  EXPECT_EQ(fs::hard_link_count(Target(key_, "pages-1.img")), 2u);
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, TheBaseMayGo) {
  const Manifest base = PutBase();
  ASSERT_TRUE(Copy({.base = &base}).ok());
  ASSERT_TRUE(target_->Delete(base_).ok());
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, ABaseThatHasGoneIsDoneWithout) {
  const Manifest base = PutBase();
  ASSERT_TRUE(target_->Delete(base_).ok());
  EXPECT_EQ(Copy({.base = &base}).value(), Bytes{100'003});
}

TEST_F(CopyTest, DamageOfTheBaseIsNotShared) {
  const Manifest base = PutBase();
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.base = &base}).value(), Bytes{100'003});
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, OverANetworkTheBaseIsNotRead) {
  const Manifest base = PutBase();
  disk_.is_far = true;
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.base = &base}).value(), Bytes{3}) << "a restore finds that, or the reading back";
}

TEST_F(CopyTest, OverANetworkItIsReadWhereThatIsAskedFor) {
  const Manifest base = PutBase();
  disk_.is_far = true;
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.base = &base, .reads_base = true}).value(), Bytes{100'003});
}

TEST_F(CopyTest, WithoutHardLinksAllIsCopied) {
  const Manifest base = PutBase();
  disk_.can_link = false;
  EXPECT_EQ(Copy({.base = &base}).value(), Bytes{100'003});
}

TEST_F(CopyTest, ItSaysHowFarItIs) {
  PutPages(key_, Pattern(3'000'000), "registers");
  std::vector<int64_t> seen;
  const auto see = [&](Bytes written, Bytes all) {
    EXPECT_EQ(all, Bytes{3'000'009});
    seen.push_back(written.value);
    return true;
  };
  ASSERT_TRUE(Copy({.progress = see}).ok());
  EXPECT_THAT(seen, ElementsAre(9, 1'048'585, 2'097'161, 3'000'009));
}

TEST_F(CopyTest, WhatIsLinkedIsNoPartOfThat) {
  const Manifest base = PutBase();
  const auto see = [](Bytes, Bytes all) {
    EXPECT_THAT(all.value, testing::AnyOf(0, 3));
    return true;
  };
  ASSERT_TRUE(Copy({.base = &base, .progress = see}).ok());
}

TEST_F(CopyTest, CalledOffItLeavesNothing) {
  Put(key_);
  EXPECT_TRUE(absl::IsCancelled(Copy({.progress = [](Bytes, Bytes) { return false; }}).status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, ASourceThatGoesAwayIsNotDamaged) {
  PutPages(key_, Pattern(3'000'000), "registers");
  const auto unmount = [&](Bytes, Bytes) {
    if (fs::exists(folder_ + "/images")) {
      for (const char* part : {"images", "tier"}) fs::rename(folder_ + "/" + part, folder_ + "/away-" + part);
    }
    return true;
  };
  EXPECT_TRUE(absl::IsUnavailable(Copy({.progress = unmount}).status()));
}

TEST_F(CopyTest, AnyOperationMayFail) {
  PutPages(key_, Pattern(3'000'000), "registers");
  disk_.Heal();
  ASSERT_TRUE(Copy().ok());
  const int operations = disk_.operations();
  ASSERT_TRUE(target_->Delete(key_).ok());
  for (int at = 0; at < operations; ++at) {
    SCOPED_TRACE(testing::Message() << "operation " << at);
    disk_.Fail(at, Fault::kOnce, ENOSPC);
    const absl::Status status = Copy().status();
    disk_.Heal();
    if (!status.ok()) {
      EXPECT_FALSE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(target_->List().value(), IsEmpty());
    }
    ASSERT_TRUE(target_->Delete(key_).ok());
  }
}

TEST_F(CopyTest, AFullDiskIsSaid) {
  PutPages(key_, Pattern(3'000'000), "registers");
  disk_.Fail(6, Fault::kForGood, ENOSPC);
  EXPECT_TRUE(absl::IsResourceExhausted(Copy().status()));
}

TEST_F(CopyTest, ATierThatIsAwayIsSaid) {
  Put(key_);
  fs::rename(folder_ + "/target", folder_ + "/unmounted");
  fs::create_directory(folder_ + "/target");
  EXPECT_TRUE(absl::IsUnavailable(Copy().status()));
  EXPECT_EQ(CountEntries(folder_ + "/target"), 0u);
}

TEST_F(CopyTest, APlainImageIsNotCopiedToWhereImagesAreEncrypted) {
  Put(key_);
  const auto keys = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  const auto target =
      OpenDirectoryStore(folder_ + "/target", {.keys = keys, .plain_folder = folder_ + "/plain"}).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(target->CopyFrom(*store_, key_, {}).status()));
  EXPECT_THAT(target->List().value(), IsEmpty());
}

TEST_F(CopyTest, AnEncryptedImageIsCopiedAsItIs) {
  const auto keys = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  const StoreOptions options{.keys = keys, .plain_folder = folder_ + "/plain"};
  const auto source = OpenDirectoryStore(folder_ + "/secret", options).value();
  auto draft = source->Begin(key_).value();
  ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", "secret"));
  ASSERT_TRUE(draft->Seal({}).ok() && draft->Commit().ok());
  StoreOptions faulty = options;
  faulty.disk = &disk_;
  const auto target = OpenDirectoryStore(folder_ + "/target", faulty).value();
  ASSERT_TRUE(target->CopyFrom(*source, key_, {}).ok());
  ASSERT_TRUE(target->Decrypt(key_, folder_ + "/out").ok());
  EXPECT_EQ(ReadFile(folder_ + "/out/core-1.img").value(), "secret");
}

}  // namespace
}  // namespace siding::store
