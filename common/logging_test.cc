#include "common/logging.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(OneLogLine, OrdinaryTextIsItself) {
  EXPECT_EQ(OneLogLine("job 7 'Mühle' of ada"), "job 7 'Mühle' of ada");
}

TEST(OneLogLine, NobodyBeginsALineOfHisOwn) {
  EXPECT_EQ(OneLogLine("job 'x\n2026-01-01T00:00:00 sidingd info all is well'"),
            "job 'x\\n2026-01-01T00:00:00 sidingd info all is well'");
}

TEST(OneLogLine, TerminalsAreToldNothing) {
  EXPECT_EQ(OneLogLine("\x1b[2J\x07\t\x7f"), "\\x1b[2J\\x07\\t\\x7f");
}

TEST(OneLogLine, NobodyTurnsItRound) {
  EXPECT_EQ(OneLogLine("a\u202Eb\u2066c\u200Fd\u061Ce"), "a\\u202eb\\u2066c\\u200fd\\u061ce");
}
TEST(OneLogLine, NothingIsThereThatIsNotSeen) {
  EXPECT_EQ(OneLogLine("a\u200Bb\uFEFFc\u2060d\U000E0041"), "a\\u200bb\\ufeffc\\u2060d\\ue0041");
}
TEST(OneLogLine, BytesThatAreNoTextStay) { EXPECT_EQ(OneLogLine("\xff\xe2\x80"), "\xff\xe2\x80"); }

TEST(OneLogLine, NorByTheSecondSetOfControls) { EXPECT_EQ(OneLogLine("a\xc2\x9bz"), "a\\xc2\\x9bz"); }

}  // namespace
}  // namespace siding
