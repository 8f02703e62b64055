// Damaged images of a tier come back from another one, and nothing else changes.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "store/secret_key.h"
#include "store/tool/tool_fixture.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

// `store_` is the tier to be repaired.
class RepairTest : public ToolTest {
 protected:
  RepairTest() : other_(OpenDirectoryStore(from_).value()) {
    Put(key_);
    Put(next_, "newer");
    for (const ImageKey& key : {key_, next_}) EXPECT_TRUE(other_->CopyFrom(*store_, key, {}).ok());
  }
  ~RepairTest() override { fs::remove_all(from_); }

  int Repair(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"repair", folder_, "--from", from_};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  void DamageManifest() { ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/manifest.json", "x")); }
  size_t SetAside() const {
    return fs::exists(folder_ + "/damaged") ? CountEntries(folder_ + "/damaged") : 0;
  }
  bool IsGood(const ImageKey& key) const {
    return store_->Verify(key, {.digest = other_->Read(key)->digest}).ok();
  }
  // In the place of key_'s image in both tiers: files of 100,000 and of 7 bytes.
  void PutLarge() {
    ASSERT_TRUE(store_->Delete(key_).ok());
    const auto draft = BeginWith(key_);
    ASSERT_TRUE(WriteAt(draft->path() + "/pages-1.img", Pattern(100'000)));
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
    ASSERT_TRUE(other_->Delete(key_).ok());
    ASSERT_TRUE(other_->CopyFrom(*store_, key_, {}).ok());
  }
  // In both tiers: an image that shares the large file of key_'s.
  void PutSharing(const ImageKey& key) {
    PutLarge();
    const Manifest base = store_->Read(key_).value();
    const auto draft = store_->Begin(key, &base).value();
    ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", "of it alone"));
    ASSERT_TRUE(draft->Share(*base.Find("pages-1.img"), "parent-1.pages-1.img").ok());
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
    ASSERT_TRUE(other_->CopyFrom(*store_, key, {}).ok());
  }

  const std::string from_ = folder_ + "-other";
  const ImageKey next_{CheckpointId("42.4"), 0}, third_{CheckpointId("42.5"), 0};
  std::unique_ptr<ImageStore> other_;
};

TEST_F(RepairTest, ADamagedImageIsReplaced) {
  Damage(key_);
  EXPECT_EQ(Repair(), kGood) << said();
  EXPECT_TRUE(IsGood(key_));
  EXPECT_THAT(out_.str(), StartsWith("42.3 rank 0: repaired, 7 B written; set aside in " + folder_ +
                                     "/damaged: " + folder_ + "/images/42.3/0/core-1.img is damaged"));
}

TEST_F(RepairTest, ItIsSetAside) {
  Damage(key_);
  ASSERT_EQ(Repair(), kGood);
  EXPECT_EQ(SetAside(), 1u);
}

TEST_F(RepairTest, GoodOnesStayAsTheyAre) {
  const auto made = fs::last_write_time(store_->Path(key_).value());
  EXPECT_EQ(Repair(), kGood);
  EXPECT_EQ(out_.str(), "42.3 rank 0: good\n42.4 rank 0: good\n");
  EXPECT_EQ(fs::last_write_time(store_->Path(key_).value()), made);
  EXPECT_EQ(SetAside(), 0u);
}

TEST_F(RepairTest, TheOtherTierStaysAsItIs) {
  Damage(key_);
  ASSERT_EQ(Repair(), kGood);
  EXPECT_TRUE(other_->Verify(key_).ok());
  EXPECT_EQ(fs::hard_link_count(other_->Path(key_).value() + "/core-1.img"), 1u);
}

TEST_F(RepairTest, OthersAreNotReadIfOneIsNamed) {
  Damage(key_);
  EXPECT_EQ(Repair({"42.4"}), kGood);
  EXPECT_FALSE(IsGood(key_));
}

TEST_F(RepairTest, ADryRunChangesNothing) {
  Damage(key_);
  EXPECT_EQ(Repair({"--dry-run"}), kGood);
  EXPECT_THAT(out_.str(), StartsWith("42.3 rank 0: would be repaired: "));
  EXPECT_FALSE(IsGood(key_));
  EXPECT_EQ(SetAside(), 0u);
}

TEST_F(RepairTest, ADryRunSaysWhatCannotBeRepaired) {
  Damage(key_);
  ASSERT_TRUE(other_->Delete(key_).ok());
  EXPECT_EQ(Repair({"--dry-run"}), kNotGood);
}

TEST_F(RepairTest, WhereTheOtherTierHasNoneItStays) {
  Damage(key_);
  ASSERT_TRUE(other_->Delete(key_).ok());
  EXPECT_EQ(Repair(), kNotGood);
  EXPECT_THAT(out_.str(), StartsWith("42.3 rank 0: NOT REPAIRED: no image 42.3 rank 0 in " + from_ + "; "));
  EXPECT_TRUE(fs::exists(folder_ + "/images/42.3/0/core-1.img"));
}

TEST_F(RepairTest, WhereTheOtherTiersIsDamagedAsWellItStays) {
  Damage(key_);
  ASSERT_TRUE(WriteAt(other_->Path(key_).value() + "/core-1.img", "x"));
  EXPECT_EQ(Repair(), kNotGood);
  EXPECT_THAT(out_.str(), HasSubstr(from_ + "/images/42.3/0/core-1.img is damaged"));
  EXPECT_TRUE(fs::exists(folder_ + "/images/42.3/0/core-1.img"));
  EXPECT_EQ(CountEntries(Staging()), 0u);
}

TEST_F(RepairTest, AnotherImageOfThatKeyIsNotTaken) {
  Damage(key_);
  ASSERT_TRUE(other_->Delete(key_).ok());
  std::swap(store_, other_);
  Put(key_, "another");
  std::swap(store_, other_);
  EXPECT_EQ(Repair(), kNotGood);
  EXPECT_THAT(out_.str(), HasSubstr("has been replaced: the digest of its manifest is"));
}

TEST_F(RepairTest, WithoutAManifestItIsNotKnownWhatItWas) {
  DamageManifest();
  EXPECT_EQ(Repair(), kNotGood);
  EXPECT_THAT(out_.str(), HasSubstr("name checkpoint 42.3"));
}

TEST_F(RepairTest, WhoNamesItTakesWhatTheOtherTierHas) {
  DamageManifest();
  EXPECT_EQ(Repair({"42.3"}), kGood) << said();
  EXPECT_TRUE(IsGood(key_));
}

TEST_F(RepairTest, WhatIsMissingIsNoDamage) {
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_EQ(Repair(), kGood);
  EXPECT_FALSE(fs::exists(folder_ + "/images/42.3"));
}

TEST_F(RepairTest, WhatIsMissingComesBackIfItIsNamed) {
  ASSERT_TRUE(store_->Delete(key_).ok());
  EXPECT_EQ(Repair({"42.3"}), kGood) << said();
  EXPECT_THAT(out_.str(), StartsWith("42.3 rank 0: repaired, 7 B written; no image 42.3 rank 0 in "));
  EXPECT_TRUE(IsGood(key_));
}

TEST_F(RepairTest, WhatNobodyHasIsExitCode2) {
  EXPECT_EQ(Repair({"7.7"}), kUsage);
  EXPECT_THAT(said(), HasSubstr("there is no image of checkpoint 7.7 in " + folder_ + ", nor in " + from_));
}

TEST_F(RepairTest, FilesThatAreGoodAreNotWrittenAgain) {
  PutLarge();
  Damage(key_);
  EXPECT_EQ(Repair({"--json"}), kGood);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["images"][0]["written_bytes"], 7);
  EXPECT_TRUE(IsGood(key_));
}

TEST_F(RepairTest, WhatImagesShareStaysShared) {
  PutSharing(third_);
  Damage(key_, "pages-1.img");
  EXPECT_EQ(Repair(), kGood) << said();
  EXPECT_TRUE(IsGood(key_));
  EXPECT_TRUE(IsGood(third_));
  EXPECT_TRUE(fs::equivalent(folder_ + "/images/42.3/0/pages-1.img",
                             folder_ + "/images/42.5/0/parent-1.pages-1.img"));
}

TEST_F(RepairTest, JsonSaysWhatWasDone) {
  Damage(key_);
  EXPECT_EQ(Repair({"--json"}), kGood);
  const auto images = nlohmann::json::parse(out_.str())["images"];
  EXPECT_EQ(images[0]["was"], "damaged");
  EXPECT_EQ(images[0]["action"], "repaired");
  EXPECT_THAT(images[0]["problem"].get<std::string>(), HasSubstr("core-1.img is damaged"));
  EXPECT_EQ(images[1]["action"], "none");
}

TEST_F(RepairTest, JsonSaysWhyNot) {
  Damage(key_);
  ASSERT_TRUE(other_->Delete(key_).ok());
  EXPECT_EQ(Repair({"--json"}), kNotGood);
  const auto image = nlohmann::json::parse(out_.str())["images"][0];
  EXPECT_EQ(image["action"], "failed");
  EXPECT_THAT(image["failure"].get<std::string>(), HasSubstr("no image 42.3 rank 0 in " + from_));
}

TEST_F(RepairTest, EncryptedOnesNeedNoKey) {
  const auto ring = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  store_ = OpenDirectoryStore(folder_, {.keys = ring, .plain_folder = folder_ + "/plain"}).value();
  Put(third_);
  ASSERT_TRUE(other_->CopyFrom(*store_, third_, {}).ok());
  Damage(third_);
  EXPECT_EQ(Repair(), kGood) << said();
  EXPECT_TRUE(IsGood(third_));
}

TEST_F(RepairTest, ATierIsNotRepairedFromItself) {
  EXPECT_EQ(Run({"repair", folder_, "--from", folder_ + "/."}), kUsage);
  EXPECT_THAT(said(), HasSubstr("--from: " + folder_ + "/. is the tier that is to be repaired"));
}

TEST_F(RepairTest, AFolderThatIsNoTierIsExitCode2AndStaysAsItIs) {
  fs::create_directory(folder_ + "/empty");
  EXPECT_EQ(Run({"repair", folder_ + "/empty", "--from", from_}), kUsage);
  EXPECT_EQ(Run({"repair", folder_, "--from", folder_ + "/empty"}), kUsage);
  EXPECT_THAT(said(), HasSubstr("--from: " + folder_ + "/empty is no checkpoint store"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/empty"));
}

TEST_F(RepairTest, WithoutAnotherTierItIsExitCode2) { EXPECT_EQ(Run({"repair", folder_}), kUsage); }

// An agent may be about to write it, or to remove it.
TEST_F(RepairTest, WhatOthersHaveInStagingStays) {
  const auto draft = store_->Begin(third_).value();
  const std::string trash = draft->path().substr(0, draft->path().rfind('/')) + "/trash" +
                            draft->path().substr(draft->path().rfind('.'));
  ASSERT_TRUE(fs::create_directory(trash));
  Damage(key_);
  EXPECT_EQ(Repair(), kGood);
  EXPECT_TRUE(fs::exists(trash));
  EXPECT_TRUE(fs::exists(draft->path()));
}

// Agents do something while images are read or written: at each moment when the tool asks whether to stop.
class RepairBesideAgentsTest : public RepairTest {
 protected:
  void AtEachMoment(const std::vector<std::string>& more, const std::function<void()>& before,
                    const std::function<void()>& agent, const std::function<void(int, int)>& check) {
    for (int at = 0;; ++at) {
      SCOPED_TRACE(testing::Message() << "at moment " << at);
      before();
      std::atomic<int> asked = 0;
      stop_ = [&] {
        if (asked++ == at) agent();
        return false;
      };
      const int code = Repair(more);
      EXPECT_EQ(CountEntries(Staging()), 0u);
      check(code, at);
      if (asked <= at) break;
    }
  }
  void Renew() {
    ASSERT_TRUE(store_->Delete(key_).ok());
    ASSERT_TRUE(store_->CopyFrom(*other_, key_, {}).ok());
    Damage(key_);
    fs::remove_all(folder_ + "/damaged");
  }
  void PutAnother() {
    ASSERT_TRUE(store_->Delete(key_).ok());
    Put(key_, "another");
  }
};

TEST_F(RepairBesideAgentsTest, WhatIsDeletedStaysDeletedAndIsNoFailure) {
  for (const std::vector<std::string>& named : {std::vector<std::string>{}, {"42.3"}}) {
    bool deleted = false;
    AtEachMoment(
        named, [&] { Renew(), deleted = false; }, [&] { deleted = store_->Delete(key_).ok(); },
        [&](int code, int) {
          EXPECT_EQ(code, kGood) << said();
          EXPECT_EQ(fs::exists(folder_ + "/images/42.3/0"), !deleted);
        });
  }
}

TEST_F(RepairBesideAgentsTest, ANewerImageStaysAndIsGood) {
  bool newer = false;
  AtEachMoment(
      {"42.3"}, [&] { Renew(), newer = false; }, [&] { newer = true, PutAnother(); },
      [&](int code, int) {
        EXPECT_EQ(code, kGood) << said();
        EXPECT_EQ(ReadFile(folder_ + "/images/42.3/0/core-1.img").value(), newer ? "another" : "content");
      });
}

TEST_F(RepairBesideAgentsTest, OneThatAnotherRepairHasReplacedIsGood) {
  AtEachMoment(
      {}, [&] { Renew(); }, [&] { ASSERT_TRUE(store_->CopyFrom(*other_, key_, {}).ok()); },
      [&](int code, int) {
        EXPECT_EQ(code, kGood) << said();
        EXPECT_TRUE(IsGood(key_));
        EXPECT_EQ(SetAside(), 1u);
      });
}

TEST_F(RepairBesideAgentsTest, WhatAnAgentHasReadAsDamagedIsNotSetAsideWhenItIsReplaced) {
  Damage(key_);
  const UniqueFd held = store_->Hold(key_).value();
  ASSERT_TRUE(absl::IsDataLoss(store_->Verify(key_).status()));
  ASSERT_EQ(Repair(), kGood);
  EXPECT_TRUE(absl::IsAborted(store_->Quarantine(key_, held)));
  EXPECT_TRUE(IsGood(key_));
}

TEST_F(RepairTest, StoppedItLeavesNothingHalf) {
  Damage(key_);
  int calls = 0;
  for (int code = kStopped; code != kGood; ++calls) {
    std::atomic<int> asked = 0;
    stop_ = [&asked, calls] { return asked++ >= calls; };
    code = Repair({"42.3"});
    ASSERT_TRUE(code == kGood || code == kStopped) << said();
    EXPECT_EQ(CountEntries(Staging()), 0u);
    if (code == kGood) break;
    EXPECT_TRUE(SetAside() == 0u || IsGood(key_)) << "it is set aside when the other is whole";
  }
  EXPECT_GE(calls, 3);
}

}  // namespace
}  // namespace siding::store
