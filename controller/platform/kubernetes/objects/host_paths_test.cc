#include "controller/platform/kubernetes/objects/host_paths.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

TEST(PlainHostPathTest, WhatSaysNothingIsLeftOut) {
  for (const char* path : {"/data/a", "//data///a", "/data/a/", "/./data/./a/."})
    EXPECT_EQ(PlainHostPath(path).value_or("none"), "/data/a") << path;
}
TEST(PlainHostPathTest, ADotInANameIsOne) {
  for (const char* path : {"/data/.a", "/data/..a", "/data/a..", "/data/..."})
    EXPECT_EQ(PlainHostPath(path).value_or("none"), path);
}
TEST(PlainHostPathTest, NoneLeadsBack) {
  for (const char* path : {"/data/../etc", "/..", "/data/..", "/data//../a"})
    EXPECT_THAT(PlainHostPath(path).status().message(), HasSubstr("without ..")) << path;
}
TEST(PlainHostPathTest, ItBeginsAtTheRootAndIsNotTheRoot) {
  for (const char* path : {"", "data", "./data", "~/data"})
    EXPECT_THAT(PlainHostPath(path).status().message(), HasSubstr("begins with a slash")) << path;
  for (const char* path : {"/", "//", "/."})
    EXPECT_THAT(PlainHostPath(path).status().message(), HasSubstr("below /")) << path;
}

TEST(IsBelowTest, AFolderCoversItselfAndWhatIsInIt) {
  EXPECT_TRUE(IsBelow("/data", {"/data"}));
  EXPECT_TRUE(IsBelow("/data/a/b", {"/other", "/data"}));
}
TEST(IsBelowTest, ItDoesNotCoverNamesThatBeginAlike) {
  EXPECT_FALSE(IsBelow("/database", {"/data"}));
  EXPECT_FALSE(IsBelow("/data-2/a", {"/data"}));
  EXPECT_FALSE(IsBelow("/da", {"/data"}));
}
TEST(IsBelowTest, NorWhatIsAboveIt) { EXPECT_FALSE(IsBelow("/", {"/data"})); }
TEST(IsBelowTest, WhereThereAreNoneNothingIs) { EXPECT_FALSE(IsBelow("/data", {})); }

}  // namespace
}  // namespace siding::kubernetes
