// Rank 0's part and the others', as processes of one machine: their addresses are of the loopback device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "common/files.h"
#include "launch/connect.h"
#include "launch/follow.h"
#include "launch/lead.h"
#include "launch/message.h"
#include "launch/process.h"
#include "launch/relay.h"

namespace siding::launch {
namespace {

class TasksTest : public ::testing::Test {
 protected:
  TasksTest() : folder_("/tmp/siding-launch-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    // Of this test alone, whatever runs beside it: rank 0 is at the first address.
    const int part = getpid() % 65000;
    for (int rank = 0; rank < 2; ++rank)
      gang_.addresses.push_back(absl::StrCat("127.", 1 + part / 256, ".", part % 256, ".", 1 + rank));
    gang_.link = "lo";
    setenv("TMPDIR", folder_.c_str(), 1);
    setenv("HOME", folder_.c_str(), 1);
  }
  ~TasksTest() override { std::filesystem::remove_all(folder_); }

  // A process that does this, and ends with what it returns; 99: an error.
  static pid_t Start(const std::function<absl::StatusOr<int>()>& what) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(what().value_or(99));
    }
    return pid;
  }
  static int Await(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return ExitCode(status);
  }

  pid_t StartFollower(Duration patience = std::chrono::minutes(5)) const {
    Gang gang = gang_;
    gang.rank = 1;
    return Start([=] { return Follow(gang, patience); });
  }
  // `script`: what stands for mpirun.
  pid_t StartLeader(const std::string& script) const {
    Arguments arguments;
    arguments.mpirun = "/bin/sh";
    arguments.rest = {"-c", script};
    return Start([this, arguments] { return Lead(gang_, arguments); });
  }
  // As rank 0 would connect.
  Peer ConnectAsLeader() const {
    auto socket =
        Connect(gang_.addresses[0], gang_.addresses[1], kPort, std::chrono::minutes(5), [] { return false; });
    EXPECT_TRUE(socket.ok()) << socket.status();
    return Peer(*std::move(socket));
  }
  bool Appears(const std::string& name) const {
    for (int i = 0; i < 15000; ++i) {
      if (std::filesystem::exists(folder_ + "/" + name)) return true;
      poll(nullptr, 0, 20);
    }
    return false;
  }

  std::string folder_;
  Gang gang_;
};

TEST_F(TasksTest, TheOthersEndWithMpirun) {
  const pid_t follower = StartFollower();
  EXPECT_EQ(Await(StartLeader("exit 7")), 7);
  EXPECT_EQ(Await(follower), 0);
}

TEST_F(TasksTest, MpirunFindsTheJobsNodes) {
  const pid_t follower = StartFollower();
  EXPECT_EQ(Await(StartLeader("cp $OMPI_MCA_orte_default_hostfile $TMPDIR/hosts")), 0);
  EXPECT_EQ(Await(follower), 0);
  EXPECT_EQ(*ReadFile(folder_ + "/hosts"),
            absl::StrCat(gang_.addresses[0], " slots=1\n", gang_.addresses[1], " slots=1\n"));
}

TEST_F(TasksTest, ALeaderThatSaysWhatIsNotExpectedIsNone) {
  const pid_t follower = StartFollower();
  Peer leader = ConnectAsLeader();
  ASSERT_TRUE(leader.Send({Kind::kFollow, ""}).ok());
  ASSERT_TRUE(leader.Send({Kind::kFollow, ""}).ok());
  EXPECT_EQ(Await(follower), 99);
}

TEST_F(TasksTest, WhatRelaysStartRunsThere) {
  const pid_t follower = StartFollower();
  Peer leader = ConnectAsLeader();
  ASSERT_TRUE(leader.Send({Kind::kFollow, ""}).ok());
  // One message follows the other on its own connection: the first may be read later.
  const auto relay = [this](const std::string& command) {
    return Await(Start([&] { return Relay(gang_, {gang_.addresses[1], "X=5;", command}); }));
  };
  while (relay("exit $X") == 99) {
  }
  EXPECT_EQ(relay("exit $X"), 5);
  EXPECT_EQ(relay("kill -9 $$"), 137);
  EXPECT_EQ(relay("echo a b > $TMPDIR/said"), 0);
  EXPECT_EQ(relay("test $(pwd) = $TMPDIR"), 0);  // its home
  EXPECT_EQ(*ReadFile(folder_ + "/said"), "a b\n");
  ASSERT_TRUE(leader.Send({Kind::kEnd, ""}).ok());
  EXPECT_EQ(Await(follower), 0);
}

TEST_F(TasksTest, ARelayKnowsTheOthersOnly) {
  for (const std::string& address : {gang_.addresses[0], std::string("127.0.0.1"), std::string("node7")})
    EXPECT_EQ(Relay(gang_, {address, "true"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TasksTest, GarbageIsNotFollowed) {
  const pid_t follower = StartFollower();
  {
    Peer garbage = ConnectAsLeader();
    ASSERT_EQ(send(garbage.fd(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    pollfd closed = {garbage.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&closed, 1, -1), 1);
  }
  EXPECT_EQ(Await(StartLeader("exit 0")), 0);
  EXPECT_EQ(Await(follower), 0);
}

TEST_F(TasksTest, OnlyRank0IsListenedTo) {
  const pid_t follower = StartFollower();
  auto stranger =
      Connect("127.0.0.1", gang_.addresses[1], kPort, std::chrono::minutes(5), [] { return false; });
  ASSERT_TRUE(stranger.ok());
  char byte;
  EXPECT_LE(read(stranger->get(), &byte, 1), 0);
  EXPECT_EQ(Await(StartLeader("exit 0")), 0);
  EXPECT_EQ(Await(follower), 0);
}

TEST_F(TasksTest, WithoutRank0TheOthersEnd) {
  const pid_t follower = StartFollower();
  const pid_t leader = StartLeader("touch $TMPDIR/began; while test -d $TMPDIR; do sleep 0.05; done");
  ASSERT_TRUE(Appears("began"));
  kill(leader, SIGKILL);
  EXPECT_EQ(Await(leader), 137);
  EXPECT_EQ(Await(follower), 99);
}

TEST_F(TasksTest, WhoeverIsToldToEndTellsMpirunOnce) {
  constexpr char kScript[] =
      "n=0; trap 'n=$((n + 1)); touch $TMPDIR/told' TERM; touch $TMPDIR/began;"
      "until test -e $TMPDIR/go; do sleep 0.01; done; exit $n";
  const pid_t follower = StartFollower();
  const pid_t leader = StartLeader(kScript);
  ASSERT_TRUE(Appears("began"));
  kill(follower, SIGTERM);
  ASSERT_TRUE(Appears("told"));
  kill(leader, SIGTERM);
  EXPECT_TRUE(WriteFileAtomically(folder_ + "/go", "").ok());
  EXPECT_EQ(Await(leader), 1);
  EXPECT_EQ(Await(follower), 0);
}

TEST_F(TasksTest, BeforeTheOthersHaveComeRank0CanBeEnded) {
  const pid_t leader = StartLeader("exit 0");
  kill(leader, SIGTERM);
  EXPECT_EQ(Await(leader), 143);
}

TEST_F(TasksTest, ThePatienceOfOneWhoWaitsHasAnEnd) {
  EXPECT_EQ(Follow({.rank = 1, .addresses = gang_.addresses, .link = "lo"}, Duration(0)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Arguments arguments;
  arguments.mpirun = "/bin/true";
  arguments.patience = Duration(0);
  EXPECT_EQ(Lead(gang_, arguments).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TasksTest, WithoutMpirunItSaysHowToNameOne) {
  Arguments arguments;
  arguments.mpirun = folder_ + "/mpirun";
  const auto code = Lead(gang_, arguments);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(code.status().message()), ::testing::HasSubstr("SIDING_MPIRUN"));
}

}  // namespace
}  // namespace siding::launch
