// What is in a tier, and whether it is good.

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "store/secret_key.h"
#include "store/tool/tool_fixture.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LookTest : public ToolTest {
 protected:
  LookTest() {
    Put(key_);
    Put(next_, "newer");
  }
  nlohmann::json Json(const std::vector<std::string>& words) {
    Run(words);
    return nlohmann::json::parse(out_.str());
  }
  // An image of three bytes, and the five of the image before.
  void PutSharing() {
    const Manifest base = store_->Read(next_).value();
    const auto draft = store_->Begin({CheckpointId("42.5"), 0}, &base).value();
    ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", "new"));
    ASSERT_TRUE(draft->Share(base.files[0], "parent-1.core-1.img").ok());
    ASSERT_TRUE(draft->Seal({{"unused_bytes", "1"}}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  static int64_t SizeOf(const std::string& file) { return static_cast<int64_t>(fs::file_size(file)); }
  int64_t ManifestsSize() const {
    int64_t size = 0;
    const std::vector<ImageKey> keys = store_->List().value();
    for (const ImageKey& key : keys) size += SizeOf(store_->Path(key).value() + "/manifest.json");
    return size;
  }

  const ImageKey next_{CheckpointId("42.4"), 0};
};

TEST_F(LookTest, ListNamesEachImage) {
  EXPECT_EQ(Run({"list", folder_}), 0);
  EXPECT_THAT(out_.str(), testing::AllOf(HasSubstr("42.3 rank 0: 1 files, 7 B"), HasSubstr("42.4 rank 0: ")));
}

TEST_F(LookTest, ListSaysWhatIsNewOfEachAndHowManyParentsItHas) {
  PutSharing();
  EXPECT_EQ(Run({"list", folder_}), 0);
  EXPECT_THAT(out_.str(), testing::AllOf(HasSubstr("42.4 rank 0: 1 files, 5 B, 5 B new, made "),
                                         HasSubstr("42.5 rank 0: 2 files, 7 B, 3 B new, 1 parents, made ")));
}

TEST_F(LookTest, JsonHasTheSizesApart) {
  PutSharing();
  const auto image = Json({"list", folder_, "42.5", "--json"})["images"][0];
  EXPECT_EQ(image["bytes"], 8);
  EXPECT_EQ(image["used_bytes"], 7);
  EXPECT_EQ(image["new_bytes"], 3);
  EXPECT_EQ(image["parents"], 1);
  EXPECT_EQ(image["encrypted"], false);
}

TEST_F(LookTest, WhatImagesShareIsHeldOnce) {
  PutSharing();
  const auto all = Json({"list", folder_, "--json"});
  EXPECT_EQ(all["used_bytes"], 7 + 5 + 7);
  EXPECT_EQ(all["held_bytes"], 7 + 5 + 3 + ManifestsSize());
}

TEST_F(LookTest, OfOneImageAloneAllIsHeld) {
  PutSharing();
  const auto all = Json({"list", folder_, "42.5", "--json"});
  EXPECT_EQ(all["held_bytes"], 8 + SizeOf(folder_ + "/images/42.5/0/manifest.json"));
  EXPECT_FALSE(all.contains("other_bytes")) << "which is not of that image";
}

TEST_F(LookTest, TheLastLineHasTheSums) {
  EXPECT_EQ(Run({"list", folder_}), 0);
  EXPECT_THAT(out_.str(), testing::EndsWith("\n2 images, 12 B; the tier holds " +
                                            FormatBytes(Bytes{12 + ManifestsSize()}) + " for them\n"));
}

TEST_F(LookTest, WhatIsSetAsideIsHeldBesideTheImages) {
  const int64_t aside = 5 + SizeOf(folder_ + "/images/42.4/0/manifest.json");
  ASSERT_TRUE(Quarantine(*store_, next_).ok());
  EXPECT_EQ(Json({"list", folder_, "--json"})["other_bytes"], aside);
  Run({"list", folder_});
  EXPECT_THAT(out_.str(), HasSubstr(" for them, and " + FormatBytes(Bytes{aside}) +
                                    " in damaged, staging and restore\n"));
}

TEST_F(LookTest, VerifyHasNoSums) {
  EXPECT_FALSE(Json({"verify", folder_, "--json"}).contains("held_bytes"));
}

TEST_F(LookTest, ThatOneIsEncryptedIsSaid) {
  const SecretKey key = ParseSecretKey(std::string(64, '1')).value();
  store_ = OpenDirectoryStore(folder_,
                              {.keys = std::make_shared<KeyRing>(key), .plain_folder = folder_ + "/plain"})
               .value();
  Put({CheckpointId("42.5"), 0});
  EXPECT_EQ(Json({"list", folder_, "42.5", "--json"})["images"][0]["encryption_key"], key.Id());
  Run({"list", folder_});
  EXPECT_THAT(out_.str(), HasSubstr(", encrypted with key " + key.Id() + ", made "));
}

TEST_F(LookTest, VerifyEndsSoonWhenItIsToldTo) {
  stop_ = [] { return true; };
  EXPECT_EQ(Run({"verify", folder_}), kStopped);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(LookTest, GoodImagesAreExitCode0) {
  EXPECT_EQ(Run({"verify", folder_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(", good\n"));
}

TEST_F(LookTest, DamagedFileIsNamedAndExitCode1) {
  Damage(key_);
  EXPECT_EQ(Run({"verify", folder_}), 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("42.3 rank 0: DAMAGED: " + folder_ + "/images/42.3/0/core-1.img is damaged"));
}

TEST_F(LookTest, OtherCheckpointsAreNotReadIfOneIsNamed) {
  Damage(key_);
  EXPECT_EQ(Run({"verify", folder_, "42.4"}), 0);
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("42.3 rank")));
}

TEST_F(LookTest, JsonHasTheProblem) {
  Damage(key_);
  EXPECT_EQ(Run({"verify", "--json", folder_}), 1);
  const auto images = nlohmann::json::parse(out_.str())["images"];
  EXPECT_EQ(images[0]["damaged"], true);
  EXPECT_THAT(images[0]["problem"].get<std::string>(), HasSubstr("core-1.img"));
  EXPECT_EQ(images[1]["good"], true);
  EXPECT_EQ(images[1]["bytes"], 5);
}

TEST_F(LookTest, UnknownCheckpointIsExitCode2) {
  EXPECT_EQ(Run({"verify", folder_, "7.7"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("there is no image of checkpoint 7.7"));
}

TEST_F(LookTest, FolderThatIsNoStoreIsExitCode2AndStaysAsItIs) {
  fs::create_directory(folder_ + "/empty");
  EXPECT_EQ(Run({"list", folder_ + "/empty"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("is no checkpoint store"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/empty"));
}

TEST_F(LookTest, DraftsOfOthersStay) {
  const std::string draft = Staging() + "/42.3.0.trash";
  fs::create_directory(draft);
  EXPECT_EQ(Run({"verify", folder_}), 0);
  EXPECT_TRUE(fs::exists(draft));
}

// Whoever can write to the folder chooses the names.
TEST_F(LookTest, NamesDoNotSpeakToTheTerminal) {
  ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/\x1b]0;x\x07\n42.4 rank 0: good", "x"));
  EXPECT_EQ(Run({"verify", folder_}), 1);
  EXPECT_THAT(out_.str(),
              testing::AllOf(testing::Not(HasSubstr("\x1b")), testing::Not(HasSubstr("\n42.4 rank 0: good")),
                             HasSubstr("does not belong to the image")));
}

TEST_F(LookTest, NamesThatAreNoTextAreJsonAllTheSame) {
  ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/\xff", "x"));
  EXPECT_EQ(Run({"verify", folder_, "--json"}), 1);
  EXPECT_TRUE(nlohmann::json::accept(out_.str()));
}

}  // namespace
}  // namespace siding::store
