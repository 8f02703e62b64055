// What a job needs is not where it was when it is to be restored: its image is not at fault, and it
// continues from it when that is back.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "common/private_mounts_for_test.h"

namespace siding {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutsideTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (IsSkipped()) return;
    StartHost();
    MakeFolder();
  }
  void MakeFolder() {
    fs::create_directory(w());
    ASSERT_EQ(chown(w().c_str(), kUser, kUser), 0);
  }
  std::string w() const { return folder_ + "/w"; }
  std::string log() const { return w() + "/log"; }
  // A user's, that works in a folder of its own and appends to a log there.
  v1::JobSpec Logging(const std::vector<std::string>& options = {}) {
    v1::JobSpec spec = Somebodys(options);
    spec.set_workdir(w());
    spec.set_output(log());
    return spec;
  }
  void Park(const v1::JobSpec& spec) {
    Launch(spec);
    AwaitPhase(v1::RUNNING);
    ASSERT_TRUE(PollUntil([&] { return LinesIn(log()) >= 30; }, kPatience));
    Vacate("1.1");
    parked_ = LinesIn(log());
    OpenGate();
  }
  static int LinesIn(const std::string& path) {
    const std::string text = ReadFile(path).value_or("");
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  // The restore comes to this.
  v1::TaskReport Try(const v1::JobSpec& spec, v1::TaskPhase phase) {
    ++incarnation_;
    Restore(spec, "1.1", incarnation_, incarnation_ * 100);
    return AwaitPhase(phase, incarnation_);
  }
  // Refused for the reason, which names what is missing, and nothing is held against image or node.
  void ExpectRefused(const v1::JobSpec& spec, const std::string& reason) {
    const auto report = Try(spec, v1::RESTORE_FAILED);
    EXPECT_THAT(report.error(), HasSubstr(reason));
    EXPECT_TRUE(report.outside_problem()) << report.error();
    EXPECT_FALSE(report.image_damaged());
    EXPECT_FALSE(report.node_problem());
    EXPECT_FALSE(report.image_refused());
  }
  void ExpectSameResult(const v1::JobSpec& spec) {
    const auto report = Try(spec, v1::EXITED);
    EXPECT_EQ(report.exit_code(), 0);
    EXPECT_GT(LinesIn(log()), parked_);
    ExpectCounted(ReadFile(log()).value_or(""));
  }
  // What it has written since it was parked is all that is in the log, behind `before`.
  void ExpectTheRestIsLogged(const std::string& before = "") {
    ExpectCounted(ReadFile(log()).value_or(""), parked_ + 1, before);
  }

  int parked_ = 0;  // the steps that it had made when it was parked
  int incarnation_ = 1;
};

TEST_F(OutsideTest, FolderIsAwayAndBack) {
  Park(Logging());
  fs::rename(w(), folder_ + "/away");
  ExpectRefused(Logging(), w());
  fs::rename(folder_ + "/away", w());
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, FileSystemIsAwayAndBack) {
  if (!EnterPrivateMounts()) GTEST_SKIP() << "cannot mount anything";
  const std::string disk = folder_ + "/disk";
  fs::create_directory(disk);
  ASSERT_EQ(chown(disk.c_str(), kUser, kUser), 0);
  ASSERT_EQ(mount(disk.c_str(), w().c_str(), nullptr, MS_BIND, nullptr), 0);
  Park(Logging());
  ASSERT_EQ(umount2(w().c_str(), MNT_DETACH), 0);
  ExpectRefused(Logging(), log() + " has vanished");
  ASSERT_EQ(mount(disk.c_str(), w().c_str(), nullptr, MS_BIND, nullptr), 0);
  ExpectSameResult(Logging());
  EXPECT_EQ(umount2(w().c_str(), MNT_DETACH), 0);
}

TEST_F(OutsideTest, ANamespaceWithANameThatGoesIsNotMissed) {
  if (!EnterPrivateMounts()) GTEST_SKIP() << "cannot mount anything";
  const std::string name = folder_ + "/netns";
  std::ofstream(name) << "";
  ASSERT_EQ(mount("/proc/self/ns/net", name.c_str(), nullptr, MS_BIND, nullptr), 0);
  Park(Logging());
  ASSERT_EQ(umount2(name.c_str(), MNT_DETACH), 0);
  fs::remove(name);
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, FileIsRenamedAndRenamedBack) {
  Park(Logging());
  fs::rename(log(), w() + "/log.1");
  ExpectRefused(Logging(), log() + " has vanished");
  fs::rename(w() + "/log.1", log());
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, FileIsTruncatedAndPutBack) {
  Park(Logging());
  const std::string text = ReadFile(log()).value();
  fs::resize_file(log(), 3);
  ExpectRefused(Logging(), log() + " has changed size");
  std::ofstream(log()) << text;
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, FileIsReplacedByALongerOneWhichStaysAsItIs) {
  Park(Logging());
  const std::string other = std::string(10000, 'x');
  fs::rename(log(), w() + "/log.1");
  std::ofstream(log()) << other;
  ExpectRefused(Logging(), log() + " has been replaced by a longer one");
  EXPECT_EQ(ReadFile(log()).value(), other);
  fs::rename(w() + "/log.1", log());
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, PermissionIsTakenAndGivenBack) {
  Park(Logging());
  ASSERT_EQ(chown(log().c_str(), 0, 0), 0);
  ExpectRefused(Logging(), log() + ": Permission denied");
  ASSERT_EQ(chown(log().c_str(), kUser, kUser), 0);
  ASSERT_EQ(chown(w().c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(w().c_str(), 0700), 0);
  ExpectRefused(Logging(), w());
  ASSERT_EQ(chown(w().c_str(), kUser, kUser), 0);
  ASSERT_EQ(chmod(w().c_str(), 0755), 0);
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, ProgramIsMissingAndBack) {
  v1::JobSpec spec = Logging();
  const std::string program = w() + "/program";
  fs::copy_file(spec.command(0), program);
  spec.set_command(0, program);
  Park(spec);
  fs::rename(program, w() + "/renamed");
  ExpectRefused(spec, "program " + program + " is not there any more");
  fs::rename(w() + "/renamed", program);
  ExpectSameResult(spec);
}

TEST_F(OutsideTest, StoreHasNoSuchImageHere) {
  Park(Logging());
  fs::rename(folder_ + "/shared/images/1.1", folder_ + "/away");
  ExpectRefused(Logging(), "no image 1.1");
  fs::rename(folder_ + "/away", folder_ + "/shared/images/1.1");
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, AProgramThatIsStartedAgainHasNoWorkingFolder) {
  v1::JobSpec spec = Logging();
  fs::remove(w());
  Launch(spec);
  const auto report = AwaitPhase(v1::LAUNCH_FAILED);
  EXPECT_THAT(report.error(), HasSubstr(w()));
  EXPECT_TRUE(report.outside_problem());
  EXPECT_FALSE(report.node_problem());
}

// ---- What criu itself says of an image. ----

TEST_F(OutsideTest, WhatCriuItselfRefusesIsSaidOfTheImage) {
  Park(Logging());
  {
    const FaultOfShims fault("criu.restore.step=error");
    const auto report = Try(Logging(), v1::RESTORE_FAILED);
    EXPECT_TRUE(report.image_refused()) << report.error();
    EXPECT_FALSE(report.outside_problem());
    EXPECT_FALSE(report.node_problem());
    EXPECT_FALSE(report.image_damaged());
  }
  ExpectSameResult(Logging());
}

TEST_F(OutsideTest, ACriuThatDiesHasRefusedNothing) {
  Park(Logging());
  {
    const FaultOfShims fault("criu.restore.step=kill-criu");
    const auto report = Try(Logging(), v1::RESTORE_FAILED);
    EXPECT_FALSE(report.image_refused()) << report.error();
  }
  ExpectSameResult(Logging());
}

// ---- --files=append ----

class RotatedLogTest : public OutsideTest {
 protected:
  v1::JobSpec Appending(const std::vector<std::string>& options = {}) {
    v1::JobSpec spec = Logging(options);
    spec.set_append_files(true);
    return spec;
  }
  void ExpectSaysThatItWasRotated(const v1::TaskReport& report) {
    EXPECT_EQ(report.exit_code(), 0);
    ASSERT_EQ(report.notes_size(), 1);
    EXPECT_THAT(report.notes(0), HasSubstr(log() + " has been rotated"));
  }
  void ExpectIsTheUsers() {
    struct stat info {};
    ASSERT_EQ(lstat(log().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kUser);
    EXPECT_EQ(info.st_gid, kUser);
    EXPECT_EQ(info.st_mode & 07777, 0644u);
  }
};

TEST_F(RotatedLogTest, RenamedItIsMadeAnewAsTheUser) {
  Park(Appending());
  fs::rename(log(), w() + "/log.1");
  ExpectSaysThatItWasRotated(Try(Appending(), v1::EXITED));
  EXPECT_EQ(ReadFile(w() + "/log.1").value(), Steps(1, parked_));
  ExpectTheRestIsLogged();
  ExpectIsTheUsers();
}

TEST_F(RotatedLogTest, RenamedAndMadeAnewItIsAppendedTo) {
  Park(Appending());
  fs::rename(log(), w() + "/log.1");
  std::ofstream(log()) << "rotated\n";
  ASSERT_EQ(chown(log().c_str(), kUser, kUser), 0);
  ASSERT_EQ(chmod(log().c_str(), 0600), 0);
  ExpectSaysThatItWasRotated(Try(Appending(), v1::EXITED));
  ExpectTheRestIsLogged("rotated\n");
}

TEST_F(RotatedLogTest, RotatedAndLongerThanItWasItIsAppendedTo) {
  Park(Appending());
  fs::rename(log(), w() + "/log.1");
  const std::string others(10000, 'x');
  std::ofstream(log()) << others << "\n";
  ASSERT_EQ(chown(log().c_str(), kUser, kUser), 0);
  ExpectSaysThatItWasRotated(Try(Appending(), v1::EXITED));
  ExpectTheRestIsLogged(others + "\n");
}

TEST_F(RotatedLogTest, TruncatedItIsAppendedTo) {
  Park(Appending());
  fs::resize_file(log(), 0);
  ExpectSaysThatItWasRotated(Try(Appending(), v1::EXITED));
  ExpectTheRestIsLogged();
}

TEST_F(RotatedLogTest, UntouchedItIsCutBackAsEver) {
  Park(Appending());
  std::ofstream(log(), std::ios::app) << "written after the checkpoint\n";
  ExpectSameResult(Appending());
}

TEST_F(RotatedLogTest, NothingIsMadeWhereTheUserMayNot) {
  Park(Appending());
  fs::rename(log(), w() + "/log.1");
  ASSERT_EQ(chown(w().c_str(), 0, 0), 0);
  ExpectRefused(Appending(), "Permission denied");
  EXPECT_FALSE(fs::exists(log()));
}

TEST_F(RotatedLogTest, NothingIsMadeWhereALinkLeads) {
  Park(Appending());
  fs::rename(log(), w() + "/log.1");
  fs::create_symlink(folder_ + "/victim", log());
  ExpectRefused(Appending(), log());
  EXPECT_FALSE(fs::exists(folder_ + "/victim"));
}

TEST_F(RotatedLogTest, WhenTheRestoreFailsLaterTheLogIsAsItWas) {
  const std::string input = folder_ + "/input";
  std::ofstream(input) << "read";
  const v1::JobSpec spec = Appending({"-r", input});
  Park(spec);
  fs::resize_file(log(), 2);
  ASSERT_EQ(chmod(input.c_str(), 0600), 0);  // which CRIU finds out: it is root's
  const auto report = Try(spec, v1::RESTORE_FAILED);
  EXPECT_THAT(report.error(), HasSubstr("criu: "));
  EXPECT_FALSE(report.image_refused()) << report.error();
  EXPECT_EQ(fs::file_size(log()), 2u);
}

}  // namespace
}  // namespace siding
