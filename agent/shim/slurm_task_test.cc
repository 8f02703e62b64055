#include "agent/shim/slurm_task.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "agent/shim/shim.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::Contains;
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

class SetRankOfStepTest : public ::testing::Test {
 protected:
  std::vector<std::string> Set(std::vector<std::string> environment) {
    SetRankOfStep(request_, environment);
    return environment;
  }
  void InNetwork(int rank) {
    request_.set_job(7);
    request_.mutable_spec()->set_nodes(2);
    request_.mutable_network()->set_rank(rank);
  }
  agent::ShimRequest request_;
};

TEST_F(SetRankOfStepTest, SaysWhoItIsAndWhereTheOthersAre) {
  InNetwork(1);
  EXPECT_THAT(Set({"A=b"}), ElementsAre("A=b", "SIDING_GANG_IF=siding0", "SIDING_GANG_ADDR=10.83.0.2",
                                        "SIDING_GANG_ADDRS=10.83.0.1,10.83.0.2", "SIDING_JOB_ID=7",
                                        "SIDING_RANK=1", "SIDING_NODES=2", "SIDING_SLOTS=1"));
}

TEST_F(SetRankOfStepTest, ItHasTheCpusThatSlurmGaveIt) {
  InNetwork(0);
  EXPECT_THAT(Set({"SLURM_CPUS_PER_TASK=3", "SLURM_CPUS_ON_NODE=8"}), Contains("SIDING_SLOTS=3"));
  EXPECT_THAT(Set({"SLURM_NTASKS=2", "SLURM_NNODES=2", "SLURM_CPUS_ON_NODE=8"}), Contains("SIDING_SLOTS=8"));
  EXPECT_THAT(Set({"SLURM_NTASKS=4", "SLURM_NNODES=2", "SLURM_CPUS_ON_NODE=8"}), Contains("SIDING_SLOTS=1"));
}

TEST_F(SetRankOfStepTest, OneInTheNodesNetworkFindsNothingNew) {
  EXPECT_THAT(Set({"A=b", "SIDING_RANK=3"}), ElementsAre("A=b", "SIDING_RANK=3"));
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

TEST(IsOfUser, NobodyElseIsAmongThem) {
  EXPECT_TRUE(IsOfUser("Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t1\n", 7));
  EXPECT_FALSE(IsOfUser("Name:\tx\nUid:\t7\t0\t7\t7\nGid:\t1\n", 7));
  EXPECT_FALSE(IsOfUser("Name:\tx\n", 7));
}

TEST(JoinCgroupsOf, WhereItIsAlreadyThereIsNothingToDo) {
  const auto self = SlurmTask::Hold(getpid());
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(JoinCgroupsOf(*self).ok());
}

struct SocketPair {
  SocketPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    a = UniqueFd(ends[0]);
    b = UniqueFd(ends[1]);
  }
  UniqueFd a, b;
};

agent::ShimRequest RequestOf(uid_t uid) {
  agent::ShimRequest request;
  request.mutable_spec()->set_uid(uid);
  return request;
}

TEST(SlurmTask, IsTheParentThatMadeTheSockets) {
  const SocketPair pair;
  const pid_t shim = fork();
  if (shim == 0) {
    const auto task = SlurmTask::Parent(pair.a.get());
    _exit(task.ok() && task->pid() == getppid() && task->Lives().ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_TRUE(AwaitChild(shim, status)) << "the shim's end";
  EXPECT_EQ(status, 0);
}

// The user ends the task, and another process of the user's keeps its end of the sockets open.
TEST(SlurmTask, WhoTakesItsPlaceIsNotTakenForIt) {
  const SocketPair out;
  const pid_t task = fork();
  if (task == 0) {
    const SocketPair pair;
    const pid_t shim = fork();
    if (shim != 0) _exit(0);
    const pid_t maker = [&pair] {
      ucred peer{};
      socklen_t size = sizeof peer;
      return getsockopt(pair.a.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
    }();
    if (!Eventually([&] { return getppid() != maker; })) _exit(1);
    const char cancelled = absl::IsCancelled(SlurmTask::Parent(pair.a.get()).status()) ? 'y' : 'n';
    _exit(send(out.a.get(), &cancelled, 1, 0) == 1 ? 0 : 1);
  }
  char cancelled = 0;
  ReceivePatiently(out.b.get());
  EXPECT_EQ(recv(out.b.get(), &cancelled, 1, 0), 1);
  EXPECT_EQ(cancelled, 'y');
  EXPECT_EQ(waitpid(task, nullptr, 0), task);
}

TEST(SlurmTask, OneThatHasEndedIsNotRead) {
  const pid_t child = fork();
  if (child == 0) pause();
  const auto task = SlurmTask::Hold(child);
  ASSERT_TRUE(task.ok());
  EXPECT_TRUE(task->Lives().ok());
  EXPECT_TRUE(task->Read("status").ok());
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(absl::IsCancelled(ReadSlurmTask(*task, RequestOf(getuid())).status()));
  EXPECT_TRUE(absl::IsCancelled(JoinCgroupsOf(*task)));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(SlurmTask, NobodyGetsTheGroupsOfAnotherUser) {
  const auto self = SlurmTask::Hold(getpid());
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ReadSlurmTask(*self, RequestOf(getuid() + 1)).status()));
}

TEST(ReceiveHandover, WithoutDescriptorsThereIsNone) {
  SocketPair pair;
  const spank::StepHandover said{3};
  ASSERT_EQ(send(pair.b.get(), &said, sizeof said, 0), static_cast<ssize_t>(sizeof said));
  EXPECT_FALSE(ReceiveHandover(pair.a.get()).ok());
  pair.b.Reset();
  EXPECT_FALSE(ReceiveHandover(pair.a.get()).ok());
}

class BatchScript : public ::testing::Test {
 protected:
  BatchScript() {
    char name[] = "/tmp/siding-script-XXXXXX";
    folder_ = mkdtemp(name);
    request_.mutable_spec()->set_uid(getuid());
    request_.mutable_spec()->set_gid(getgid());
    request_.set_job(getpid());
    request_.set_begun_in("0123456789abcdef");
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
  EXPECT_EQ(*copy, TaskTmpdir(request_) + "/slurm_script");
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
  EXPECT_FALSE(std::filesystem::exists(TaskTmpdir(request_)));
}

}  // namespace
}  // namespace siding
