#include "cli/bundle/bundle.h"

#include <stdlib.h>

#include <filesystem>

#include "common/files.h"
#include "common/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const Time kNow = FromMicros(1'796'000'000'000'000);

TEST(ContentsOf, SaysWhatEachIsAndWhatIsMissing) {
  const std::string text =
      ContentsOf({{"a.json", "the nodes", "12345", ""}, {"log.txt", "the log", "", "no journalctl"}}, kNow);
  EXPECT_THAT(text, HasSubstr("a.json                                  5 B  the nodes\n"));
  EXPECT_THAT(text, HasSubstr("missing  the log: no journalctl\n"));
}

class PackTest : public testing::Test {
 protected:
  PackTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~PackTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = "/tmp/siding-bundle-XXXXXX";
};

// By the tar that people have.
TEST_F(PackTest, TarUnpacksIt) {
  const std::string large(100'000, 'x'), block(512, 'y');
  const std::string packed = Pack("bundle",
                                  {{"controller/large.txt", "", large, ""},
                                   {"block.txt", "", block, ""},
                                   {"empty.txt", "", "", ""},
                                   {"gone.txt", "", "", "why"}},
                                  kNow);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/b.tar.gz", packed).ok());
  const auto unpacked =
      RunProgram({"tar", "--extract", "--gzip", "--file", folder_ + "/b.tar.gz", "--directory", folder_},
                 std::chrono::minutes(5));
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  EXPECT_EQ(unpacked->exit_code, 0) << unpacked->errors;
  EXPECT_EQ(unpacked->errors, "");
  EXPECT_EQ(ReadFile(folder_ + "/bundle/controller/large.txt").value(), large);
  EXPECT_EQ(ReadFile(folder_ + "/bundle/block.txt").value(), block);
  EXPECT_EQ(ReadFile(folder_ + "/bundle/empty.txt").value(), "");
  EXPECT_THAT(ReadFile(folder_ + "/bundle/README.txt").value(), HasSubstr("gone.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/bundle/gone.txt"));
}

TEST(WithoutSecretUrls, OnlyHostsAreLeft) {
  EXPECT_EQ(WithoutSecretUrls("url: https://hooks.example.org/T0/B0/token\nname: x\n"),
            "url: https://hooks.example.org/(left out)\nname: x\n");
  EXPECT_EQ(WithoutSecretUrls("{url: 'https://ada:pw@h:8443?key=1', a: b}"),
            "{url: 'https://(left out)@h:8443/(left out)', a: b}");
  EXPECT_EQ(WithoutSecretUrls("a: https://one, b: http://two/x"), "a: https://one, b: http://two/(left out)");
  EXPECT_EQ(WithoutSecretUrls("url: https://h/x?a=1,2&b={3}'4\n"), "url: https://h/(left out)\n");
  EXPECT_EQ(WithoutSecretUrls("url: \"https://h/x\"\n- {u: https://h/y}\n"),
            "url: \"https://h/(left out)\"\n- {u: https://h/(left out)}\n");
  EXPECT_EQ(WithoutSecretUrls("listen: 0.0.0.0:7433\nodd: ://"), "listen: 0.0.0.0:7433\nodd: ://");
}

TEST(EndOf, BeginsWithALine) {
  EXPECT_EQ(EndOf("short", 10), "short");
  EXPECT_EQ(EndOf("first\nsecond\nthird\n", 10), "(only the end)\nthird\n");
  EXPECT_THAT(EndOf(std::string(100, 'x'), 10), Not(HasSubstr("x")));
}

}  // namespace
}  // namespace siding::cli
