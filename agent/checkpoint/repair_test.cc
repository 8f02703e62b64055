#include "agent/checkpoint/repair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

// A connection over loopback, which a child process has as well.
class RepairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    client_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_EQ(connect(client_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    server_ = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int on = 1;
    if (setsockopt(client_.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0)
      GTEST_SKIP() << "needs CAP_NET_ADMIN";
    child_ = fork();
    if (child_ == 0) {
      for (;;) pause();
    }
  }
  void TearDown() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  UniqueFd client_, server_;
  pid_t child_ = 0;
};

TEST_F(RepairTest, AConnectionInRepairModeWorksAgain) {
  ASSERT_LT(send(client_.get(), "x", 1, MSG_NOSIGNAL), 0);
  EXPECT_EQ(EndRepair(child_), 1);
  char text = 0;
  EXPECT_EQ(send(client_.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(recv(server_.get(), &text, 1, 0), 1);
  EXPECT_EQ(text, 'x');
}

TEST_F(RepairTest, OthersAreLeftAlone) {
  EndRepair(child_);
  EXPECT_EQ(EndRepair(child_), 0);
}

}  // namespace
}  // namespace siding
