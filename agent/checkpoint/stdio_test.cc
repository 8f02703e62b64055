#include "agent/checkpoint/stdio.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(Stdio, NoPipesAreNoText) {
  EXPECT_EQ(PipesToText({}), "");
  EXPECT_EQ(*PipesFromText(""), StdioPipes{});
}

TEST(Stdio, PipesKeepTheirPlaces) {
  const StdioPipes pipes = {"", "pipe:[7]", "pipe:[8]"};
  EXPECT_EQ(PipesToText(pipes), "- pipe:[7] pipe:[8]");
  EXPECT_EQ(*PipesFromText("- pipe:[7] pipe:[8]"), pipes);
}

TEST(Stdio, AnythingElseIsDamage) {
  for (const char* text : {"-", "- -", "- - - -", "- - socket:[7]", "- - pipe:[7"}) {
    EXPECT_TRUE(absl::IsDataLoss(PipesFromText(text).status())) << text;
  }
}

TEST(Stdio, AProcessThatIsGoneHasNoPipes) { EXPECT_EQ(RecordPipes(1 << 30), StdioPipes{}); }

}  // namespace
}  // namespace siding
