#include "agent/launch/slurm_task.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "agent/launch/shim.h"
#include "agent/launch/tmpdir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitAtZeros, EmptyArgumentsStay) {
  EXPECT_THAT(SplitAtZeros(std::string("a\0\0b c\0", 7), 0), ElementsAre("a", "", "b c"));
}

TEST(SplitAtZeros, TheFirstAreSkipped) {
  EXPECT_THAT(SplitAtZeros(std::string("task\0"
                                       "3\0"
                                       "--\0"
                                       "cmd\0",
                                       14),
                           3),
              ElementsAre("cmd"));
  EXPECT_THAT(SplitAtZeros("", 3), IsEmpty());
}

TEST(CommandChecksum, TellsCommandsApart) {
  EXPECT_EQ(CommandChecksum({"a", "b"}), CommandChecksum({"a", "b"}));
  EXPECT_NE(CommandChecksum({"a", "b"}), CommandChecksum({"a b"}));
  EXPECT_NE(CommandChecksum({"ab", "c"}), CommandChecksum({"a", "bc"}));
}

TEST(CommandChecksum, ABatchScriptIsTheSameOnEveryNode) {
  EXPECT_EQ(CommandChecksum({"/node1/slurm_script", "x"}), CommandChecksum({"/node2/slurm_script", "x"}));
}

TEST(GroupsOf, AreNumbersOfOneLine) {
  EXPECT_THAT(GroupsOf("Gid:\t1\t1\nGroups:\t4 27 1000 \nNStgid:\t5\n"), ElementsAre(4, 27, 1000));
  EXPECT_THAT(GroupsOf("Name:\tx\nGroups:\t \nNStgid:\t5\n"), IsEmpty());
}

TEST(ParseCgroups, KnowsBothVersions) {
  const auto folders = ParseCgroups("9:name=systemd:/a\n6:cpu,cpuacct:/b:c\n0::/\nnonsense\n");
  ASSERT_EQ(folders.size(), 3u);
  EXPECT_EQ(folders[0].controllers, "name=systemd");
  EXPECT_EQ(folders[1].controllers, "cpu,cpuacct");
  EXPECT_EQ(folders[1].path, "/b:c");
  EXPECT_EQ(folders[2].controllers, "");
  EXPECT_EQ(folders[2].path, "/");
}

TEST(JoinCgroupsOf, WhereItIsAlreadyThereIsNothingToDo) { EXPECT_TRUE(JoinCgroupsOf(getpid()).ok()); }

TEST(ReceiveHandover, WithoutDescriptorsThereIsNone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const spank::StepHandover said{3};
  ASSERT_EQ(send(theirs.get(), &said, sizeof said, 0), static_cast<ssize_t>(sizeof said));
  EXPECT_FALSE(ReceiveHandover(ours.get()).ok());
  theirs.Reset();
  EXPECT_FALSE(ReceiveHandover(ours.get()).ok());
}

class BatchScript : public ::testing::Test {
 protected:
  BatchScript() {
    char name[] = "/tmp/siding-script-XXXXXX";
    folder_ = mkdtemp(name);
    request_.mutable_spec()->set_uid(getuid());
    request_.mutable_spec()->set_gid(getgid());
    request_.set_job(getpid());
  }
  ~BatchScript() override {
    RemoveBatchScript(request_);
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
  agent::ShimRequest request_;
};

TEST_F(BatchScript, IsCopiedToThePathItHasOnEveryNode) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/slurm_script", "#!/bin/sh\n").ok());
  const auto copy = CopyBatchScript(folder_ + "/slurm_script", request_);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(*copy, TaskTmpdir(getuid(), getpid(), 0) + "/slurm_script");
  EXPECT_EQ(*ReadFile(*copy), "#!/bin/sh\n");
  struct stat info {};
  ASSERT_EQ(stat(copy->c_str(), &info), 0);
  EXPECT_EQ(info.st_mtim.tv_sec, 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(BatchScript, AnOlderCopyIsReplaced) {
  for (const char* text : {"old and long", "new"}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/slurm_script", text).ok());
    const auto copy = CopyBatchScript(folder_ + "/slurm_script", request_);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(*ReadFile(*copy), text);
  }
}

TEST_F(BatchScript, AnyOtherCommandIsLeftWhereItIs) {
  const auto copy = CopyBatchScript("/bin/true", request_);
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(*copy, "");
}

TEST_F(BatchScript, NothingIsLeftOfIt) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/slurm_script", "x").ok());
  ASSERT_TRUE(CopyBatchScript(folder_ + "/slurm_script", request_).ok());
  RemoveBatchScript(request_);
  EXPECT_FALSE(std::filesystem::exists(TaskTmpdir(getuid(), getpid(), 0)));
}

}  // namespace
}  // namespace siding
