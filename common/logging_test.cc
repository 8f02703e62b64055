#include "common/logging.h"

#include <csignal>

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

TEST(JsonLogLine, HasTheJobThatItBeginsWith) {
  EXPECT_EQ(
      JsonLogLine(FromMicros(1'796'000'000'250'000), "info", "sidingd", "job 7 place: placed on n1"),
      R"({"time":"2026-11-30T00:53:20.250Z","level":"info","program":"sidingd","job":7,"text":"job 7 place: placed on n1"})");
}
TEST(JsonLogLine, OfNoJobThereIsNone) {
  for (const char* text :
       {"listening on /run/siding.sock", "job 0 cordoned: node n2", "job x", "jobs continue to run"})
    EXPECT_EQ(JsonLogLine(Time(), "info", "sidingd", text).find("\"job\":"), std::string::npos) << text;
}
TEST(JsonLogLine, NobodyMakesAFieldOfHisOwn) {
  EXPECT_NE(JsonLogLine(Time(), "info", "sidingd", "named '\",\"level\":\"error'")
                .find(R"(named '\",\"level\":\"error')"),
            std::string::npos);
  EXPECT_NE(JsonLogLine(Time(), "info", "sidingd", "\xff").find("\xEF\xBF\xBD"), std::string::npos);
}

TEST(LogFormat, IsOneOfTwo) {
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseLogFormat("xml").status()));
}

TEST(TurnLogLevel, GoesUpAndBack) {
  ASSERT_TRUE(SetUpLogging("turned", "warning").ok());
  EXPECT_FALSE(TurnLogLevel(SIGHUP));
  EXPECT_TRUE(TurnLogLevel(SIGUSR1));
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::debug);
  EXPECT_TRUE(TurnLogLevel(SIGUSR2));
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::warn);
}

}  // namespace
}  // namespace siding
