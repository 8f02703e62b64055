#include "store/secret_key.h"

#include <stdlib.h>

#include "gmock/gmock.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::HasSubstr;

const std::string kHex = std::string(62, '0') + "a1";
const std::string kOtherHex = std::string(62, '0') + "b2";

class KeyRingTest : public FolderTest {
 protected:
  std::string Write(const std::string& name, const std::string& text, int mode = 0400) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, text, mode).ok());
    return path;
  }
  static std::string WhyNot(const std::string& path) {
    return std::string(KeyRing::Load(path).status().message());
  }
};

TEST_F(KeyRingTest, KeysHaveNames) {
  const KeyRing ring = KeyRing::Load(Write("image.key", kHex + "\n")).value();
  EXPECT_EQ(ring.current().Id(), ParseSecretKey(kHex)->Id());
  EXPECT_NE(ring.current().Id(), ParseSecretKey(kOtherHex)->Id());
  EXPECT_EQ(ring.current().Id().size(), 16u);
}

TEST_F(KeyRingTest, OlderKeysLieBesideIt) {
  Write("2025.image-key", kOtherHex);
  Write("node.key", "something else");
  const KeyRing ring = KeyRing::Load(Write("2026.image-key", kHex)).value();
  EXPECT_EQ(ring.size(), 2u);
  EXPECT_TRUE(ring.Find(ParseSecretKey(kOtherHex)->Id()).ok());
  EXPECT_TRUE(absl::IsNotFound(ring.Find("0123456789abcdef").status()));
}

TEST_F(KeyRingTest, FileThatOthersMayReadIsRefused) {
  EXPECT_THAT(WhyNot(Write("image.key", kHex, 0440)), HasSubstr("image.key has mode 0440"));
}

TEST_F(KeyRingTest, OlderFileThatOthersMayReadIsRefused) {
  Write("2025.image-key", kOtherHex, 0644);
  EXPECT_THAT(WhyNot(Write("image.key", kHex)), HasSubstr("2025.image-key has mode 0644"));
}

TEST_F(KeyRingTest, LinkIsRefused) {
  std::filesystem::create_symlink(Write("image.key", kHex), folder_ + "/link");
  EXPECT_THAT(WhyNot(folder_ + "/link"), HasSubstr("link is not a regular file"));
}

TEST_F(KeyRingTest, MissingFileIsNamed) {
  EXPECT_THAT(WhyNot(folder_ + "/none"), HasSubstr(folder_ + "/none"));
}

TEST_F(KeyRingTest, WhatIsNoKeyIsRefused) {
  for (const std::string& text :
       {std::string(), kHex.substr(1), kHex + "0", kHex + "\n\n", std::string(64, 'g'), kHex + " x"})
    EXPECT_THAT(WhyNot(Write("image.key", text)), HasSubstr("image.key: expected 64 hex digits")) << text;
}

TEST_F(KeyRingTest, NameWithoutASlashIsACredential) {
  Write("image.key", kHex);
  ASSERT_EQ(setenv("CREDENTIALS_DIRECTORY", folder_.c_str(), 1), 0);
  EXPECT_TRUE(KeyRing::Load("image.key").ok());
  unsetenv("CREDENTIALS_DIRECTORY");
}

}  // namespace
}  // namespace siding::store
