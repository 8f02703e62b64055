#include "agent/os/tmpdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agent/os/folder_for_test.h"
#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

namespace fs = std::filesystem;

// Puts one thing in the place of another and back, as fast as it can, for as long as it lives.
class Flipper {
 public:
  Flipper(const std::string& a, const std::string& b)
      : thread_([this, a, b] {
          while (!stop_) renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
        }) {}
  ~Flipper() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class TmpdirTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to act for others";
    ASSERT_TRUE(MakeDirectories(victim_).ok());
    ASSERT_TRUE(WriteFileAtomically(victim_ + "/file", "root's").ok());
  }
  absl::Status Make() { return MakeUserFolder(path_, kSomebody, kSomebody); }
  void Remove() { RemoveUserFolder(path_, AccountOf(kSomebody, kSomebody)); }
  static struct stat Look(const std::string& path) {
    struct stat info {};
    lstat(path.c_str(), &info);
    return info;
  }
  void ExpectUsersOwn() {
    EXPECT_TRUE(S_ISDIR(Look(path_).st_mode));
    EXPECT_EQ(Look(path_).st_uid, kSomebody);
  }
  void ExpectVictimWhole() {
    EXPECT_EQ(Look(victim_).st_uid, 0u);
    EXPECT_EQ(ReadFile(victim_ + "/file").value_or("gone"), "root's");
  }
  // Made by this user, as a job would.
  void MakeAs(uid_t uid, const std::string& path) {
    ASSERT_EQ(mkdir(path.c_str(), 0777), 0);
    ASSERT_EQ(chown(path.c_str(), uid, uid), 0);
  }

  FolderForAll folder_;
  const std::string path_ = folder_ / "job";
  const std::string victim_ = folder_ / "victim";
};

TEST_F(TmpdirTest, IsMovedAsideWithWhatIsInIt) {
  const std::string aside = folder_ / "aside";
  ASSERT_TRUE(Make().ok());
  MakeAs(kSomebody, path_ + "/inner");
  ASSERT_TRUE(MoveUserFolder(path_, aside, kSomebody, kSomebody).ok());
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(fs::exists(aside + "/inner"));
  EXPECT_TRUE(absl::IsNotFound(MoveUserFolder(path_, aside, kSomebody, kSomebody)));
}
TEST_F(TmpdirTest, NothingIsMovedInThePlaceOfAnother) {
  ASSERT_TRUE(Make().ok());
  EXPECT_FALSE(MoveUserFolder(path_, victim_, kSomebody, kSomebody).ok());
  ExpectVictimWhole();
  ExpectUsersOwn();
}

TEST_F(TmpdirTest, IsTheUsersAlone) {
  ASSERT_TRUE(Make().ok());
  ExpectUsersOwn();
  EXPECT_EQ(Look(path_).st_mode & 07777, 0700u);
}

TEST_F(TmpdirTest, OneThatIsThereIsKept) {
  MakeAs(kSomebody, path_);
  ASSERT_TRUE(WriteFileAtomically(path_ + "/kept", "").ok());
  ASSERT_TRUE(Make().ok());
  EXPECT_TRUE(fs::exists(path_ + "/kept"));
}

TEST_F(TmpdirTest, AnothersIsMovedAside) {
  MakeAs(kAnother, path_);
  ASSERT_TRUE(WriteFileAtomically(path_ + "/trap", "").ok());
  ASSERT_TRUE(Make().ok());
  ExpectUsersOwn();
  EXPECT_FALSE(fs::exists(path_ + "/trap"));
}

TEST_F(TmpdirTest, ALinkIsNotFollowed) {
  ASSERT_EQ(symlink(victim_.c_str(), path_.c_str()), 0);
  ASSERT_TRUE(Make().ok());
  ExpectUsersOwn();
  ExpectVictimWhole();
}

TEST_F(TmpdirTest, ALinkOfTheUsersIsNotFollowedEither) {
  ASSERT_EQ(symlink(victim_.c_str(), path_.c_str()), 0);
  ASSERT_EQ(lchown(path_.c_str(), kSomebody, kSomebody), 0);
  ASSERT_TRUE(Make().ok());
  ExpectVictimWhole();
}

TEST_F(TmpdirTest, NorOneThatComesAndGoes) {
  const std::string link = folder_ / "link";
  for (int i = 0; i < 200; ++i) {
    MakeAs(kAnother, path_);
    ASSERT_EQ(symlink(victim_.c_str(), link.c_str()), 0);
    {
      const Flipper flipper(path_, link);
      EXPECT_TRUE(Make().ok());
    }
    ExpectVictimWhole();
    fs::remove_all(path_);
    fs::remove_all(link);
  }
}

TEST_F(TmpdirTest, NothingIsLeftOfIt) {
  ASSERT_TRUE(Make().ok());
  fs::create_directories(path_ + "/a/b");
  Remove();  // not ours to empty: a and b are root's
  for (const char* name : {"/a/b", "/a"}) ASSERT_EQ(lchown((path_ + name).c_str(), kSomebody, kSomebody), 0);
  Remove();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(TmpdirTest, NorWhatItsOwnerMayNotWriteTo) {
  ASSERT_TRUE(Make().ok());
  MakeAs(kSomebody, path_ + "/modules");
  MakeAs(kSomebody, path_ + "/modules/one");
  for (const char* name : {"/modules/one", "/modules"}) ASSERT_EQ(chmod((path_ + name).c_str(), 0500), 0);
  Remove();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(TmpdirTest, WhatALinkInItLeadsToStays) {
  ASSERT_TRUE(Make().ok());
  ASSERT_EQ(symlink(victim_.c_str(), (path_ + "/link").c_str()), 0);
  Remove();
  EXPECT_FALSE(fs::exists(path_));
  ExpectVictimWhole();
}

TEST_F(TmpdirTest, AnothersIsNotRemoved) {
  MakeAs(kAnother, path_);
  Remove();
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(TmpdirTest, WhatTakesItsPlaceMeanwhileStays) {
  const std::string link = folder_ / "link";
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Make().ok());
    for (int folder = 0; folder < 20; ++folder) MakeAs(kSomebody, path_ + "/" + std::to_string(folder));
    ASSERT_EQ(symlink(victim_.c_str(), link.c_str()), 0);
    {
      const Flipper flipper(path_, link);
      Remove();
    }
    ExpectVictimWhole();
    fs::remove_all(path_);
    fs::remove_all(link);
  }
}

}  // namespace
}  // namespace siding
