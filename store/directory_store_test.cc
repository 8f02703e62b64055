// The store as a whole: what it lists and deletes, whose drafts it sweeps, and what a full disk does.
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "common/fault.h"
#include "common/patience_for_test.h"
#include "common/private_mounts_for_test.h"
#include "gmock/gmock.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DirectoryStoreTest : public StoreTest {};

TEST_F(DirectoryStoreTest, MetadataComesBack) {
  auto draft = BeginWith(key_);
  ASSERT_TRUE(draft->Seal({{"pid", "17"}}).ok());
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(Open()->Read(key_).value().metadata.at("pid"), "17");
}

TEST_F(DirectoryStoreTest, ListIsSortedAndIgnoresWhatIsNotAnImage) {
  const ImageKey later{CheckpointId("42.4"), 0};
  Put(later);
  Put(key_);
  ASSERT_TRUE(WriteAt(folder_ + "/images/README", "x"));
  std::filesystem::create_directories(folder_ + "/images/42.4/lost+found");
  EXPECT_THAT(store_->List().value(), ElementsAre(key_, later));
}

TEST_F(DirectoryStoreTest, DeletedImageIsGoneWithItsFolder) {
  Put(key_);
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Path(key_).status()));
  EXPECT_EQ(CountEntries(folder_ + "/images"), 0u);
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(DirectoryStoreTest, DeletingTwiceIsFine) {
  Put(key_);
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(store_->Delete(key_).ok());
}

TEST_F(DirectoryStoreTest, TheFolderOfADeletionThatWasCutShortGoesWithTheNext) {
  ASSERT_TRUE(MakeDirectories(folder_ + "/images/" + key_.checkpoint.value()).ok());
  EXPECT_TRUE(store_->Delete(key_).ok());
  EXPECT_EQ(CountEntries(folder_ + "/images"), 0u);
}

TEST_F(DirectoryStoreTest, DeletingARankLeavesTheOthers) {
  const ImageKey other{key_.checkpoint, 1};
  Put(key_);
  Put(other);
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_THAT(store_->List().value(), ElementsAre(other));
}

// Whoever is first comes back from a pause to find that the other has removed their common folder.
TEST_F(DirectoryStoreTest, TheLastTwoRanksMayBeDeletedAtOnce) {
  const ImageKey other{key_.checkpoint, 1};
  Put(key_);
  Put(other);
  ASSERT_TRUE(ArmFaults("store.unseen=delay=100ms", "", {}).ok());
  absl::Status first;
  std::thread deletes([&] { first = store_->Delete(key_); });
  EXPECT_TRUE(Eventually([&] { return store_->List()->size() == 1; }));
  EXPECT_TRUE(store_->Delete(other).ok());
  deletes.join();
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_EQ(CountEntries(Staging()), 0u);
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
}

TEST_F(DirectoryStoreTest, AnImageWhoseDeletionFailsIsThereAndCanBeDeleted) {
  Put(key_);
  ASSERT_TRUE(ArmFaults("store.unseen=error", "", {}).ok());
  EXPECT_FALSE(store_->Delete(key_).ok());
  EXPECT_THAT(store_->List().value(), ElementsAre(key_));
  EXPECT_TRUE(store_->Delete(key_).ok());
  EXPECT_EQ(CountEntries(Staging()), 0u);
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
}

TEST_F(DirectoryStoreTest, WhatIsSetAsideIsNotListedButKept) {
  Put(key_);
  ASSERT_TRUE(Quarantine(*store_, key_).ok());
  EXPECT_THAT(store_->List().value(), IsEmpty());
  EXPECT_FALSE(std::filesystem::is_empty(folder_ + "/damaged"));
  EXPECT_TRUE(Quarantine(*store_, key_).ok());
}

TEST_F(DirectoryStoreTest, OneThatHasTakenThePlaceOfTheDamagedOneIsNotSetAside) {
  Put(key_);
  const UniqueFd held = store_->Hold(key_).value();
  ASSERT_TRUE(store_->Delete(key_).ok());
  Put(key_);
  EXPECT_TRUE(absl::IsAborted(store_->Quarantine(key_, held)));
  EXPECT_TRUE(store_->Verify(key_).ok());
}

TEST_F(DirectoryStoreTest, NorIsOneThatWasNotThereBefore) {
  const UniqueFd held = store_->Hold(key_).value();
  Put(key_);
  EXPECT_TRUE(absl::IsAborted(store_->Quarantine(key_, held)));
  EXPECT_TRUE(store_->Verify(key_).ok());
}

TEST_F(DirectoryStoreTest, OneThatWasDeletedNeedNotBeSetAside) {
  Put(key_);
  const UniqueFd held = store_->Hold(key_).value();
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(store_->Quarantine(key_, held).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/damaged") &&
               !std::filesystem::is_empty(folder_ + "/damaged"));
}

TEST_F(DirectoryStoreTest, AnImageMayFollowOneThatWasSetAside) {
  Put(key_);
  ASSERT_TRUE(Quarantine(*store_, key_).ok());
  Put(key_);
  EXPECT_THAT(store_->List().value(), ElementsAre(key_));
}

TEST_F(DirectoryStoreTest, ATierThatIsAwayIsNotEmpty) {
  std::filesystem::rename(folder_ + "/images", folder_ + "/away");
  EXPECT_TRUE(absl::IsUnavailable(store_->List().status()));
}

TEST_F(DirectoryStoreTest, FreeSpaceIsThatOfTheDisk) { EXPECT_GT(store_->FreeSpace().value(), Bytes{0}); }

TEST_F(DirectoryStoreTest, FileInPlaceOfTheRootIsAnError) {
  ASSERT_TRUE(WriteAt(folder_ + "/file", "x"));
  EXPECT_THAT(std::string(OpenDirectoryStore(folder_ + "/file").status().message()),
              HasSubstr(folder_ + "/file"));
}

TEST_F(DirectoryStoreTest, LiveDraftStaysWhenTheStoreIsOpenedAgain) {
  auto draft = BeginWith(key_);
  Open();
  EXPECT_TRUE(draft->Seal({}).ok() && draft->Commit().ok());
}

TEST_F(DirectoryStoreTest, KilledWritersDraftIsSweptAndALiveOneStays) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    // Dies without a destructor being run, as by the OOM killer.
    const auto draft = Open()->Begin(key_);
    if (!draft.ok() || !WriteAt((*draft)->path() + "/pages-1.img", "x")) _exit(1);
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  Open();
  EXPECT_EQ(CountEntries(Staging()), 2u) << "the writer lives";

  const auto live = BeginWith({CheckpointId("43.1"), 0});
  kill(writer, SIGKILL);
  ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
  Open();
  EXPECT_EQ(CountEntries(Staging()), 2u) << "the live draft and its lock";
  EXPECT_TRUE(std::filesystem::exists(live->path() + "/core-1.img"));
}

TEST_F(DirectoryStoreTest, HalfDeletedImageIsSwept) {
  const auto draft = BeginWith(key_);
  const std::string name = std::filesystem::path(draft->path()).filename();
  const std::string trash = Staging() + "/trash" + name.substr(name.rfind('.'));  // this host's suffix
  std::filesystem::create_directory(trash);
  ASSERT_TRUE(WriteAt(trash + "/pages-1.img", "x"));
  Open();
  EXPECT_FALSE(std::filesystem::exists(trash));
}

TEST_F(DirectoryStoreTest, AVisitorSweepsNothing) {
  const auto draft = BeginWith(key_);
  const std::string name = std::filesystem::path(draft->path()).filename();
  const std::string trash = Staging() + "/trash" + name.substr(name.rfind('.'));
  std::filesystem::create_directory(trash);
  ASSERT_TRUE(OpenDirectoryStore(folder_, {.visit = true}).ok());
  EXPECT_TRUE(std::filesystem::exists(trash));
}

TEST_F(DirectoryStoreTest, AVisitorMakesNoStore) {
  const std::string empty = folder_ + "/empty";
  std::filesystem::create_directory(empty);
  EXPECT_TRUE(absl::IsNotFound(OpenDirectoryStore(empty, {.visit = true}).status()));
  EXPECT_TRUE(std::filesystem::is_empty(empty));
}

TEST_F(DirectoryStoreTest, DraftOfAnotherHostStays) {
  const std::string foreign = Staging() + "/42.3.0.some_other_host-0123456789abcdef";
  std::filesystem::create_directory(foreign);
  Open();
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

// A disk of one MiB.
class FullDiskTest : public FolderTest {
 protected:
  void SetUp() override {
    disk_ = folder_ + "/disk";
    std::filesystem::create_directory(disk_);
    if (!EnterPrivateMounts() || mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "cannot mount a small tmpfs: " << strerror(errno);
    }
    mounted_ = true;
    store_ = OpenDirectoryStore(disk_).value();
  }
  void TearDown() override {
    if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
  }
  std::string disk_;
  bool mounted_ = false;
  std::unique_ptr<ImageStore> store_;
  const ImageKey key_{CheckpointId("42.3"), 0};
};

TEST_F(FullDiskTest, SealSaysWhichDiskIsFull) {
  const auto draft = store_->Begin(key_).value();
  EXPECT_FALSE(WriteAt(draft->path() + "/pages-1.img", Pattern(2 << 20)));
  const absl::Status status = draft->Seal({}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(disk_ + " is full"), HasSubstr("free")));
}

TEST_F(FullDiskTest, NothingIsLeftOfTheDraft) {
  const Bytes before = store_->FreeSpace().value();
  auto draft = store_->Begin(key_).value();
  EXPECT_FALSE(WriteAt(draft->path() + "/pages-1.img", Pattern(2 << 20)));
  EXPECT_FALSE(draft->Seal({}).ok());
  draft.reset();
  EXPECT_EQ(store_->FreeSpace().value(), before);
  EXPECT_EQ(CountEntries(disk_ + "/staging"), 0u);
  EXPECT_THAT(store_->List().value(), IsEmpty());
}

TEST_F(FullDiskTest, ImagesThatAreThereCanStillBeReadAndDeleted) {
  auto draft = store_->Begin(key_).value();
  ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", "x"));
  ASSERT_TRUE(draft->Seal({}).ok() && draft->Commit().ok());
  EXPECT_FALSE(WriteAt(disk_ + "/filler", Pattern(2 << 20)));
  EXPECT_TRUE(store_->Verify(key_).ok());
  EXPECT_TRUE(store_->Delete(key_).ok());
}

}  // namespace
}  // namespace siding::store
