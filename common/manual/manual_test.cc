#include "common/manual/manual.h"

#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;
using testing::Not;

class ManualTest : public testing::Test {
 protected:
  ManualTest() {
    app_.add_option("--state-dir", folder_, "where it is kept")->capture_default_str()->envname("PLANE_DIR");
    app_.add_flag("-q,--quiet", quiet_, "say nothing");
    CLI::App& fly = *app_.add_subcommand("fly", "begin\n.as a line that begins with a point");
    fly.add_option("to", to_, "a place")->required();
    fly.add_option("by", by_, "on the way");
    AddManual(app_, {"plane", 8, "1.2", "plane.md"});
  }
  std::string Page() const { return ToRoff(app_, {"plane", 8, "1.2", "plane.md"}); }

  CLI::App app_{"a plane"};
  std::string folder_ = "/var/lib", to_;
  std::vector<std::string> by_;
  bool quiet_ = false;
};

TEST_F(ManualTest, BeginsAsAPageDoes) {
  EXPECT_THAT(Page(), HasSubstr(".TH PLANE 8 \"\" \"siding 1.2\" \"siding\"\n.SH NAME\nplane \\- a plane\n"));
}
TEST_F(ManualTest, AnOptionSaysWhatItIsWithoutIt) {
  EXPECT_THAT(Page(), HasSubstr(".TP\n\\fB\\-\\-state\\-dir\\fR \\fITEXT\\fR\n"
                                "where it is kept (default: /var/lib) (in the environment: PLANE_DIR)\n"));
}
TEST_F(ManualTest, AFlagHasNoValue) {
  EXPECT_THAT(Page(), HasSubstr(".TP\n\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nsay nothing\n"));
}
TEST_F(ManualTest, AVerbSaysWhatItNeeds) {
  EXPECT_THAT(Page(),
              HasSubstr(".SS plane fly\n\\fBplane fly\\fR [\\fIOPTION\\fR]... \\fIto\\fR [\\fIby\\fR...]\n"));
}
TEST_F(ManualTest, TextIsNoCommandOfRoffs) { EXPECT_THAT(Page(), HasSubstr("begin\n.br\n\\&.as a line")); }
TEST_F(ManualTest, DoesNotNameItself) { EXPECT_THAT(Page(), Not(HasSubstr("\\-\\-man"))); }
TEST_F(ManualTest, IsPrintedWhateverElseIsMissing) {
  app_.require_subcommand(1);
  const char* const words[] = {"plane", "--man"};
  testing::internal::CaptureStdout();
  EXPECT_THROW(app_.parse(2, words), CLI::Success);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), Page());
}

}  // namespace
}  // namespace siding
