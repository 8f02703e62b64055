#include "store/store.h"

#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/manifest.h"

namespace siding {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const ImageKey kKey{CheckpointId("7.1"), 0};

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    char name[] = "/tmp/siding-store-XXXXXX";
    root_ = mkdtemp(name);
    store_ = *OpenDirectoryStore(root_);
  }
  ~StoreTest() override {
    store_.reset();
    fs::remove_all(root_);
  }
  static void Write(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

  // An image with two files, committed.
  void MakeImage(const ImageKey& key = kKey) {
    auto draft = *store_->Begin(key);
    Write(draft->path() + "/pages-1.img", std::string(3 << 20, 'p'));
    Write(draft->path() + "/core-1.img", "core");
    ASSERT_TRUE(draft->Seal({{"files", "[]"}}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  std::string FileOf(const std::string& name) { return *store_->Path(kKey) + "/" + name; }
  std::string VerifyError() { return std::string(store_->Verify(kKey).status().message()); }
  int Drafts() { return static_cast<int>(std::distance(fs::directory_iterator(root_ + "/staging"), {})); }

  std::string root_;
  std::unique_ptr<ImageStore> store_;
};

TEST_F(StoreTest, AnImageIsInvisibleUntilCommitted) {
  auto draft = *store_->Begin(kKey);
  Write(draft->path() + "/core-1.img", "core");
  ASSERT_TRUE(draft->Seal({}).ok());
  EXPECT_TRUE(store_->List()->empty());
  EXPECT_TRUE(absl::IsNotFound(store_->Read(kKey).status()));
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(*store_->List(), std::vector<ImageKey>{kKey});
}

TEST_F(StoreTest, ADraftThatIsGivenUpLeavesNothing) {
  {
    auto draft = *store_->Begin(kKey);
    Write(draft->path() + "/core-1.img", "core");
  }
  EXPECT_EQ(Drafts(), 0);
}

TEST_F(StoreTest, ManifestComesBackAsItWent) {
  MakeImage();
  const auto manifest = store_->Read(kKey);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->files.size(), 2u);
  EXPECT_EQ(manifest->metadata.at("files"), "[]");
  EXPECT_EQ(manifest->TotalSize().value, (3 << 20) + 4);
}

TEST_F(StoreTest, AGoodImageVerifies) {
  MakeImage();
  EXPECT_TRUE(store_->Verify(kKey).ok());
}

TEST_F(StoreTest, AFlippedBitIsNamed) {
  MakeImage();
  std::fstream file(FileOf("pages-1.img"), std::ios::in | std::ios::out);
  file.seekp(1000);
  file << 'q';
  file.close();
  EXPECT_THAT(VerifyError(), HasSubstr("pages-1.img is damaged"));
}
TEST_F(StoreTest, ATruncatedFileIsNamed) {
  MakeImage();
  fs::resize_file(FileOf("core-1.img"), 2);
  EXPECT_THAT(VerifyError(), HasSubstr("core-1.img has 2 bytes, expected 4"));
}
TEST_F(StoreTest, AMissingFileIsNamed) {
  MakeImage();
  fs::remove(FileOf("core-1.img"));
  EXPECT_THAT(VerifyError(), HasSubstr("core-1.img is missing"));
}
TEST_F(StoreTest, AForeignFileIsNamed) {
  MakeImage();
  Write(FileOf("extra.img"), "x");
  EXPECT_THAT(VerifyError(), HasSubstr("extra.img does not belong"));
}
TEST_F(StoreTest, AMangledManifestIsDataLoss) {
  MakeImage();
  Write(FileOf("manifest.json"), "{\"format\": 1");
  EXPECT_TRUE(absl::IsDataLoss(store_->Read(kKey).status()));
}

TEST_F(StoreTest, AFileThatGrowsIsHashedAsIfReadAtOnce) {
  auto draft = *store_->Begin(kKey);
  std::ofstream file(draft->path() + "/pages-1.img");
  for (int i = 0; i < 64; ++i) file << std::string(100000, static_cast<char>('a' + i % 26)) << std::flush;
  file.close();
  const auto manifest = draft->Seal({});
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->files[0].checksum, HashFile(draft->path(), "pages-1.img")->checksum);
}

TEST_F(StoreTest, AHeaderThatIsRewrittenLateIsHashedAsItEnds) {
  auto draft = *store_->Begin(kKey);
  Write(draft->path() + "/core-1.img", "old header and body");
  Write(draft->path() + "/core-1.img", "new header and body");
  const auto manifest = draft->Seal({});
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->files[0].checksum, HashFile(draft->path(), "core-1.img")->checksum);
}

TEST_F(StoreTest, TheDraftOfAKilledWriterIsRemovedAndALiveOneIsNot) {
  auto alive = *store_->Begin(kKey);
  const pid_t child = fork();
  if (child == 0) {
    auto draft = (*OpenDirectoryStore(root_))->Begin({CheckpointId("8.1"), 0});
    if (draft.ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Drafts(), 4);
  ASSERT_TRUE(OpenDirectoryStore(root_).ok());
  EXPECT_EQ(Drafts(), 2);  // the live one and its lock
}

TEST_F(StoreTest, ASecondImageUnderTheSameKeyIsRefused) {
  MakeImage();
  auto draft = *store_->Begin(kKey);
  Write(draft->path() + "/core-1.img", "core");
  ASSERT_TRUE(draft->Seal({}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(draft->Commit()));
}

TEST_F(StoreTest, DeletionMayBeRepeated) {
  MakeImage();
  EXPECT_TRUE(store_->Delete(kKey).ok());
  EXPECT_TRUE(store_->Delete(kKey).ok());
  EXPECT_TRUE(store_->List()->empty());
  EXPECT_FALSE(fs::exists(root_ + "/images/7.1"));
}

TEST_F(StoreTest, RanksOfACheckpointAreApart) {
  MakeImage({CheckpointId("7.1"), 0});
  MakeImage({CheckpointId("7.1"), 1});
  EXPECT_TRUE(store_->Delete({CheckpointId("7.1"), 0}).ok());
  EXPECT_TRUE(store_->Verify({CheckpointId("7.1"), 1}).ok());
}

TEST_F(StoreTest, IdsThatAreNoNamesAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Begin({CheckpointId("../../etc"), 0}).status()));
}

TEST_F(StoreTest, AFullDiskIsSaidAndLeavesTheStoreClean) {
  const std::string small = root_ + "/small";
  fs::create_directory(small);
  if (mount("none", small.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs root to mount a small disk";
  {
    auto store = *OpenDirectoryStore(small);
    auto draft = *store->Begin(kKey);
    Write(draft->path() + "/core-1.img", "core");
    Write(draft->path() + "/pages-1.img", std::string(1 << 20, 'p'));  // cut short by the full disk
    EXPECT_TRUE(absl::IsResourceExhausted(draft->Seal({}).status()));
    draft.reset();
    EXPECT_TRUE(fs::is_empty(small + "/staging"));
  }
  umount(small.c_str());
}

}  // namespace
}  // namespace siding
