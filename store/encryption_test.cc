// Encrypted images: nothing plain is left on the disk, and only the right key gives the files back.
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "store/cipher.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::HasSubstr;

constexpr char kPlain[] = "what the job had in memory";

SecretKey Key(char digit) { return ParseSecretKey(std::string(64, digit)).value(); }

class EncryptionTest : public FolderTest {
 protected:
  EncryptionTest() : store_(OpenWith(Key('1'))) {}

  std::unique_ptr<ImageStore> OpenWith(const SecretKey& key) const {
    return OpenDirectoryStore(folder_ + "/store",
                              {.keys = std::make_shared<KeyRing>(key), .plain_folder = folder_ + "/plain"})
        .value();
  }
  void Put(ImageStore& store, const std::string& pages = Pattern(200'000)) {
    auto draft = store.Begin(key_).value();
    ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", kPlain));
    ASSERT_TRUE(WriteAt(draft->path() + "/pages-1.img", pages));
    ASSERT_TRUE(draft->Seal({{"pid", "1"}}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  // All that lies below the folder, as one text.
  static std::string Everything(const std::string& folder) {
    std::string text;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) text += ReadFile(entry.path()).value();
    return text;
  }
  std::string Decrypted(const std::string& name) const { return ReadFile(folder_ + "/out/" + name).value(); }

  const ImageKey key_{CheckpointId("42.3"), 0};
  std::unique_ptr<ImageStore> store_;
};

TEST_F(EncryptionTest, FilesComeBack) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{131072}}) {
    Put(*store_, Pattern(size));
    EXPECT_EQ(store_->Decrypt(key_, folder_ + "/out").value(), folder_ + "/out");
    EXPECT_EQ(Decrypted("core-1.img"), kPlain);
    EXPECT_EQ(Decrypted("pages-1.img"), Pattern(size)) << size;
    ASSERT_TRUE(store_->Delete(key_).ok());
  }
}

TEST_F(EncryptionTest, NothingPlainIsLeft) {
  Put(*store_);
  EXPECT_THAT(Everything(folder_), testing::Not(HasSubstr(kPlain)));
  EXPECT_THAT(Everything(folder_), testing::Not(HasSubstr(Pattern(64))));
  EXPECT_EQ(CountEntries(folder_ + "/plain/staging"), 0u);
}

TEST_F(EncryptionTest, PlainFilesOfADraftLieInTheFolderForThem) {
  auto draft = store_->Begin(key_).value();
  EXPECT_THAT(draft->path(), HasSubstr(folder_ + "/plain/"));
  struct stat info = {};
  ASSERT_EQ(stat(draft->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  draft.reset();
  EXPECT_EQ(CountEntries(folder_ + "/plain/staging"), 0u);
}

TEST_F(EncryptionTest, VerifyNeedsNoKey) {
  Put(*store_);
  const auto store = InspectDirectoryStore(folder_ + "/store").value();
  const Manifest manifest = store->Verify(key_).value();
  EXPECT_EQ(manifest.encryption_key, Key('1').Id());
  EXPECT_EQ(manifest.metadata.at("pid"), "1");
}

TEST_F(EncryptionTest, WithoutAKeyTheImageIsNotDecrypted) {
  Put(*store_);
  const auto store = InspectDirectoryStore(folder_ + "/store").value();
  const absl::Status status = store->Decrypt(key_, folder_ + "/out").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is encrypted with key " + Key('1').Id()));
}

TEST_F(EncryptionTest, WhoOnlyLooksMayHaveAKey) {
  Put(*store_);
  const auto store = InspectDirectoryStore(folder_ + "/store", std::make_shared<KeyRing>(Key('1'))).value();
  EXPECT_TRUE(store->Decrypt(key_, folder_ + "/out").ok());
  EXPECT_EQ(Decrypted("core-1.img"), kPlain);
}

TEST_F(EncryptionTest, CalledOffItLeavesNothing) {
  Put(*store_);
  std::atomic<int> asked = 0;
  const auto stop = [&] { return ++asked > 3; };
  EXPECT_TRUE(absl::IsCancelled(store_->Decrypt(key_, folder_ + "/out", stop).status()));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(EncryptionTest, WithAnotherKeyNothingIsMade) {
  Put(*store_);
  const absl::Status status = OpenWith(Key('2'))->Decrypt(key_, folder_ + "/out").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("not among those that are configured"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(EncryptionTest, ImageThatIsNotEncryptedStaysWhereItIs) {
  Put(*OpenDirectoryStore(folder_ + "/store").value());
  EXPECT_EQ(store_->Decrypt(key_, folder_ + "/out").value(), store_->Path(key_).value());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(EncryptionTest, PlainFilesOfADeadWriterAreSwept) {
  // As a dead writer leaves them: no lock file.
  const auto draft = store_->Begin(key_).value();
  const std::string name = std::filesystem::path(draft->path()).filename();
  const std::string left = folder_ + "/plain/staging/9.9.0" + name.substr(name.rfind('.'));
  std::filesystem::create_directory(left);
  OpenWith(Key('1'));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(draft->path())) << "the live one's stay";
}

class CipherTest : public FolderTest {
 protected:
  CipherTest() : from_(folder_ + "/plain"), to_(folder_ + "/sealed"), back_(folder_ + "/back") {
    EXPECT_TRUE(WriteAt(from_, Pattern(100'000)));
    EXPECT_TRUE(EncryptFile(RealDisk(), from_, to_, "42.3/0/a", Key('1')).ok());
  }
  void ExpectRefused(const std::string& name, const SecretKey& key) const {
    const absl::Status status = DecryptFile(RealDisk(), to_, back_, name, key);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_FALSE(std::filesystem::exists(back_)) << "nothing is left";
  }
  const std::string from_, to_, back_;
};

TEST_F(CipherTest, FileUnderAnotherNameIsRefused) { ExpectRefused("42.3/1/a", Key('1')); }

TEST_F(CipherTest, AnotherKeyIsRefused) { ExpectRefused("42.3/0/a", Key('2')); }

TEST_F(CipherTest, TruncatedFileIsRefused) {
  const auto whole = std::filesystem::file_size(to_);
  for (const auto size :
       {whole - 1, uintmax_t{24 + 65536 + 17}, uintmax_t{24}, uintmax_t{23}, uintmax_t{0}}) {
    std::filesystem::resize_file(to_, size);
    ExpectRefused("42.3/0/a", Key('1'));
  }
}

TEST_F(CipherTest, AppendedByteIsRefused) {
  ASSERT_TRUE(WriteAt(to_, "x", static_cast<off_t>(std::filesystem::file_size(to_))));
  ExpectRefused("42.3/0/a", Key('1'));
}

TEST_F(CipherTest, ChangedByteIsRefused) {
  for (const off_t at : {0, 23, 24, 70'000}) {
    const std::string byte = ReadFile(to_).value().substr(static_cast<size_t>(at), 1);
    ASSERT_TRUE(WriteAt(to_, std::string(1, static_cast<char>(byte[0] ^ 1)), at));
    ExpectRefused("42.3/0/a", Key('1'));
    ASSERT_TRUE(WriteAt(to_, byte, at));
  }
}

TEST_F(CipherTest, SameFileLooksDifferentEachTime) {
  ASSERT_TRUE(EncryptFile(RealDisk(), from_, folder_ + "/again", "42.3/0/a", Key('1')).ok());
  EXPECT_NE(ReadFile(to_).value(), ReadFile(folder_ + "/again").value());
}

}  // namespace
}  // namespace siding::store
