#include "common/run_program.h"

#include <signal.h>
#include <unistd.h>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(RunProgram, ReturnsWhatItWrote) {
  EXPECT_EQ(RunProgram({"echo", "a", "b c"}, kPatience)->output, "a b c\n");
}

TEST(RunProgram, KeepsErrorsApart) {
  const auto result = RunProgram({"sh", "-c", "echo out; echo err >&2"}, kPatience);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
}

TEST(RunProgram, ReturnsTheExitCode) {
  EXPECT_EQ(RunProgram({"sh", "-c", "exit 7"}, kPatience)->exit_code, 7);
}

TEST(RunProgram, ADeathBySignalIsAnExitCodeToo) {
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -TERM $$"}, kPatience)->exit_code, 128 + 15);
}

TEST(RunProgram, NamesAProgramThatIsMissing) {
  const auto status = RunProgram({"no-such-program"}, kPatience).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no-such-program"));
}

TEST(RunProgram, OutputLargerThanAPipeIsWhole) {
  EXPECT_EQ(RunProgram({"sh", "-c", "head -c 1000000 /dev/zero"}, kPatience)->output.size(), 1000000u);
}

TEST(RunProgram, KillsWhatDoesNotEnd) {
  const auto status = RunProgram({"sleep", "1000"}, std::chrono::milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(RunProgram, KillsWhatIsToBeStopped) {
  const auto status = RunProgram({"sleep", "1000"}, kPatience, {}, {.stop = [] { return true; }}).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

TEST(RunProgram, EndsItAsItIsTold) {
  const auto end = [](pid_t pid) { kill(pid, SIGTERM); };
  const auto status = RunProgram({"sleep", "1000"}, std::chrono::milliseconds(50), {}, {.end = end}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(RunProgram, AddsToTheEnvironment) {
  EXPECT_EQ(RunProgram({"sh", "-c", "echo $X"}, kPatience, {{"X", "y"}})->output, "y\n");
}

TEST(RunProgram, StandardInputIsEmpty) { EXPECT_EQ(RunProgram({"cat"}, kPatience)->output, ""); }

std::vector<std::string> LinesOf(const std::string& script) {
  std::vector<std::string> lines;
  EXPECT_TRUE(
      FollowProgram({"sh", "-c", script}, [&](const std::string& line) { lines.push_back(line); }).ok());
  return lines;
}

TEST(FollowProgram, VisitsEachLine) {
  EXPECT_THAT(LinesOf("echo a; echo; printf b"), testing::ElementsAre("a", "", "b"));
}

TEST(FollowProgram, DoesNotWaitForTheEnd) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  // It ends when its first line has been visited, and never if that is not before its end.
  const std::string wait = "echo first; read line <&" + std::to_string(pipe_ends[0]);
  const auto code = FollowProgram({"bash", "-c", wait},
                                  [&](const std::string&) { EXPECT_EQ(write(pipe_ends[1], "\n", 1), 1); });
  EXPECT_EQ(code.value_or(-1), 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(FollowProgram, ReturnsTheExitCode) {
  EXPECT_EQ(FollowProgram({"sh", "-c", "exit 7"}, [](const std::string&) {}).value_or(-1), 7);
}

TEST(FollowProgram, NamesAProgramThatIsMissing) {
  EXPECT_TRUE(absl::IsNotFound(FollowProgram({"no-such-program"}, [](const std::string&) {}).status()));
}

}  // namespace
}  // namespace siding
