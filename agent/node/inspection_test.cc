#include "agent/node/inspection.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// A process that has one end of a connection, whose other end we have.
class ConnectedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    init_ = fork();
    if (init_ == 0) {
      for (;;) pause();
    }
    ASSERT_GT(init_, 0);
    ours_ = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(ours_.valid());
  }
  void TearDown() override {
    if (init_ <= 0) return;
    kill(init_, SIGKILL);
    waitpid(init_, nullptr, 0);
  }
  std::string WhyNot(const std::string& no_packet_tables) const {
    InspectionRequest asked;
    asked.init = init_;
    asked.has_criu = true;
    asked.criu = {CriuKind::kOurs, std::nullopt};
    asked.no_packet_tables = no_packet_tables;
    std::atomic<pid_t> at{0};
    return Inspect(asked, at).cannot_dump;
  }

  UniqueFd ours_;
  pid_t init_ = 0;
};

TEST_F(ConnectedTest, WhereTheKernelCannotHoldBackPacketsAConnectionToElsewhereIsInTheWay) {
  EXPECT_THAT(WhyNot("this node's kernel cannot"),
              HasSubstr("has connections to elsewhere, and this node's kernel cannot"));
}

TEST_F(ConnectedTest, WhereItCanItIsNot) { EXPECT_EQ(WhyNot(""), ""); }

}  // namespace
}  // namespace siding
