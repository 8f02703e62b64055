// Everything that can be wrong with an image's files is found and named.
#include "gmock/gmock.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class VerifyTest : public StoreTest {
 protected:
  VerifyTest() {
    auto draft = BeginWith(key_, Pattern(100'000));
    EXPECT_TRUE(WriteAt(draft->path() + "/pages-1.img", Pattern(3 << 20, 2)));
    EXPECT_TRUE(draft->Seal({}).ok());
    EXPECT_TRUE(draft->Commit().ok());
    image_ = store_->Path(key_).value();
  }
  // Of a verification that must find lost data.
  std::string Finding() const {
    const absl::Status status = store_->Verify(key_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }
  std::string image_;
};

TEST_F(VerifyTest, WholeImagePasses) { EXPECT_EQ(store_->Verify(key_).value().files.size(), 2u); }

TEST_F(VerifyTest, UnknownImageIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store_->Verify({CheckpointId("1.1"), 0}).status()));
}

TEST_F(VerifyTest, FlippedBitIsNamed) {
  std::string page = ReadFile(image_ + "/pages-1.img").value().substr(2'000'000, 1);
  page[0] = static_cast<char>(page[0] ^ 4);
  ASSERT_TRUE(WriteAt(image_ + "/pages-1.img", page, 2'000'000));
  EXPECT_THAT(Finding(), AllOf(HasSubstr("pages-1.img is damaged"), HasSubstr("checksum")));
}

TEST_F(VerifyTest, EveryFlippedBitOfASmallImageIsNamed) {
  const ImageKey small{CheckpointId("43.1"), 0};
  auto draft = BeginWith(small, Pattern(100));
  EXPECT_TRUE(WriteAt(draft->path() + "/pages-1.img", Pattern(200, 2)));
  EXPECT_TRUE(draft->Seal({{"uid", "0"}}).ok());
  EXPECT_TRUE(draft->Commit().ok());
  for (const std::string name : {"core-1.img", "pages-1.img", "manifest.json"}) {
    const std::string path = store_->Path(small).value() + "/" + name;
    const std::string good = ReadFile(path).value();
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      const char flipped = static_cast<char>(good[bit / 8] ^ (1 << bit % 8));
      ASSERT_TRUE(WriteAt(path, std::string(1, flipped), static_cast<off_t>(bit / 8)));
      const absl::Status status = store_->Verify(small).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << name << " bit " << bit << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
      ASSERT_TRUE(WriteAt(path, good.substr(bit / 8, 1), static_cast<off_t>(bit / 8)));
    }
  }
}

TEST_F(VerifyTest, TruncatedFileIsNamedWithBothSizes) {
  std::filesystem::resize_file(image_ + "/core-1.img", 99'999);
  EXPECT_THAT(Finding(), HasSubstr("core-1.img has 99999 bytes, expected 100000"));
}

TEST_F(VerifyTest, MissingFileIsNamed) {
  std::filesystem::remove(image_ + "/core-1.img");
  EXPECT_THAT(Finding(), HasSubstr("core-1.img is missing"));
}

TEST_F(VerifyTest, ExtraFileIsNamed) {
  ASSERT_TRUE(WriteAt(image_ + "/fdinfo-9.img", "x"));
  EXPECT_THAT(Finding(), HasSubstr("fdinfo-9.img does not belong to the image"));
}

TEST_F(VerifyTest, LinkInPlaceOfAFileIsNamed) {
  std::filesystem::rename(image_ + "/core-1.img", folder_ + "/elsewhere");
  std::filesystem::create_symlink(folder_ + "/elsewhere", image_ + "/core-1.img");
  EXPECT_THAT(Finding(), HasSubstr("core-1.img is not a regular file"));
}

TEST_F(VerifyTest, LinkInPlaceOfTheManifestIsNamed) {
  std::filesystem::rename(image_ + "/manifest.json", folder_ + "/elsewhere");
  std::filesystem::create_symlink(folder_ + "/elsewhere", image_ + "/manifest.json");
  EXPECT_THAT(Finding(), HasSubstr("manifest.json is not a regular file"));
}

TEST_F(VerifyTest, FolderInTheImageIsNamed) {
  std::filesystem::create_directory(image_ + "/more");
  EXPECT_THAT(Finding(), HasSubstr("more does not belong to the image"));
}

TEST_F(VerifyTest, MissingManifestIsNamed) {
  std::filesystem::remove(image_ + "/manifest.json");
  EXPECT_THAT(Finding(), HasSubstr("manifest.json is missing"));
}

TEST_F(VerifyTest, ImageUnderAnotherKeyIsFound) {
  std::filesystem::rename(image_, folder_ + "/images/42.3/1");
  const absl::Status status = store_->Verify({key_.checkpoint, 1}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("describes image 42.3 rank 0"));
}

TEST_F(VerifyTest, ProgressEndsAtTheTotal) {
  Bytes last;
  const auto note = [&](Bytes done) {
    last = done;
    return true;
  };
  const Manifest manifest = store_->Verify(key_, {.progress = note}).value();
  EXPECT_EQ(last, manifest.TotalSize());
}

TEST_F(VerifyTest, CanBeCalledOff) {
  EXPECT_TRUE(absl::IsCancelled(store_->Verify(key_, {.progress = [](Bytes) { return false; }}).status()));
}

TEST_F(VerifyTest, FlippedBitOnTheDiskIsFound) {
  EXPECT_TRUE(store_->Verify(key_, {.from_disk = true}).ok());
  ASSERT_TRUE(WriteAt(image_ + "/core-1.img", "x", 7));
  EXPECT_TRUE(absl::IsDataLoss(store_->Verify(key_, {.from_disk = true}).status()));
}

}  // namespace
}  // namespace siding::store
