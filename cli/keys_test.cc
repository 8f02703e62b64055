#include "cli/keys.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using namespace std::chrono_literals;

// Runs `test` in a process of its own, with a new terminal in front of it on which `typed` has been typed.
// What it returns.
int OnTerminal(const char* typed, int (*test)(int terminal)) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  EXPECT_GE(write(master, typed, strlen(typed)), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    _exit(test(open(ptsname(master), O_RDWR)));  // which makes it the session's
  }
  int status = 0;
  EXPECT_TRUE(AwaitChild(child, status)) << "the end of the program at the terminal";
  close(master);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Keys, AreReadAtOnceWithoutAReturn) {
  EXPECT_EQ(OnTerminal("q", [](int terminal) -> int { return Keys(terminal).Wait(60s); }), 'q');
}

TEST(Keys, NoneIsNone) {
  EXPECT_EQ(OnTerminal("", [](int terminal) -> int { return Keys(terminal).Wait(1ms); }), 0);
}

TEST(Keys, TheTerminalIsPutBack) {
  EXPECT_EQ(OnTerminal("",
                       [](int terminal) {
                         termios before{}, during{}, after{};
                         tcgetattr(terminal, &before);
                         {
                           Keys keys(terminal);
                           tcgetattr(terminal, &during);
                         }
                         tcgetattr(terminal, &after);
                         return before.c_lflag == after.c_lflag && before.c_lflag != during.c_lflag ? 1 : 0;
                       }),
            1);
}

TEST(Keys, WhatIsNoTerminalIsNotRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "q", 1), 1);
  EXPECT_EQ(Keys(ends[0]).Wait(1ms), 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace siding::cli
