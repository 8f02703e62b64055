#include "store/manifest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::store {
namespace {

using testing::HasSubstr;

constexpr char kSum[] = "xxh3:000102030405060708090a0b0c0d0e0f";

Manifest Example() {
  return {{CheckpointId("42.3"), 1},
          "",
          FromMicros(1'767'225'600'250'000),
          {{"core-1.img", Bytes{617}, kSum}, {"pages-1.img", Bytes{5'000'000'000}, kSum}},
          {{"pid", "1"}, {"quoted", "a \"b\"\n\\ \"checksum\": \"xxh3:0\""}}};
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What the parser says about the example with one thing changed.
std::string Complaint(const std::string& from, const std::string& to) {
  const absl::Status status = ParseManifest(Replaced(ManifestToText(Example()).value(), from, to)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  return std::string(status.message());
}

TEST(ManifestTest, RoundTrip) {
  const Manifest manifest = ParseManifest(ManifestToText(Example()).value()).value();
  EXPECT_EQ(manifest.key, Example().key);
  EXPECT_EQ(manifest.created, Example().created);
  EXPECT_EQ(manifest.metadata, Example().metadata);
  ASSERT_EQ(manifest.files.size(), 2u);
  EXPECT_EQ(manifest.files[1].name, "pages-1.img");
  EXPECT_EQ(manifest.files[1].size, Bytes{5'000'000'000});
  EXPECT_EQ(manifest.files[1].checksum, kSum);
}

TEST(ManifestTest, EncryptedRoundTrip) {
  Manifest manifest = Example();
  manifest.encryption_key = "0123456789abcdef";
  const std::string text = ManifestToText(manifest).value();
  EXPECT_THAT(text, HasSubstr("\"version\": 2"));
  EXPECT_EQ(ParseManifest(text)->encryption_key, manifest.encryption_key);
}

TEST(ManifestTest, SharingRoundTrip) {
  Manifest manifest = Example();
  manifest.files[1].shared = true;
  const std::string text = ManifestToText(manifest).value();
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  const Manifest read = ParseManifest(text).value();
  EXPECT_FALSE(read.files[0].shared);
  EXPECT_TRUE(read.files[1].shared);
  EXPECT_THAT(ParseManifest(Replaced(text, "\"shared\": true", "\"shared\": 1")).status().message(),
              HasSubstr("files[1].shared: expected true or false"));
}

TEST(ManifestTest, PlainImageStaysReadableForOlderPrograms) {
  EXPECT_THAT(ManifestToText(Example()).value(), HasSubstr("\"version\": 1"));
}

TEST(ManifestTest, UnknownCipher) {
  Manifest manifest = Example();
  manifest.encryption_key = "0123456789abcdef";
  const std::string text = Replaced(ManifestToText(manifest).value(), "xchacha20", "rot13");
  EXPECT_THAT(std::string(ParseManifest(WithOwnChecksum(text)).status().message()),
              HasSubstr("encryption.cipher"));
}

TEST(ManifestTest, TruncatedText) {
  const std::string text = ManifestToText(Example()).value();
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(text.substr(0, text.size() / 2)).status()));
}

TEST(ManifestTest, EmptyText) {
  EXPECT_THAT(std::string(ParseManifest("").status().message()), HasSubstr("expected a JSON object"));
}

TEST(ManifestTest, NewerVersionIsNotDamage) {
  const std::string text = Replaced(ManifestToText(Example()).value(), "\"version\": 1", "\"version\": 9");
  const absl::Status status = ParseManifest(WithOwnChecksum(text)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("written by a newer siding (9, this one knows"));
}

TEST(ManifestTest, FlippedBitInTheVersionIsNoNewerSiding) {
  EXPECT_THAT(Complaint("\"version\": 1", "\"version\": 9"), HasSubstr("changed after it was written"));
}

TEST(ManifestTest, EveryFlippedBitIsFound) {
  const std::string good = ManifestToText(Example()).value();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string text = good;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(absl::IsDataLoss(ParseManifest(text).status())) << "bit " << bit;
  }
}

TEST(ManifestTest, EveryTruncationIsFound) {
  const std::string good = ManifestToText(Example()).value();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(ParseManifest(good.substr(0, size)).status())) << size << " bytes";
}

TEST(ManifestTest, SizeThatIsNoNumber) {
  EXPECT_THAT(Complaint("617", "\"617\""), HasSubstr("files[0].size: expected an integer"));
}

TEST(ManifestTest, NegativeSize) { EXPECT_THAT(Complaint("617", "-617"), HasSubstr("files[0].size")); }

TEST(ManifestTest, NameThatLeavesTheFolder) {
  for (const char* name :
       {"../core", "/etc/passwd", "..", ".", "", "a/core-1.img", "core\\u0000", "manifest.json"})
    EXPECT_THAT(Complaint("core-1.img", name), HasSubstr("files[0].name")) << name;
}

TEST(ManifestTest, MissingField) {
  EXPECT_THAT(Complaint("\"created_us\"", "\"made\""), HasSubstr("created_us"));
}

TEST(ManifestTest, MetadataChangedByHand) {
  EXPECT_THAT(Complaint("\"pid\": \"1\"", "\"pid\": \"2\""), HasSubstr("changed after it was written"));
}

TEST(ManifestTest, MetadataThatIsNotText) {
  Manifest manifest = Example();
  manifest.metadata["bad"] = "\xff";
  EXPECT_TRUE(absl::IsInvalidArgument(ManifestToText(manifest).status()));
}

TEST(ManifestTest, SizesThatCannotBeAddedUp) {
  EXPECT_THAT(Complaint("5000000000", "9223372036854775807"), HasSubstr("files[1].size: expected less"));
}

TEST(ManifestTest, RankThatIsNone) {
  EXPECT_THAT(Complaint("\"rank\": 1", "\"rank\": 4294967297"), HasSubstr("rank"));
}

}  // namespace
}  // namespace siding::store
