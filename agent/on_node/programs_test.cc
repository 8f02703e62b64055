#include "agent/on_node/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "common/run_program.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseLibrariesTest, ThoseWithAPath) {
  EXPECT_THAT(*ParseLibraries("\tlinux-vdso.so.1 (0x00007f28e62d8000)\n"
                              "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f28e5a4f000)\n"
                              "\t/lib64/ld-linux-x86-64.so.2 (0x00007f28e62da000)\n"
                              "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f28e561e000)\n"),
              ElementsAre("/lib/x86_64-linux-gnu/libz.so.1", "/lib/x86_64-linux-gnu/libc.so.6"));
}

TEST(ParseLibrariesTest, OneThatIsMissingIsNamed) {
  EXPECT_EQ(ParseLibraries("\tlibnone.so.1 => not found\n").status().message(), "libnone.so.1 is missing");
}

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    std::string folder = testing::TempDir() + "programs-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~ProgramsTest() override { std::filesystem::remove_all(folder_); }

  std::string Put(const NodeFiles& files) {
    const auto place = PutOnNode(files, folder_);
    EXPECT_TRUE(place.ok()) << place.status();
    return place.value_or("");
  }
  std::string Current() { return std::filesystem::canonical(folder_ + "/current"); }

  std::string folder_;
};

TEST_F(ProgramsTest, AProgramRunsWithWhatCameWithIt) {
  auto files = ReadPrograms({{"shell", "/bin/sh"}}, SIDING_TEST_LAUNCHER);
  ASSERT_TRUE(files.ok()) << files.status();
  Put(*files);
  const auto ran = RunProgram(
      {folder_ + "/current/shell", "-c", "echo \"$1\"; cat /proc/$$/maps", "sh", "one two"}, kPatience);
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(ran->exit_code, 0) << ran->errors;
  EXPECT_TRUE(absl::StartsWith(ran->output, "one two\n")) << ran->output;
  EXPECT_THAT(ran->output, HasSubstr(Current() + "/lib/libc.so.6"));
  EXPECT_EQ(ran->output.find(" /usr/lib"), std::string::npos) << ran->output;
}

// siding-runc looks there for its settings.
TEST_F(ProgramsTest, AProgramFindsWhatLiesBesideIt) {
  auto files = ReadPrograms({{"readlink", "/usr/bin/readlink"}}, SIDING_TEST_LAUNCHER);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string place = Put(*files);
  const auto ran = RunProgram({folder_ + "/current/readlink", "/proc/self/exe"}, kPatience);
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(std::filesystem::path(ran->output).parent_path(), std::filesystem::canonical(place));
}

TEST_F(ProgramsTest, WhatCannotBeReadIsNamed) {
  const auto status = ReadPrograms({{"none", "/nowhere/none"}}, SIDING_TEST_LAUNCHER).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/none"));
}

TEST_F(ProgramsTest, NewerOnesTakeThePlaceOfTheOlder) {
  const std::string first = Put({{"a", "one"}});
  EXPECT_EQ(Current(), std::filesystem::canonical(first));
  const std::string second = Put({{"a", "two"}});
  EXPECT_EQ(Current(), std::filesystem::canonical(second));
  EXPECT_EQ(*ReadFile(folder_ + "/current/a"), "two");
  EXPECT_EQ(*ReadFile(first + "/a"), "one");  // who has begun to run it does so
}

TEST_F(ProgramsTest, ThoseFromBeforeTheLastAreRemoved) {
  const std::string first = Put({{"a", "one"}});
  const std::string second = Put({{"a", "two"}});
  Put({{"a", "three"}});
  EXPECT_FALSE(IsFolder(first));
  EXPECT_TRUE(IsFolder(second));
}

TEST_F(ProgramsTest, TheSameAreNotWrittenAgain) {
  struct stat before = {}, after = {};
  const std::string place = Put({{"a", "one"}});
  ASSERT_EQ(stat((place + "/a").c_str(), &before), 0);
  EXPECT_EQ(Put({{"a", "one"}}), place);
  ASSERT_EQ(stat((place + "/a").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(ProgramsTest, WhatOneThatDiedHasLeftIsNoHindrance) {
  ASSERT_TRUE(MakeDirectories(folder_ + "/.new/lib").ok());
  ASSERT_EQ(symlink("programs-none", (folder_ + "/.current.new").c_str()), 0);
  const std::string place = Put({{"a", "one"}});
  EXPECT_EQ(Current(), std::filesystem::canonical(place));
  EXPECT_FALSE(IsFolder(place + "/lib"));
}

TEST_F(ProgramsTest, OthersInTheFolderStay) {
  ASSERT_TRUE(MakeDirectories(folder_ + "/sbin").ok());
  Put({{"a", "one"}});
  EXPECT_TRUE(IsFolder(folder_ + "/sbin"));
}

TEST_F(ProgramsTest, OnlyRootMayChangeThem) {
  const std::string place = Put({{"a", "one"}, {"siding-runc.conf", "socket x\n"}});
  struct stat status = {};
  ASSERT_EQ(stat((place + "/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755);
  ASSERT_EQ(stat((place + "/siding-runc.conf").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644);
}

}  // namespace
}  // namespace siding
