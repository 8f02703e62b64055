// A batch script's copy, where its user has put other things in the way.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "agent/os/folder_for_test.h"
#include "agent/os/names.h"
#include "agent/shim/slurm_task.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class HostileScript : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to act for others";
    request_.mutable_spec()->set_uid(kSomebody);
    request_.mutable_spec()->set_gid(kSomebody);
    request_.set_job(getpid());
    ASSERT_TRUE(WriteFileAtomically(folder_ / "slurm_script", "root's", 0600).ok());
    ASSERT_TRUE(MakeDirectories(folder_ / "spool").ok());
    ASSERT_TRUE(WriteFileAtomically(folder_ / "spool/slurm_script", "echo hello", 0755).ok());
  }
  ~HostileScript() override { std::filesystem::remove_all(tmpdir_); }
  void LeadTheFolderTo(const std::string& place) {
    std::filesystem::remove_all(tmpdir_);
    ASSERT_EQ(symlink(place.c_str(), tmpdir_.c_str()), 0);
    ASSERT_EQ(lchown(tmpdir_.c_str(), kSomebody, kSomebody), 0);
  }

  FolderForAll folder_;
  agent::ShimRequest request_;
  const std::string tmpdir_ = ProgramNames{"", getpid(), 0}.Tmpdir(kSomebody);
};

TEST_F(HostileScript, TheCopyIsTheUsers) {
  const auto copy = CopyBatchScript(folder_ / "spool/slurm_script", request_);
  ASSERT_TRUE(copy.ok()) << copy.status();
  struct stat info {};
  ASSERT_EQ(stat(copy->c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kSomebody);
}

TEST_F(HostileScript, WhatItsUserMayNotReadIsNotCopied) {
  EXPECT_FALSE(CopyBatchScript(folder_ / "slurm_script", request_).ok());
  EXPECT_FALSE(std::filesystem::exists(tmpdir_ + "/slurm_script"));
}

TEST_F(HostileScript, OnlyARegularFileIsRead) {
  const std::string script = folder_ / "spool/slurm_script";
  const auto expect_refused = [&](const char* why) {
    EXPECT_THAT(std::string(CopyBatchScript(script, request_).status().message()), testing::HasSubstr(why));
  };
  std::filesystem::remove(script);
  ASSERT_EQ(mkfifo(script.c_str(), 0666), 0);  // without a writer it would be waited for
  expect_refused("regular file");
  std::filesystem::remove(script);
  ASSERT_EQ(symlink("/dev/zero", script.c_str()), 0);
  expect_refused("symbolic links");
  std::filesystem::remove(script);
  ASSERT_EQ(mknod(script.c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);  // zeros without end
  ASSERT_EQ(chmod(script.c_str(), 0666), 0);
  expect_refused("regular file");
}

TEST_F(HostileScript, NorOneOfSomebodyElses) {
  const std::string script = folder_ / "spool/slurm_script";
  ASSERT_EQ(chown(script.c_str(), kSomebody + 1, kSomebody + 1), 0);
  EXPECT_EQ(CopyBatchScript(script, request_).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(HostileScript, NorOneWithoutEnd) {
  const std::string script = folder_ / "spool/slurm_script";
  std::filesystem::resize_file(script, uintmax_t{1} << 40);
  EXPECT_THAT(std::string(CopyBatchScript(script, request_).status().message()),
              testing::HasSubstr("expected at most"));
}

TEST_F(HostileScript, NothingIsRemovedWhereALinkLeads) {
  LeadTheFolderTo(folder_ / "spool");
  RemoveBatchScript(request_);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "spool/slurm_script"));
}

TEST_F(HostileScript, NothingIsWrittenWhereALinkLeads) {
  ASSERT_TRUE(MakeDirectories(folder_ / "empty").ok());
  LeadTheFolderTo(folder_ / "empty");
  CopyBatchScript(folder_ / "spool/slurm_script", request_).IgnoreError();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "empty"));
}

}  // namespace
}  // namespace siding
