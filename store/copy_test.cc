// An image of one tier becomes one of another: all of it, or nothing; each byte compared on its way.
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "common/fault.h"
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
    SIDING_ASSIGN_OR_RETURN(const Copied copied, target_->CopyFrom(*store_, key_, options));
    return copied.written;
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

// It is all that is left of that image.
TEST_F(CopyTest, NothingIsSetAsideForACopyThatFails) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  ASSERT_TRUE(WriteAt(Source("core-1.img"), "y"));
  EXPECT_TRUE(absl::IsDataLoss(Copy().status()));
  EXPECT_TRUE(fs::exists(folder_ + "/target/images/42.3/0"));
  EXPECT_FALSE(fs::exists(folder_ + "/target/damaged"));
}

TEST_F(CopyTest, ADamagedOneThatIsDeletedMeanwhileDoesNotComeBack) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  const auto remove = [&](Bytes written, Bytes) { return written == Bytes{} || target_->Delete(key_).ok(); };
  EXPECT_TRUE(absl::IsAborted(Copy({.progress = remove}).status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, AGoodOneThatSomebodyHasPutThereMeanwhileStays) {
  Put(key_);
  ASSERT_TRUE(Copy().ok());
  ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  bool replaced = false;
  const auto replace = [&](Bytes written, Bytes) {
    return written == Bytes{} || std::exchange(replaced, true) || Copy().ok();
  };
  EXPECT_TRUE(absl::IsAborted(Copy({.progress = replace}).status()));
  EXPECT_TRUE(target_->Verify(key_).ok());
  EXPECT_EQ(CountEntries(folder_ + "/target/damaged"), 1u);
}

// Others do something in the moment before the damaged one is moved out of its place.
class ReplacingTest : public CopyTest, public testing::WithParamInterface<bool> {
 protected:
  ReplacingTest() {
    disk_.can_exchange = GetParam();
    Put(key_);
    EXPECT_TRUE(Copy().ok());
    EXPECT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
    other_ = OpenDirectoryStore(folder_ + "/target").value();
  }
  // Of the damaged one, `times` at most.
  void BeforeItIsMoved(const std::function<void()>& what, int times = 1) {
    disk_.before_move = [this, what, times](const std::string& from) mutable {
      const bool out = from == folder_ + "/target/images/42.3/0",
                 exchange = from.find("/staging/") != from.npos;
      if ((GetParam() ? exchange : out) && times-- > 0) what();
    };
  }
  void PutAnother(const std::string& content) {
    ASSERT_TRUE(other_->Delete(key_).ok());
    const auto draft = other_->Begin(key_).value();
    ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", content));
    ASSERT_TRUE(draft->Seal({}).ok() && draft->Commit().ok());
  }
  size_t InDamaged() const {
    return fs::exists(folder_ + "/target/damaged") ? CountEntries(folder_ + "/target/damaged") : 0;
  }

  std::unique_ptr<ImageStore> other_;
};

INSTANTIATE_TEST_SUITE_P(, ReplacingTest, testing::Bool(), [](const auto& param) {
  return param.param ? "ByAnExchange" : "WhereTheFileSystemExchangesNothing";
});

TEST_P(ReplacingTest, ItSaysThatItHasReplaced) {
  EXPECT_EQ(target_->CopyFrom(*store_, key_, {})->what, Copied::kReplaced);
  EXPECT_EQ(target_->CopyFrom(*store_, key_, {})->what, Copied::kWasGood);
  ASSERT_TRUE(target_->Delete(key_).ok());
  EXPECT_EQ(target_->CopyFrom(*store_, key_, {})->what, Copied::kNew);
  EXPECT_EQ(InDamaged(), 1u);
}

TEST_P(ReplacingTest, WhatIsDeletedInThatMomentStaysDeleted) {
  BeforeItIsMoved([&] { ASSERT_TRUE(other_->Delete(key_).ok()); });
  EXPECT_TRUE(absl::IsAborted(Copy().status()));
  ExpectNothingIsLeft();
  EXPECT_EQ(InDamaged(), 0u);
}

TEST_P(ReplacingTest, WhatIsPutThereInThatMomentStays) {
  BeforeItIsMoved([&] { PutAnother("another"); });
  EXPECT_TRUE(absl::IsAborted(Copy().status()));
  EXPECT_TRUE(target_->Verify(key_).ok());
  EXPECT_EQ(ReadFile(Target(key_, "core-1.img")).value(), "another");
  EXPECT_EQ(InDamaged(), 0u);
  EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
}

TEST_P(ReplacingTest, OfSeveralTheLastStays) {
  int made = 0;
  BeforeItIsMoved([&] { PutAnother(std::to_string(++made)); }, 3);
  EXPECT_TRUE(absl::IsAborted(Copy().status()));
  EXPECT_EQ(ReadFile(Target(key_, "core-1.img")).value(), std::to_string(made));
  EXPECT_TRUE(target_->Verify(key_).ok());
  EXPECT_EQ(InDamaged(), 0u);
  EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
}

TEST_P(ReplacingTest, OfTwoAtOnceOneReplacesIt) {
  for (int i = 0; i < 20; ++i) {
    absl::Status one, two;
    std::thread first([&] { one = target_->CopyFrom(*store_, key_, {}).status(); });
    std::thread second([&] { two = other_->CopyFrom(*store_, key_, {}).status(); });
    first.join();
    second.join();
    for (const absl::Status& status : {one, two})
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    EXPECT_TRUE(one.ok() || two.ok());
    EXPECT_TRUE(target_->Verify(key_).ok());
    EXPECT_EQ(InDamaged(), static_cast<size_t>(i) + 1);
    EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
    ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  }
}

TEST_P(ReplacingTest, AnErrorOfTheMoveLeavesItInItsPlace) {
  ASSERT_TRUE(ArmFaults("store.moved=error", "", {}).ok());
  EXPECT_FALSE(Copy().ok());
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_TRUE(absl::IsDataLoss(target_->Verify(key_).status()));
  EXPECT_EQ(InDamaged(), 0u);
  EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
}

// Then its folder is gone as well, and cannot be made durable.
TEST_P(ReplacingTest, WhatIsDeletedAsSoonAsItIsThereStaysDeleted) {
  const std::string hold = folder_ + "/hold";
  ASSERT_TRUE(ArmFaults("store.moved=hold=" + hold, "", {}).ok());
  absl::Status status;
  std::thread copy([&] { status = Copy().status(); });
  EXPECT_TRUE(Eventually([&] { return other_->Verify(key_).ok(); }));
  EXPECT_TRUE(other_->Delete(key_).ok());
  EXPECT_TRUE(WriteAt(hold, "x"));
  copy.join();
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  ExpectNothingIsLeft();
}

TEST_P(ReplacingTest, OfOneThatIsKilledAnImageIsLeftAndTheNextOneEndsIt) {
  for (const std::string at : {"store.copied", "store.set-aside", "store.commit", "store.moved"}) {
    SCOPED_TRACE(at);
    const bool reached = at != "store.commit" || !GetParam();
    const auto copy = [&] {
      if (!ArmFaults(at + "=kill", "", {}).ok()) return;
      std::exit(Copy().ok() ? 0 : 1);
    };
    if (reached) {
      EXPECT_EXIT(copy(), testing::KilledBySignal(SIGKILL), "");
    }
    OpenTarget();
    EXPECT_EQ(CountEntries(folder_ + "/target/staging"), 0u);
    EXPECT_TRUE(fs::exists(folder_ + "/target/images/42.3/0") || (!GetParam() && InDamaged() == 1u));
    EXPECT_TRUE(Copy().ok());
    EXPECT_TRUE(target_->Verify(key_).ok());
    fs::remove_all(folder_ + "/target/damaged");
    ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  }
}

TEST_P(ReplacingTest, WhatIsDeletedWhileItIsReadStaysDeleted) {
  const auto remove = [&](Bytes, Bytes) { return other_->Delete(key_).ok(); };
  EXPECT_TRUE(absl::IsAborted(Copy({.progress = remove}).status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, WhereNothingIsToBeReplacedNothingIsMade) {
  Put(key_);
  EXPECT_TRUE(absl::IsAborted(Copy({.only_replaces = true}).status()));
  ExpectNothingIsLeft();
}

TEST_F(CopyTest, WhatIsStillGoodOfADamagedOneMayBeLinked) {
  PutPages(key_, Pattern(100'000), "new");
  ASSERT_TRUE(Copy().ok());
  const Manifest damaged = target_->Read(key_).value();
  ASSERT_TRUE(WriteAt(Target(key_, "core-1.img"), "x"));
  EXPECT_EQ(Copy({.bases = {&damaged}}).value(), Bytes{3});
  EXPECT_TRUE(target_->Verify(key_).ok());
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
  EXPECT_EQ(Copy({.bases = {&base}}).value(), Bytes{3});
  EXPECT_EQ(fs::hard_link_count(Target(key_, "pages-1.img")), 2u);
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, TheBaseMayGo) {
  const Manifest base = PutBase();
  ASSERT_TRUE(Copy({.bases = {&base}}).ok());
  ASSERT_TRUE(target_->Delete(base_).ok());
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, ABaseThatHasGoneIsDoneWithout) {
  const Manifest base = PutBase();
  ASSERT_TRUE(target_->Delete(base_).ok());
  EXPECT_EQ(Copy({.bases = {&base}}).value(), Bytes{100'003});
}

TEST_F(CopyTest, DamageOfTheBaseIsNotShared) {
  const Manifest base = PutBase();
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.bases = {&base}}).value(), Bytes{100'003});
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, WhatTheFirstBaseHasNotGoodTheNextMayHave) {
  const Manifest base = PutBase();
  const ImageKey second{CheckpointId("42.1"), 0};
  PutPages(second, Pattern(100'000), "older");
  ASSERT_TRUE(target_->CopyFrom(*store_, second, {}).ok());
  const Manifest other = target_->Read(second).value();
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.bases = {&base, &other}}).value(), Bytes{3});
  EXPECT_TRUE(target_->Verify(key_).ok());
}

TEST_F(CopyTest, OverANetworkTheBaseIsNotRead) {
  const Manifest base = PutBase();
  disk_.is_far = true;
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.bases = {&base}}).value(), Bytes{3}) << "a restore finds that, or the reading back";
}

TEST_F(CopyTest, OverANetworkItIsReadWhereThatIsAskedFor) {
  const Manifest base = PutBase();
  disk_.is_far = true;
  ASSERT_TRUE(WriteAt(Target(base_, "pages-1.img"), "x"));
  EXPECT_EQ(Copy({.bases = {&base}, .reads_bases = true}).value(), Bytes{100'003});
}

TEST_F(CopyTest, WithoutHardLinksAllIsCopied) {
  const Manifest base = PutBase();
  disk_.can_link = false;
  EXPECT_EQ(Copy({.bases = {&base}}).value(), Bytes{100'003});
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
  ASSERT_TRUE(Copy({.bases = {&base}, .progress = see}).ok());
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
