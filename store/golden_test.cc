// Images that an older siding has made, byte for byte, are read by this one.
#include "gmock/gmock.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::ElementsAre;

const ImageKey kGolden{CheckpointId("42.3"), 0};

std::string FolderOf(int version) {
  return std::string(SIDING_SOURCE_DIR) + "/store/testdata/version" + std::to_string(version);
}

std::unique_ptr<const ImageStore> OfVersion(int version) {
  return InspectDirectoryStore(FolderOf(version)).value();
}

TEST(GoldenTest, Version1IsListed) { EXPECT_THAT(OfVersion(1)->List().value(), ElementsAre(kGolden)); }

TEST(GoldenTest, Version1Verifies) {
  const Manifest manifest = OfVersion(1)->Verify(kGolden).value();
  EXPECT_EQ(manifest.created, FromMicros(1'767'225'600'250'000));
  EXPECT_EQ(manifest.TotalSize(), Bytes{517});
  EXPECT_EQ(manifest.metadata.at("uid"), "1000");
}

TEST(GoldenTest, LookingChangesNothing) {
  const auto store = OfVersion(1);
  EXPECT_FALSE(std::filesystem::exists(FolderOf(1) + "/staging"));
}

TEST(GoldenTest, Version2Verifies) {
  const Manifest manifest = OfVersion(2)->Verify(kGolden).value();
  EXPECT_EQ(manifest.encryption_key, "4cbe82db8ebb3e25");
}

TEST(GoldenTest, Version3SharesAFile) {
  const Manifest manifest = OfVersion(3)->Verify({CheckpointId("42.4"), 0}).value();
  EXPECT_EQ(manifest.TotalSize(), Bytes{517});
  EXPECT_EQ(manifest.NewSize(), Bytes{5});
}

class GoldenDecryptionTest : public FolderTest {};

TEST_F(GoldenDecryptionTest, Version2HoldsWhatVersion1Holds) {
  std::filesystem::copy(FolderOf(2), folder_ + "/store", std::filesystem::copy_options::recursive);
  const auto key = ParseSecretKey(ReadFile(FolderOf(2) + "/image.key").value()).value();
  const auto store = OpenDirectoryStore(folder_ + "/store", {.keys = std::make_shared<KeyRing>(key),
                                                             .plain_folder = folder_ + "/plain"})
                         .value();
  ASSERT_TRUE(store->Decrypt(kGolden, folder_ + "/out").ok());
  for (const std::string file : {"/core-1.img", "/pages-1.img"})
    EXPECT_EQ(ReadFile(folder_ + "/out" + file).value(),
              ReadFile(FolderOf(1) + "/images/42.3/0" + file).value());
}

}  // namespace
}  // namespace siding::store
