#include "agent/shim/last_word.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/os/folder_for_test.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_status.h"
#include "agent/task/json_file.h"
#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class LastWordTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder()); }
  std::string folder() const { return folder_ / "task"; }
  std::string Said(const std::string& name) const { return ReadFile(folder() + "/" + name).value_or(""); }
  bool HasRoom() const { return std::filesystem::exists(folder() + "/room"); }
  // Nothing can take the place of a folder that is not empty.
  void Block(const std::string& name) const {
    std::filesystem::create_directories(folder() + "/" + name + "/in the way");
  }
  void Unblock(const std::string& name) const { std::filesystem::remove_all(folder() + "/" + name); }

  FolderForAll folder_;
};

TEST_F(LastWordTest, TakesItsRoom) {
  ASSERT_TRUE(MakeRoomForLastWord(folder()).ok());
  struct stat room {};
  ASSERT_EQ(stat((folder() + "/room").c_str(), &room), 0);
  EXPECT_GE(static_cast<size_t>(room.st_blocks) * 512, kLastWordRoom);
  ASSERT_TRUE(WriteLastWord(folder(), "exit.json", "well").ok());
  EXPECT_EQ(Said("exit.json"), "well");
  EXPECT_FALSE(HasRoom());
}

TEST_F(LastWordTest, IsWrittenWithoutRoom) {
  ASSERT_TRUE(WriteLastWord(folder(), "exit.json", "well").ok());
  EXPECT_EQ(Said("exit.json"), "well");
}

TEST_F(LastWordTest, OneThatDoesNotFitIsWritten) {
  ASSERT_TRUE(MakeRoomForLastWord(folder()).ok());
  const std::string word(kLastWordRoom + 1, 'x');
  ASSERT_TRUE(WriteLastWord(folder(), "failed.json", word).ok());
  EXPECT_EQ(Said("failed.json"), word);
}

TEST_F(LastWordTest, OneThatFailedIsReplaced) {
  ASSERT_TRUE(MakeRoomForLastWord(folder()).ok());
  Block("exit.json");
  EXPECT_FALSE(WriteLastWord(folder(), "exit.json", "a long word").ok());
  Unblock("exit.json");
  ASSERT_TRUE(WriteLastWord(folder(), "exit.json", "well").ok());
  EXPECT_EQ(Said("exit.json"), "well");
}

TEST_F(LastWordTest, IsTriedUntilItWorks) {
  ASSERT_TRUE(MakeRoomForLastWord(folder()).ok());
  Block("exit.json");
  int tries = 0;
  const auto write = [&] {
    if (++tries == 4) Unblock("exit.json");
    return WriteExit(folder(), agent::ShimExit());
  };
  EXPECT_TRUE(WriteUntilDone(write, [] { return false; }).ok());
  EXPECT_EQ(tries, 4);
  EXPECT_TRUE(ReadJsonFile<agent::ShimExit>(folder() + "/exit.json").ok());
}

TEST_F(LastWordTest, IsNotTriedForEverWhenTheMachineShutsDown) {
  Block("exit.json");
  int tries = 0;
  const auto write = [&] {
    ++tries;
    return WriteExit(folder(), agent::ShimExit());
  };
  EXPECT_FALSE(WriteUntilDone(
                   write, [&] { return tries > 2; }, Duration(0))
                   .ok());
  EXPECT_EQ(tries, 3);
}

TEST_F(LastWordTest, IsOfNoUseWhereTheTasksFolderIsGone) {
  std::filesystem::remove_all(folder());
  const auto write = [&] { return WriteExit(folder(), agent::ShimExit()); };
  EXPECT_TRUE(absl::IsNotFound(WriteUntilDone(write, [] { return false; })));
}

// Exits with 0 if both are written on a disk that has no room for any other file.
[[noreturn]] void SayOnFullDisk(const std::string& folder) {
  const auto need = [](bool holds, int code) {
    if (!holds) _exit(code);
  };
  need(unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) == 0, 10);
  need(mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=256k") == 0, 11);
  for (const char* task : {"ended", "failed"}) {
    std::filesystem::create_directory(folder + "/" + task);
    need(WriteShim(folder + "/" + task).ok(), 12);
  }
  std::ofstream ballast(folder + "/ballast");
  while (ballast.write("all that is left", 16).flush()) {
  }
  need(!WriteFileDurably(folder + "/other", "x").ok(), 13);
  need(WriteExit(folder + "/ended", agent::ShimExit()).ok(), 14);
  const absl::Status why = absl::NotFoundError(std::string(2 * kLastWordRoom, 'x'));
  need(WriteStart(folder + "/failed", why, false).ok(), 15);
  need(ReadJsonFile<agent::ShimExit>(folder + "/ended/exit.json").ok(), 16);
  const auto failed = ReadJsonFile<agent::ShimFailed>(folder + "/failed/failed.json");
  need(failed.ok() && !failed->message().empty(), 17);
  _exit(0);
}

TEST_F(LastWordTest, IsWrittenOnAFullDisk) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: it mounts a small file system";
  EXPECT_EXIT(SayOnFullDisk(folder()), testing::ExitedWithCode(0), "");
}

// The command has not run, and is not to blame.
TEST_F(LastWordTest, ATaskThatCannotBeNotedFailsForTheNode) {
  Block("init.json");
  const absl::Status noted = WriteInit(folder(), getpid());
  ASSERT_FALSE(noted.ok());
  ASSERT_TRUE(WriteStart(folder(), noted, false).ok());
  EXPECT_TRUE(ReadJsonFile<agent::ShimFailed>(folder() + "/failed.json")->node_problem());
}

TEST_F(LastWordTest, ATaskWhoseEndHasNoRoomIsNotStarted) {
  Block("room");
  EXPECT_FALSE(WriteShim(folder()).ok());
}

}  // namespace
}  // namespace siding
