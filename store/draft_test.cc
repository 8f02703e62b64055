// The life of a draft: invisible until it is committed, gone when it is given up.
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "store/checksum.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DraftTest : public StoreTest {};

TEST_F(DraftTest, SealedIsNotYetVisible) {
  auto draft = BeginWith(key_);
  ASSERT_TRUE(draft->Seal({}).ok());
  EXPECT_THAT(store_->List().value(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->Read(key_).status()));
}

TEST_F(DraftTest, CommittedIsVisible) {
  Put(key_);
  EXPECT_THAT(store_->List().value(), ElementsAre(key_));
}

TEST_F(DraftTest, CommittedOutlivesItsDraft) {
  Put(key_, "abc");
  EXPECT_EQ(*ReadFile(store_->Path(key_).value() + "/core-1.img"), "abc");
}

TEST_F(DraftTest, CommitLeavesNothingInStaging) {
  Put(key_);
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(DraftTest, DestroyedDraftIsRemoved) {
  BeginWith(key_).reset();
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(DraftTest, DestroyedSealedDraftIsRemoved) {
  auto draft = BeginWith(key_);
  ASSERT_TRUE(draft->Seal({}).ok());
  draft.reset();
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(DraftTest, OnlyTheWriterMayLookIntoADraft) {
  const auto draft = store_->Begin(key_).value();
  EXPECT_EQ(std::filesystem::status(draft->path()).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(DraftTest, CommitBeforeSealIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginWith(key_)->Commit()));
}

TEST_F(DraftTest, SecondImageUnderAKeyIsRefused) {
  Put(key_, "first");
  auto second = BeginWith(key_, "second");
  ASSERT_TRUE(second->Seal({}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(second->Commit()));
  EXPECT_EQ(*ReadFile(store_->Path(key_).value() + "/core-1.img"), "first");
}

TEST_F(DraftTest, RefusedCommitSucceedsAfterTheFirstIsDeleted) {
  Put(key_, "first");
  auto second = BeginWith(key_, "second");
  ASSERT_TRUE(second->Seal({}).ok());
  ASSERT_FALSE(second->Commit().ok());
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(second->Commit().ok());
  EXPECT_EQ(*ReadFile(store_->Path(key_).value() + "/core-1.img"), "second");
}

TEST_F(DraftTest, RanksAreDraftedSideBySide) {
  const ImageKey other{key_.checkpoint, 1};
  auto first = BeginWith(key_, "rank 0");
  auto second = BeginWith(other, "rank 1");
  std::thread seal([&] { EXPECT_TRUE(first->Seal({}).ok() && first->Commit().ok()); });
  EXPECT_TRUE(second->Seal({}).ok() && second->Commit().ok());
  seal.join();
  EXPECT_THAT(store_->List().value(), ElementsAre(key_, other));
  EXPECT_EQ(*ReadFile(store_->Path(other).value() + "/core-1.img"), "rank 1");
}

TEST_F(DraftTest, EmptyDraftIsNoImage) {
  EXPECT_THAT(store_->Begin(key_).value()->Seal({}).status().message(), HasSubstr("no files"));
}

TEST_F(DraftTest, AnythingButAFileIsRefused) {
  auto draft = BeginWith(key_);
  std::filesystem::create_symlink("/etc/passwd", draft->path() + "/link.img");
  EXPECT_THAT(draft->Seal({}).status().message(), HasSubstr("link.img is not a regular file"));
}

TEST_F(DraftTest, KeyThatLeavesTheStoreIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Begin({CheckpointId("../x"), 0}).status()));
}

TEST_F(DraftTest, FollowedFileGetsTheHashOfTheWhole) {
  const std::string data = Pattern((5 << 20) + 123);
  auto draft = store_->Begin(key_).value();
  const std::string file = draft->path() + "/pages-1.img";
  for (size_t at = 0; at < data.size(); at += 700'001) {
    const std::string piece = data.substr(at, 700'001);
    ASSERT_TRUE(WriteAt(file, piece, static_cast<off_t>(at)));
    ASSERT_TRUE(
        Eventually([&] { return draft->BytesSoFar().value >= static_cast<int64_t>(at + piece.size()); }));
  }
  const Manifest manifest = draft->Seal({}).value();
  EXPECT_EQ(manifest.files[0].checksum, ChecksumOf(data));
}

TEST_F(DraftTest, HeaderRewrittenLateIsHashedAsItIs) {
  std::string data = Pattern(3 << 20);
  auto draft = store_->Begin(key_).value();
  const std::string file = draft->path() + "/pagemap-1.img";
  ASSERT_TRUE(WriteAt(file, data));
  ASSERT_TRUE(Eventually([&] { return draft->BytesSoFar().value == 3 << 20; }));
  ASSERT_TRUE(WriteAt(file, "header"));
  data.replace(0, 6, "header");
  EXPECT_EQ(draft->Seal({}).value().files[0].checksum, ChecksumOf(data));
}

TEST_F(DraftTest, SealTellsTheTotalSize) {
  auto draft = BeginWith(key_, "12345");
  ASSERT_TRUE(WriteAt(draft->path() + "/pages-1.img", "123"));
  EXPECT_EQ(draft->Seal({}).value().TotalSize(), Bytes{8});
}

}  // namespace
}  // namespace siding::store
