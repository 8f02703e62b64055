#include "spank/step_output.h"

#include <stdlib.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace siding::spank {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  int ends[2];
};

TEST(IsUnread, WhatIsInThePipeIs) {
  Pipe pipe;
  EXPECT_FALSE(IsUnread(pipe.ends[1], pipe.ends[1]));
  ASSERT_EQ(write(pipe.ends[1], "x", 1), 1);
  EXPECT_TRUE(IsUnread(pipe.ends[1], -1));
  EXPECT_TRUE(IsUnread(-1, pipe.ends[1]));
}

TEST(IsUnread, WhatHasBeenReadIsNot) {
  Pipe pipe;
  ASSERT_EQ(write(pipe.ends[1], "x", 1), 1);
  char byte;
  ASSERT_EQ(read(pipe.ends[0], &byte, 1), 1);
  EXPECT_FALSE(IsUnread(pipe.ends[1], pipe.ends[1]));
}

TEST(IsUnread, AFileHoldsItsBytesForGood) {
  char name[] = "/tmp/siding-step-output-XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "x", 1), 1);
  ASSERT_EQ(lseek(file, 0, SEEK_SET), 0);
  EXPECT_FALSE(IsUnread(file, file));
  close(file);
  unlink(name);
}

}  // namespace
}  // namespace siding::spank
