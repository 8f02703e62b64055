// An image, or what is in its place, made by an attacker who can write to the tier: it is refused by
// name, nothing else is touched, and it costs no more than an image of ours.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <random>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "store/disk.h"
#include "store/manifest.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class TamperedTest : public StoreTest {
 protected:
  TamperedTest() {
    Put(key_);
    image_ = store_->Path(key_).value();
    manifest_ = image_ + "/manifest.json";
    text_ = ReadFile(manifest_).value();
  }
  // As an attacker who knows the format: the manifest's own checksum is made to fit.
  void Write(const std::string& text) {
    fs::remove(manifest_);
    ASSERT_TRUE(WriteAt(manifest_, WithOwnChecksum(text)));
  }
  void Replace(const std::string& from, const std::string& to) {
    ASSERT_THAT(text_, HasSubstr(from));
    Write(absl::StrReplaceAll(text_, {{from, to}}));
  }
  std::string Refusal() const {
    const absl::Status status = store_->Verify(key_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }
  std::string image_, manifest_, text_;
};

TEST_F(TamperedTest, SizesThatNoFileHasAreNamed) {
  for (const std::string size : {"-1", "9223372036854775807", "9223372036854775808", "18446744073709551615",
                                 "1e300", "7.5", "\"7\"", "null"}) {
    Replace("\"size\": 7", "\"size\": " + size);
    EXPECT_THAT(Refusal(), HasSubstr("files[0].size: expected")) << size;
  }
}

TEST_F(TamperedTest, SizesWhoseSumDoesNotFitAreNamed) {
  const std::string file =
      R"({"name": "a", "size": 1152921504606846976, "checksum": "xxh3:)" + std::string(32, '0') + "\"}";
  Replace("\"files\": [",
          "\"files\": [" + file + "," + absl::StrReplaceAll(file, {{"\"a\"", "\"b\""}}) + ",");
  EXPECT_THAT(Refusal(), HasSubstr("files[1].size: expected less than an exbibyte in all"));
}

TEST_F(TamperedTest, NamesThatLeadOutOfTheImageAreNamed) {
  for (const std::string name :
       {"../core-1.img", "/etc/passwd", "..", ".", "", "a/b", "a\\u0000b", "manifest.json"}) {
    Replace("core-1.img", name);
    EXPECT_THAT(Refusal(), HasSubstr("files[0].name: expected")) << name;
  }
}

TEST_F(TamperedTest, OtherNumbersThatCannotBeAreNamed) {
  for (const std::string rank : {"-1", "4294967296", "18446744073709551615", "1e9"}) {
    Replace("\"rank\": 0", "\"rank\": " + rank);
    EXPECT_THAT(Refusal(), HasSubstr("rank: expected")) << rank;
  }
  for (const std::string version : {"-1", "0", "18446744073709551615"}) {
    Replace("\"version\": 1", "\"version\": " + version);
    EXPECT_THAT(Refusal(), HasSubstr("version: expected")) << version;
  }
}

TEST_F(TamperedTest, AManifestWithoutEndIsNotReadToItsEnd) {
  fs::resize_file(manifest_, uint64_t{1} << 40);  // mostly a hole
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("manifest.json"), HasSubstr("bytes at most")));
}

TEST_F(TamperedTest, AManifestOfTooManyValuesIsNotTakenApart) {
  std::string many = "[";
  for (size_t i = 0; i <= kMostManifestValues; ++i) many += "0,";
  Write("{\"x\": " + many + "0]," + text_.substr(1));
  EXPECT_THAT(Refusal(), HasSubstr("values at most"));
}

TEST_F(TamperedTest, AManifestThatIsNestedDeeplyIsNotTakenApart) {
  Write("{\"x\": " + std::string(10'000'000, '[') + "," + text_.substr(1));
  EXPECT_THAT(Refusal(), HasSubstr("nested"));
}

TEST_F(TamperedTest, AStringMayHaveWhatAValueMayNot) {
  auto draft = BeginWith({CheckpointId("43.1"), 0});
  const std::string deep = "\\\"" + std::string(1000, '[') + "\\";
  ASSERT_TRUE(draft->Seal({{"files", deep}}).ok());
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(store_->Verify({CheckpointId("43.1"), 0})->metadata.at("files"), deep);
}

TEST_F(TamperedTest, WhatCouldNotBeReadAgainIsNotWritten) {
  auto draft = BeginWith({CheckpointId("43.1"), 0});
  const absl::Status status = draft->Seal({{"files", std::string(kLongestManifest, 'x')}}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

TEST_F(TamperedTest, APipeInPlaceOfAFileIsNotWaitedFor) {
  for (const std::string name : {"manifest.json", "core-1.img"}) {
    const std::string path = image_ + "/" + name;
    const std::string good = ReadFile(path).value();
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(Refusal(), HasSubstr(name + " is not a regular file"));
    EXPECT_TRUE(absl::IsDataLoss(OpenRegular(path).status()));
    fs::remove(path);
    ASSERT_TRUE(WriteAt(path, good));
  }
}

TEST_F(TamperedTest, ADeviceInPlaceOfAFileIsNotOpened) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a device";
  for (const std::string name : {"manifest.json", "core-1.img"}) {
    const std::string path = image_ + "/" + name;
    const std::string good = ReadFile(path).value();
    fs::remove(path);
    ASSERT_EQ(mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)), 0);  // zero
    EXPECT_THAT(Refusal(), HasSubstr(name + " is not a regular file"));
    EXPECT_TRUE(absl::IsDataLoss(OpenRegular(path).status()));
    fs::remove(path);
    ASSERT_TRUE(WriteAt(path, good));
  }
}

class LinkedCheckpointTest : public TamperedTest {
 protected:
  LinkedCheckpointTest() {
    fs::rename(folder_ + "/images/42.3", folder_ + "/elsewhere");
    fs::create_symlink(folder_ + "/elsewhere", folder_ + "/images/42.3");
  }
  bool IsWholeElsewhere() const { return fs::exists(folder_ + "/elsewhere/0/manifest.json"); }
};

TEST_F(LinkedCheckpointTest, IsNotAnImage) {
  EXPECT_THAT(Refusal(), HasSubstr("42.3 is not a folder"));
  EXPECT_TRUE(absl::IsDataLoss(store_->Read(key_).status()));
  EXPECT_TRUE(absl::IsDataLoss(store_->Path(key_).status()));
  EXPECT_TRUE(store_->List()->empty());
}

TEST_F(LinkedCheckpointTest, WhatItLeadsToIsNotDeleted) {
  EXPECT_TRUE(store_->Delete(key_).ok());
  EXPECT_TRUE(IsWholeElsewhere());
  EXPECT_FALSE(fs::is_symlink(folder_ + "/images/42.3"));
}

TEST_F(LinkedCheckpointTest, WhatItLeadsToIsNotSetAside) {
  EXPECT_TRUE(Quarantine(*store_, key_).ok());
  EXPECT_TRUE(IsWholeElsewhere());
  EXPECT_FALSE(fs::is_symlink(folder_ + "/images/42.3"));
}

TEST_F(TamperedTest, AReplacedManifestIsToldByItsDigest) {
  const std::string digest = store_->Read(key_)->digest;
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_TRUE(store_->Verify(key_, {.digest = digest}).ok());
  Replace("\"metadata\": {}", "\"metadata\": {\"uid\": \"0\"}");
  EXPECT_TRUE(store_->Verify(key_).ok());
  const absl::Status status = store_->Verify(key_, {.digest = digest}).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("has been replaced"), HasSubstr(digest)));
}

TEST_F(TamperedTest, TheDigestIsKnownWhenTheImageIsSealed) {
  auto draft = BeginWith({CheckpointId("43.1"), 0});
  const std::string digest = draft->Seal({{"uid", "7"}})->digest;
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(store_->Read({CheckpointId("43.1"), 0})->digest, digest);
}

TEST_F(TamperedTest, APipeInPlaceOfTheTiersIdIsNotWaitedFor) {
  fs::remove(folder_ + "/tier/id");
  ASSERT_EQ(mkfifo((folder_ + "/tier/id").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsUnavailable(store_->FreeSpace().status()));
  EXPECT_THAT(std::string(OpenDirectoryStore(folder_).status().message()),
              HasSubstr("id is not a regular file"));
}

TEST_F(TamperedTest, AnIdWithoutEndIsNotReadToItsEnd) {
  fs::resize_file(folder_ + "/tier/id", uint64_t{1} << 40);
  EXPECT_TRUE(absl::IsUnavailable(store_->FreeSpace().status()));
}

// Bytes changed, left out, doubled and exchanged at random, with a checksum that is made to fit.
TEST_F(TamperedTest, GarbledManifestsAreRefusedOrAreThisImages) {
  std::mt19937 random(1);
  const std::string alphabet = "\"{}[]:,\\0123456789-.eE/ \n\x01\x7f\xff nulltruefalse";
  for (int i = 0; i < 3000; ++i) {
    std::string text = text_;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % text.size();
      const size_t size = std::min<size_t>(random() % 20, text.size() - at);
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, size);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), size));
          break;
        default:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
      if (text.empty()) text = "{";
    }
    Write(text);
    const auto found = store_->Verify(key_);
    if (found.ok()) {
      EXPECT_EQ(found->key, key_);
      EXPECT_EQ(found->files.size(), 1u);
    } else {
      EXPECT_TRUE(absl::IsDataLoss(found.status()) || absl::IsFailedPrecondition(found.status()))
          << found.status();
      EXPECT_THAT(std::string(found.status().message()), HasSubstr(image_));
    }
  }
}

}  // namespace
}  // namespace siding::store
