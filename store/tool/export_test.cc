// An image as CRIU's own files: whole, plain, secret; all of it or nothing.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "agent/memory/pagemap.h"
#include "gmock/gmock.h"
#include "store/manifest.h"
#include "store/parents.h"
#include "store/secret_key.h"
#include "store/tool/tool_fixture.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kMemoryAt = 0x7f0000000000;

class ExportTest : public ToolTest {
 protected:
  ExportTest() { Put(key_); }

  int Export(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"export", folder_, "42.3", "0", to_};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  std::string Exported(const std::string& name) const { return ReadFile(to_ + "/" + name).value(); }
  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  static PageRun Run1(int page, uint32_t flags) {
    return {kMemoryAt + static_cast<uint64_t>(page) * PageSize(), 1, flags};
  }
  static std::string Page(unsigned content) { return Pattern(PageSize(), content); }
  // In the place of key_'s image: one whose second page is in its parent.
  void PutWithParent() {
    ASSERT_TRUE(store_->Delete(key_).ok());
    const auto draft = BeginWith(key_);
    const auto put = [&](const std::string& name, const std::string& content) {
      ASSERT_TRUE(WriteAt(draft->path() + "/" + name, content));
    };
    put("pagemap-7.img", PagemapText({107, true, {Run1(0, kPagePresent), Run1(1, kPageInParent)}}));
    put("pages-107.img", Page(1));
    put("parent-1.pagemap-7.img", PagemapText({107, true, {{kMemoryAt, 2, kPagePresent}}}));
    put("parent-1.pages-107.img", Page(8) + Page(2));
    put("inventory.img", "inventory");
    ASSERT_TRUE(draft->Seal({{"unused_bytes", "0"}}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  void ExpectNothingIsLeft() const {
    EXPECT_FALSE(fs::exists(to_));
    EXPECT_TRUE(store_->Verify(key_).ok());
  }

  const std::string to_ = folder_ + "-exported";
  ~ExportTest() override { fs::remove_all(to_); }
};

TEST_F(ExportTest, FilesAreThoseOfTheImage) {
  EXPECT_EQ(Export(), kGood) << said();
  EXPECT_EQ(Exported("core-1.img"), "content");
}

TEST_F(ExportTest, ThereIsNoManifest) {
  ASSERT_EQ(Export(), kGood);
  EXPECT_EQ(CountEntries(to_), 1u);
}

TEST_F(ExportTest, PagesOfParentsAreInItsOwn) {
  PutWithParent();
  ASSERT_EQ(Export(), kGood) << said();
  EXPECT_EQ(Exported("pages-107.img"), Page(1) + Page(2));
  EXPECT_EQ(ParsePagemap(Exported("pagemap-7.img")).value().Present(), 2u);
}

TEST_F(ExportTest, OfParentsNoFileIsLeft) {
  PutWithParent();
  ASSERT_EQ(Export(), kGood);
  EXPECT_EQ(CountEntries(to_), 4u);
}

TEST_F(ExportTest, PagesOfTheLastOfAllParentsAreAsWell) {
  ASSERT_TRUE(store_->Delete(key_).ok());
  const auto draft = BeginWith(key_);
  for (int up = 0; up <= kMostParents; ++up) {
    const bool last = up == kMostParents;
    const std::string pagemap = PagemapText({107, true, {Run1(0, last ? kPagePresent : kPageInParent)}});
    ASSERT_TRUE(WriteAt(draft->path() + "/" + NameOf({up, "pagemap-7.img"}), pagemap));
    ASSERT_TRUE(WriteAt(draft->path() + "/" + NameOf({up, "pages-107.img"}), last ? Page(3) : ""));
  }
  ASSERT_TRUE(draft->Seal({{"unused_bytes", "0"}}).ok() && draft->Commit().ok());
  EXPECT_EQ(Export(), kGood) << said();
  EXPECT_EQ(Exported("pages-107.img"), Page(3));
}

TEST_F(ExportTest, NobodyElseMayReadIt) {
  const mode_t before = umask(0);
  PutWithParent();
  EXPECT_EQ(Export(), kGood);
  umask(before);
  EXPECT_EQ(ModeOf(to_), 0700u);
  for (const auto& file : fs::directory_iterator(to_)) EXPECT_EQ(ModeOf(file.path()), 0600u) << file.path();
}

// Else whoever edits what was exported would damage the tier.
TEST_F(ExportTest, NoFileIsTheTiersOwn) {
  PutWithParent();
  ASSERT_EQ(Export(), kGood);
  for (const auto& file : fs::directory_iterator(to_)) EXPECT_EQ(fs::hard_link_count(file.path()), 1u);
}

TEST_F(ExportTest, AnEmptyFolderIsTaken) {
  ASSERT_TRUE(fs::create_directory(to_));
  EXPECT_EQ(Export(), kGood) << said();
  EXPECT_EQ(ModeOf(to_), 0700u);
}

TEST_F(ExportTest, ASlashAtTheEndIsNoMatter) {
  EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + "/"}), kGood) << said();
}

TEST_F(ExportTest, AFolderThatIsNotEmptyStaysAsItIs) {
  ASSERT_TRUE(fs::create_directory(to_));
  ASSERT_TRUE(WriteAt(to_ + "/mine", "x"));
  EXPECT_EQ(Export(), kUsage);
  EXPECT_THAT(said(), HasSubstr(to_ + " is not empty"));
  EXPECT_EQ(CountEntries(to_), 1u);
}

TEST_F(ExportTest, AFileIsNoFolder) {
  ASSERT_TRUE(WriteAt(to_, "x"));
  EXPECT_EQ(Export(), kUsage);
  EXPECT_THAT(said(), HasSubstr(to_ + " is not a folder"));
}

TEST_F(ExportTest, ALinkIsNoFolder) {
  ASSERT_TRUE(fs::create_directory(folder_ + "/elsewhere"));
  fs::create_directory_symlink(folder_ + "/elsewhere", to_);
  EXPECT_EQ(Export(), kUsage);
  EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere"));
}

TEST_F(ExportTest, NorIsItWithADotBehindIt) {
  ASSERT_TRUE(fs::create_directory(folder_ + "/elsewhere"));
  fs::create_directory_symlink(folder_ + "/elsewhere", to_);
  for (const char* const end : {"/", "/.", "/./", "//./."}) {
    EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + end}), kUsage) << end;
    EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere")) << end;
  }
}

TEST_F(ExportTest, AFolderInWhichOthersMayRenameItIsRefused) {
  ASSERT_TRUE(fs::create_directory(to_));
  fs::permissions(to_, fs::perms(0777));
  for (const char* const name : {"/mine", "/deep/mine"}) {
    fs::create_directory(to_ + "/deep");
    EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + name}), kUsage);
    EXPECT_THAT(said(), HasSubstr(to_ + " can be written by others"));
    EXPECT_FALSE(fs::exists(to_ + name));
  }
  fs::permissions(to_, fs::perms(01777));
  EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + "/mine"}), kGood) << said();
}

TEST_F(ExportTest, SoIsOneThatBelongsToAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a folder away";
  ASSERT_TRUE(fs::create_directory(to_));
  ASSERT_EQ(chown(to_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + "/mine"}), kUsage);
  EXPECT_THAT(said(), HasSubstr(to_ + " belongs to uid 65534"));
  EXPECT_TRUE(fs::is_empty(to_));
}

// Whatever an agent does meanwhile.
TEST_F(ExportTest, FilesOfTwoImagesAreNotMixed) {
  const auto put = [&](const std::string& content) {
    EXPECT_TRUE(store_->Delete(key_).ok());
    const auto draft = BeginWith(key_, content);
    EXPECT_TRUE(WriteAt(draft->path() + "/inventory.img", content));
    EXPECT_TRUE(draft->Seal({}).ok() && draft->Commit().ok());
  };
  for (int at = 0, asked = at + 1; asked > at; ++at) {
    put("older");
    asked = 0;
    stop_ = [&] {
      if (asked++ == at) put("newer");
      return false;
    };
    const int code = Export();
    if (code != kGood) {
      EXPECT_EQ(code, kNotGood) << said();
      EXPECT_FALSE(fs::exists(to_));
      continue;
    }
    EXPECT_EQ(Exported("core-1.img"), Exported("inventory.img"));
    fs::remove_all(to_);
  }
}

TEST_F(ExportTest, AFolderWithoutAParentIsNotMade) {
  EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + "/deep/deeper"}), kUsage);
  EXPECT_THAT(said(), HasSubstr(to_ + "/deep: No such file or directory"));
}

TEST_F(ExportTest, TheTierIsNoPlaceForIt) {
  for (const std::string& inside :
       {folder_ + "/out", folder_ + "/images/42.3/7", folder_ + "/images/../out"}) {
    EXPECT_EQ(Run({"export", folder_, "42.3", "0", inside}), kUsage);
    EXPECT_THAT(said(), HasSubstr("is in the tier " + folder_));
    EXPECT_FALSE(fs::exists(inside));
  }
}

TEST_F(ExportTest, NorIsItByAnotherName) {
  fs::create_directory_symlink(folder_, to_);
  EXPECT_EQ(Run({"export", folder_, "42.3", "0", to_ + "/out"}), kUsage);
  EXPECT_THAT(said(), HasSubstr("is in the tier " + folder_));
}

TEST_F(ExportTest, ADamagedImageIsNotExported) {
  Damage(key_);
  EXPECT_EQ(Export(), kNotGood);
  EXPECT_THAT(said(), HasSubstr("core-1.img is damaged"));
  EXPECT_FALSE(fs::exists(to_));
}

TEST_F(ExportTest, AnImageThatContradictsItselfIsNotExported) {
  ASSERT_TRUE(store_->Delete(key_).ok());
  const auto draft = BeginWith(key_);
  ASSERT_TRUE(WriteAt(draft->path() + "/pagemap-7.img", PagemapText({107, true, {Run1(0, kPageInParent)}})));
  ASSERT_TRUE(WriteAt(draft->path() + "/pages-107.img", ""));
  ASSERT_TRUE(draft->Seal({}).ok());
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(Export(), kNotGood);
  ExpectNothingIsLeft();
}

TEST_F(ExportTest, RanksThatThereAreAreNamed) {
  EXPECT_EQ(Run({"export", folder_, "42.3", "5", to_}), kUsage);
  EXPECT_THAT(said(), HasSubstr("there is no image 42.3 rank 5 in " + folder_ +
                                "; of this checkpoint there is rank 0"));
}

TEST_F(ExportTest, ARankIsANumber) { EXPECT_EQ(Run({"export", folder_, "42.3", "first", to_}), kUsage); }

TEST_F(ExportTest, ItEndsSoonWhenItIsToldToAndLeavesNothing) {
  PutWithParent();
  int calls = 0;
  for (int code = kStopped; code != kGood; ++calls) {
    int asked = 0;
    stop_ = [&asked, calls] { return asked++ >= calls; };
    code = Export();
    ASSERT_TRUE(code == kGood || code == kStopped) << said();
    if (code == kStopped) ExpectNothingIsLeft();
  }
  EXPECT_GE(calls, 8) << "while it is read, put together and sent to the disk";
}

TEST_F(ExportTest, AnEmptyFolderStaysAsItWasIfItIsStopped) {
  ASSERT_TRUE(fs::create_directory(to_));
  fs::permissions(to_, fs::perms(0750));
  stop_ = [] { return true; };
  EXPECT_EQ(Export(), kStopped);
  EXPECT_EQ(ModeOf(to_), 0750u);
  EXPECT_TRUE(fs::is_empty(to_));
}

TEST_F(ExportTest, AnErrorOfTheDiskIsSaidAndLeavesNothing) {
  PutWithParent();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little = {static_cast<rlim_t>(PageSize()), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const int code = Export();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, kNotGood);
  EXPECT_THAT(said(), testing::AllOf(HasSubstr("nothing is left in " + to_),
                                     HasSubstr("pages-107.img: File too large")));
  ExpectNothingIsLeft();
}

TEST_F(ExportTest, ThatThereIsNoRoomIsSaidBeforeAnythingIsRead) {
  Manifest manifest = store_->Read(key_).value();
  manifest.files[0].size = Bytes{int64_t{1} << 60};
  const std::string file = store_->Path(key_).value() + "/manifest.json";
  ASSERT_TRUE(fs::remove(file));
  ASSERT_TRUE(WriteAt(file, ManifestToText(manifest).value()));
  EXPECT_EQ(Export(), kNotGood);
  EXPECT_THAT(said(), HasSubstr(" free, and 1024.0 PiB are needed"));
  EXPECT_FALSE(fs::exists(to_));
}

TEST_F(ExportTest, HowFarItIsIsSaidOnStderrOnly) {
  EXPECT_EQ(Export({"--progress"}), kGood);
  EXPECT_THAT(out_.str(), HasSubstr("42.3 rank 0: 7 B in " + to_));
  EXPECT_EQ(out_.str().find('\r'), std::string::npos);
}

class ExportEncryptedTest : public ExportTest {
 protected:
  ExportEncryptedTest() {
    EXPECT_TRUE(store_->Delete(key_).ok());
    const SecretKey key = ParseSecretKey(std::string(64, '1')).value();
    store_ = OpenDirectoryStore(folder_,
                                {.keys = std::make_shared<KeyRing>(key), .plain_folder = folder_ + "/plain"})
                 .value();
    Put(key_);
  }
  std::string KeyFile(char digit) const {
    const std::string folder = folder_ + "/keys-" + digit;
    fs::create_directory(folder);
    EXPECT_TRUE(WriteAt(folder + "/file", std::string(64, digit)));
    return folder + "/file";
  }
};

TEST_F(ExportEncryptedTest, FilesAreDecrypted) {
  EXPECT_EQ(Export({"--key-file", KeyFile('1')}), kGood) << said();
  EXPECT_EQ(Exported("core-1.img"), "content");
  EXPECT_EQ(CountEntries(to_), 1u);
}

TEST_F(ExportEncryptedTest, PagesOfParentsAreInItsOwn) {
  PutWithParent();
  ASSERT_EQ(Export({"--key-file", KeyFile('1')}), kGood) << said();
  EXPECT_EQ(Exported("pages-107.img"), Page(1) + Page(2));
  EXPECT_EQ(Exported("core-1.img"), "content");
  EXPECT_EQ(CountEntries(to_), 4u);
}

TEST_F(ExportEncryptedTest, NobodyElseMayReadThem) {
  ASSERT_EQ(Export({"--key-file", KeyFile('1')}), kGood);
  EXPECT_EQ(ModeOf(to_ + "/core-1.img"), 0600u);
}

TEST_F(ExportEncryptedTest, WithoutAKeyItSaysWhichIsNeeded) {
  EXPECT_EQ(Export(), kUsage);
  EXPECT_THAT(said(), HasSubstr("is encrypted with key " + store_->Read(key_)->encryption_key +
                                "; expected --key-file"));
  ExpectNothingIsLeft();
}

TEST_F(ExportEncryptedTest, AnotherKeyIsOfNoUse) {
  EXPECT_EQ(Export({"--key-file", KeyFile('2')}), kUsage);
  EXPECT_THAT(said(), HasSubstr("which is neither in --key-file nor in a *.image-key beside it"));
}

TEST_F(ExportEncryptedTest, AKeyFileThatIsNotThereIsNamed) {
  EXPECT_EQ(Export({"--key-file", folder_ + "/none"}), kUsage);
  EXPECT_THAT(said(), HasSubstr("--key-file: " + folder_ + "/none"));
}

TEST_F(ExportEncryptedTest, ItEndsSoonWhenItIsToldToAndLeavesNothing) {
  const std::string key_file = KeyFile('1');
  for (int calls = 0, code = kStopped; code != kGood; ++calls) {
    std::atomic<int> asked = 0;
    stop_ = [&asked, calls] { return asked++ >= calls; };
    code = Export({"--key-file", key_file});
    ASSERT_TRUE(code == kGood || code == kStopped) << said();
    if (code == kStopped) ExpectNothingIsLeft();
  }
}

}  // namespace
}  // namespace siding::store
