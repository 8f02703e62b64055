#include "launch/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace siding::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Error(const std::vector<std::string>& words) {
  return std::string(ParseArguments(words).status().message());
}

TEST(ArgumentsTest, AllThatIsNotItsOwnIsMpiruns) {
  const auto arguments = ParseArguments({"-np", "4", "--mpirun", "./solver", "--help"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->mode, Mode::kLaunch);
  EXPECT_EQ(arguments->mpirun, "");
  EXPECT_THAT(arguments->rest, ElementsAre("-np", "4", "--mpirun", "./solver", "--help"));
}

TEST(ArgumentsTest, ItsOwnComeFirst) {
  const auto arguments = ParseArguments({"--mpirun=/opt/mpi/bin/mpirun", "--wait", "90s", "./solver"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->mpirun, "/opt/mpi/bin/mpirun");
  EXPECT_EQ(arguments->patience, std::chrono::seconds(90));
  EXPECT_THAT(arguments->rest, ElementsAre("./solver"));
}

TEST(ArgumentsTest, ARelayHasAnAddressAndACommand) {
  const auto arguments = ParseArguments({"--relay", "10.83.0.2", "orted", "--mpirun", "x"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->mode, Mode::kRelay);
  EXPECT_THAT(arguments->rest, ElementsAre("10.83.0.2", "orted", "--mpirun", "x"));
  EXPECT_THAT(Error({"--relay", "10.83.0.2"}), HasSubstr("an address and a command"));
}

TEST(ArgumentsTest, HelpAndVersionAreItsOwnWhereTheyComeFirst) {
  EXPECT_EQ(ParseArguments({"--help"})->mode, Mode::kHelp);
  EXPECT_EQ(ParseArguments({"--version"})->mode, Mode::kVersion);
}

TEST(ArgumentsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Error({}), HasSubstr("what mpirun is to run"));
  EXPECT_THAT(Error({"--mpirun"}), HasSubstr("--mpirun: expected a value"));
  EXPECT_THAT(Error({"--mpirun=", "x"}), HasSubstr("--mpirun: expected a path"));
  EXPECT_THAT(Error({"--wait", "soon", "x"}), HasSubstr("--wait"));
}

}  // namespace
}  // namespace siding::launch
