#include "agent/os/account.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "agent/os/folder_for_test.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::Contains;

class FilesAsUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
    ASSERT_TRUE(WriteFileAtomically(secret_, "root's", 0600).ok());
  }
  FolderForAll folder_;
  const std::string secret_ = folder_ / "secret";
};

TEST_F(FilesAsUserTest, RootsFilesAreClosed) {
  const FilesAsUser as_user(AccountOf(kSomebody, kSomebody));
  ASSERT_TRUE(as_user.ok());
  EXPECT_FALSE(ReadFile(secret_).ok());
}

TEST_F(FilesAsUserTest, WhatIsMadeIsTheUsers) {
  {
    const FilesAsUser as_user(AccountOf(kSomebody, kSomebody));
    ASSERT_TRUE(WriteFileAtomically(folder_ / "made", "").ok());
  }
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "made").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kSomebody);
  EXPECT_EQ(info.st_gid, kSomebody);
}

TEST_F(FilesAsUserTest, AfterwardsRootIsRoot) {
  { const FilesAsUser as_user(AccountOf(kSomebody, kSomebody)); }
  EXPECT_EQ(*ReadFile(secret_), "root's");
  ASSERT_TRUE(WriteFileAtomically(folder_ / "made", "").ok());
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "made").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
}

// A magic link leads past the modes of the folders on the way, for a process that may inspect it.
TEST_F(FilesAsUserTest, ProcessesOfOthersAreClosed) {
  const std::string home = folder_ / "home";
  ASSERT_TRUE(MakeDirectories(home, 0700).ok());
  ASSERT_TRUE(WriteFileAtomically(home + "/file", "private", 0644).ok());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    if (chdir(home.c_str()) != 0 || write(ready[1], "", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);  // a child that fails is seen
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string link = "/proc/" + std::to_string(other) + "/cwd/file";
  {
    const FilesAsUser as_user(AccountOf(kSomebody, kSomebody));
    ASSERT_TRUE(as_user.ok());
    EXPECT_FALSE(ReadFile(link).ok());
  }
  EXPECT_EQ(*ReadFile(link), "private");
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_F(FilesAsUserTest, OtherThreadsStayRoot) {
  std::promise<void> go;
  bool reads = false;
  std::thread other([&] { reads = Comes(go.get_future()) && ReadFile(secret_).ok(); });
  const FilesAsUser as_user(AccountOf(kSomebody, kSomebody));
  go.set_value();
  other.join();
  EXPECT_TRUE(reads);
}

TEST_F(FilesAsUserTest, TheUsersGroupsCount) {
  ASSERT_EQ(chown(secret_.c_str(), 0, 4711), 0);
  ASSERT_EQ(chmod(secret_.c_str(), 0640), 0);
  Account account = AccountOf(kSomebody, kSomebody);
  account.groups.push_back(4711);
  const FilesAsUser as_user(account);
  EXPECT_TRUE(ReadFile(secret_).ok());
}

TEST_F(FilesAsUserTest, RootsGroupsDoNot) {
  ASSERT_EQ(chmod(secret_.c_str(), 0640), 0);
  const FilesAsUser as_user(AccountOf(kSomebody, kSomebody));
  EXPECT_FALSE(ReadFile(secret_).ok());
}

TEST(AccountOf, KnowsItsOwnGroup) { EXPECT_THAT(AccountOf(0, 0).groups, Contains(0)); }

TEST(AccountOf, OneThatDoesNotExistHasNothingButItsNumbers) {
  const Account account = AccountOf(987654, 987655);
  EXPECT_EQ(account.name, "");
  EXPECT_EQ(account.home, "/");
  EXPECT_THAT(account.groups, testing::ElementsAre(987655));
}

}  // namespace
}  // namespace siding
