#include "controller/identity/remote_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

UniqueFd Connect(int port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ReceivePatiently(fd.get());
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return UniqueFd();
  return fd;
}

// The listener hangs up: reading ends.
bool IsClosed(const UniqueFd& fd) {
  char byte;
  return read(fd.get(), &byte, 1) == 0;
}

TEST(RemoteListener, HandsOverConnections) {
  std::promise<int> promised;
  std::future<int> accepted = promised.get_future();
  const auto listener = RemoteListener::Listen("127.0.0.1:0", {}, [&](int fd) { promised.set_value(fd); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const UniqueFd client = Connect((*listener)->port());
  ASSERT_TRUE(Comes(accepted));
  const UniqueFd server(accepted.get());
  EXPECT_EQ(write(server.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(client.get(), &byte, 1), 1);
}
TEST(RemoteListener, ClosesWhatIsMoreThanAHostMayHave) {
  std::vector<UniqueFd> accepted;
  const auto listener = RemoteListener::Listen("127.0.0.1:0", {.connections_per_host = 1},
                                               [&](int fd) { accepted.emplace_back(fd); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const UniqueFd first = Connect((*listener)->port());
  EXPECT_TRUE(IsClosed(Connect((*listener)->port())));
  (*listener)->Stop();
  EXPECT_EQ(accepted.size(), 1u);
}
TEST(RemoteListener, ListensOnIpv6AndIpv4AtOnce) {
  std::promise<int> promised;
  std::future<int> accepted = promised.get_future();
  const auto listener = RemoteListener::Listen("[::]:0", {}, [&](int fd) { promised.set_value(fd); });
  if (!listener.ok()) GTEST_SKIP() << "no IPv6 here: " << listener.status();
  const UniqueFd client = Connect((*listener)->port());
  ASSERT_TRUE(Comes(accepted));
  const UniqueFd server(accepted.get());
  EXPECT_TRUE(server.valid());
}
TEST(RemoteListener, TwoDoNotShareAPort) {
  const auto first = RemoteListener::Listen("127.0.0.1:0", {}, [](int) {});
  const std::string same = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(RemoteListener::Listen(same, {}, [](int) {}).status().message(), HasSubstr("bind " + same));
}
TEST(RemoteListener, AnAddressThatIsNoneIsNamed) {
  EXPECT_THAT(RemoteListener::Listen("300.1.2.3:1", {}, [](int) {}).status().message(),
              HasSubstr("300.1.2.3:1"));
}

}  // namespace
}  // namespace siding
