// siding-launcher in cgroups. With version 1, where a hierarchy may have processes anywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/on_node/programs.h"
#include "agent/os/cgroups.h"
#include "common/patience_for_test.h"
#include "common/run_program.h"

namespace siding {
namespace {

using testing::HasSubstr;
using testing::Not;

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    const CgroupMounts mounts = ReadCgroupMounts();
    if (geteuid() != 0 || !mounts.v1.contains("freezer"))
      GTEST_SKIP() << "needs root and the freezer of version 1";
    top_ = mounts.v1.at("freezer");
    name_ = absl::StrCat("/siding-launcher-", getpid());
    std::string folder = testing::TempDir() + "launcher-XXXXXX";
    folder_ = mkdtemp(folder.data());
    auto files = ReadPrograms({{"criu", "/bin/cat"}, {"other", "/bin/cat"}}, SIDING_TEST_LAUNCHER);
    ASSERT_TRUE(files.ok()) << files.status();
    ASSERT_TRUE(PutOnNode(*files, folder_).ok());
    ASSERT_EQ(mkdir((top_ + name_).c_str(), 0755), 0);
    ASSERT_TRUE(WriteCgroupFile(absl::StrCat(top_, name_, "/cgroup.procs"), "0").ok());
  }
  void TearDown() override {
    if (folder_.empty()) return;
    EXPECT_TRUE(WriteCgroupFile(top_ + "/cgroup.procs", "0").ok());
    EXPECT_TRUE(RemoveCgroupFolder(top_ + name_).ok());
    std::filesystem::remove_all(folder_);
  }

  // The cgroups of a program that is started in ours.
  std::string CgroupsOf(const std::string& program, const std::map<std::string, std::string>& environment) {
    const auto ran = RunProgram({absl::StrCat(folder_, "/current/", program), "/proc/self/cgroup"}, kPatience,
                                environment);
    EXPECT_TRUE(ran.ok()) << ran.status();
    EXPECT_EQ(ran->exit_code, 0) << ran->errors;
    return ran->output;
  }

  std::string top_, name_, folder_;
};

TEST_F(LauncherTest, TheAgentsCriuIsNotAmongThoseThatEndWithTheContainer) {
  EXPECT_THAT(CgroupsOf("criu", {{"SIDING_CRIU_APART", "1"}}), Not(HasSubstr(name_)));
}

// What it restores is to be in the cgroups of its pod, where its runtime has put it.
TEST_F(LauncherTest, TheCriuOfARestoreStaysWhereItIs) {
  EXPECT_THAT(CgroupsOf("criu", {}), HasSubstr("freezer:" + name_));
}

TEST_F(LauncherTest, SoDoOtherPrograms) {
  EXPECT_THAT(CgroupsOf("other", {{"SIDING_CRIU_APART", "1"}}), HasSubstr("freezer:" + name_));
}

}  // namespace
}  // namespace siding
