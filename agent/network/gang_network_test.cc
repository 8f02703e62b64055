#include "agent/network/gang_network.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/network/inside.h"
#include "agent/network/links.h"
#include "agent/network/packet_tables.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr uint16_t kPort = 5000;
constexpr char kInside[] = "127.0.0.1";

sockaddr_in AddressOf(const std::string& host) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// A socket of that network; this thread's own stays as it is.
UniqueFd SocketIn(const UniqueFd& network, int type) {
  UniqueFd made;
  const absl::Status status = InNetwork(network.get(), [&] {
    made.Reset(socket(AF_INET, type | SOCK_CLOEXEC, 0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  ReceivePatiently(made.get());
  return made;
}

void BindTo(const UniqueFd& socket, const std::string& host) {
  const sockaddr_in address = AddressOf(host);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << host;
}

int ConnectTo(const UniqueFd& socket, const std::string& host) {
  const sockaddr_in address = AddressOf(host);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

UniqueFd ListenIn(const UniqueFd& network) {
  UniqueFd listener = SocketIn(network, SOCK_STREAM);
  BindTo(listener, "0.0.0.0");
  EXPECT_EQ(listen(listener.get(), 10), 0);
  return listener;
}

tcp_info InfoOf(const UniqueFd& socket) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info;
}

// What the socket has sent was not answered in time, so it was lost, there or back.
bool HasSentAgain(const UniqueFd& socket) { return InfoOf(socket).tcpi_total_retrans > 0; }

bool IsConnected(const UniqueFd& socket) { return InfoOf(socket).tcpi_state == TCP_ESTABLISHED; }

int Waiting(const UniqueFd& socket) {
  int bytes = 0;
  EXPECT_EQ(ioctl(socket.get(), FIONREAD, &bytes), 0);
  return bytes;
}

void Send(const UniqueFd& socket, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    ASSERT_GT(now, 0) << std::strerror(errno);
    sent += static_cast<size_t>(now);
  }
}

std::string Receive(const UniqueFd& socket, size_t size) {
  std::string bytes(size, '\0');
  const ssize_t got = recv(socket.get(), bytes.data(), size, MSG_WAITALL);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

std::string Pattern(size_t size, int seed) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 31 + i / 251) + seed);
  return bytes;
}

struct Connection {
  UniqueFd client, server;
};

// Both ends in what is lifted and joined.
Connection ConnectBetween(const UniqueFd& from, const UniqueFd& to, const std::string& host) {
  const UniqueFd listener = ListenIn(to);
  Connection connection{SocketIn(from, SOCK_STREAM), UniqueFd()};
  EXPECT_EQ(ConnectTo(connection.client, host), 0) << std::strerror(errno);
  connection.server.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ReceivePatiently(connection.server.get());
  return connection;
}

void ExchangeBothWays(const Connection& connection, size_t size) {
  const std::string there = Pattern(size, 1), back = Pattern(size, 2);
  std::thread sends_there([&] { Send(connection.client, there); });
  std::thread sends_back([&] { Send(connection.server, back); });
  std::string arrived;
  std::thread receives([&] { arrived = Receive(connection.client, size); });
  EXPECT_TRUE(Receive(connection.server, size) == there);
  for (std::thread* thread : {&sends_there, &sends_back, &receives}) thread->join();
  EXPECT_TRUE(arrived == back);
}

// The node is a network of the test's own, so that each test has its ports and links for itself.
class GangNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "skipped: a network of its own: " << std::strerror(errno);
    ASSERT_TRUE(siding::SetUp("lo").ok());
    if (const std::string why = WhyNoGangNetwork(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  }

  // As it is made: held, alone.
  static UniqueFd Make(int rank, const std::string& address = "127.0.0.1") {
    auto made = MakeGangNetwork({.rank = rank, .address = address});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : UniqueFd();
  }

  static UniqueFd MakeLifted(int rank) {
    UniqueFd network = Make(rank);
    Lift(network);
    return network;
  }

  static void Hold(const UniqueFd& network) { EXPECT_TRUE(HoldNetwork(network.get()).ok()); }
  static void Lift(const UniqueFd& network) { EXPECT_TRUE(LiftNetwork(network.get()).ok()); }

  static GangEndpoint Endpoint(const UniqueFd& network) {
    const auto endpoint = EndpointOf(network.get());
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    return endpoint.value_or(GangEndpoint{});
  }

  static void Join(const std::vector<const UniqueFd*>& networks) {
    std::vector<GangEndpoint> all;
    for (const UniqueFd* network : networks) all.push_back(Endpoint(*network));
    for (const UniqueFd* network : networks) {
      const absl::Status joined = JoinGangNetwork(network->get(), all);
      EXPECT_TRUE(joined.ok()) << joined;
    }
  }

  static Drained Left(const UniqueFd& network) {
    absl::StatusOr<Drained> left = Drained::kOrphans;
    EXPECT_TRUE(InNetwork(network.get(), [&] { return (left = LookAtConnections()).status(); }).ok());
    return left.value_or(Drained::kOrphans);
  }

  // The text of such a file as it is inside.
  static std::string ReadInside(const UniqueFd& network, const std::string& path) {
    std::string text;
    EXPECT_TRUE(InNetwork(network.get(), [&] {
                  text = ReadFile(path).value_or("none");
                  return absl::OkStatus();
                }).ok());
    return text;
  }
};

// Two that are joined and lifted.
class TwoMembers : public GangNetwork {
 protected:
  void SetUp() override {
    GangNetwork::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    first_ = MakeLifted(0);
    second_ = MakeLifted(1);
    Join({&first_, &second_});
  }
  UniqueFd first_, second_;
};

TEST_F(TwoMembers, ExchangeAllBytesBothWays) {
  ExchangeBothWays(ConnectBetween(first_, second_, "10.83.0.2"), 16 << 20);
}

TEST_F(TwoMembers, ReachEachOtherFromEitherSide) {
  ExchangeBothWays(ConnectBetween(second_, first_, "10.83.0.1"), 1 << 20);
}

TEST_F(TwoMembers, ReachThemselvesByTheirAddress) {
  ExchangeBothWays(ConnectBetween(first_, first_, "10.83.0.1"), 1 << 20);
}

TEST_F(GangNetwork, ThreeMembersReachEachOther) {
  const UniqueFd members[] = {MakeLifted(0), MakeLifted(1), MakeLifted(2)};
  Join({&members[0], &members[1], &members[2]});
  for (int from = 0; from < 3; ++from) {
    const int to = (from + 1) % 3;
    ExchangeBothWays(ConnectBetween(members[from], members[to], GangAddress(to)), 1 << 20);
  }
}

TEST_F(GangNetwork, MembersOfNodesWithIpv6ReachEachOther) {
  const UniqueFd first = Make(0, "::1"), second = Make(1, "::1");
  Lift(first);
  Lift(second);
  Join({&first, &second});
  ExchangeBothWays(ConnectBetween(first, second, "10.83.0.2"), 1 << 20);
}

TEST_F(GangNetwork, WhatIsSentBeforeTheyAreJoinedArrivesAfterwards) {
  const UniqueFd first = MakeLifted(0), second = MakeLifted(1);
  const UniqueFd listener = ListenIn(second);
  const UniqueFd client = SocketIn(first, SOCK_STREAM | SOCK_NONBLOCK);
  ConnectTo(client, "10.83.0.2");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(client); }));
  EXPECT_FALSE(IsConnected(client));
  Join({&first, &second});
  EXPECT_TRUE(Eventually([&] { return IsConnected(client); }));
}

TEST_F(GangNetwork, AMemberThatOnlyOneSideKnowsIsNotReached) {
  const UniqueFd first = MakeLifted(0), second = MakeLifted(1);
  ASSERT_TRUE(JoinGangNetwork(first.get(), {Endpoint(second)}).ok());
  const UniqueFd listener = ListenIn(second);
  const UniqueFd client = SocketIn(first, SOCK_STREAM | SOCK_NONBLOCK);
  ConnectTo(client, "10.83.0.2");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(client); }));
  EXPECT_FALSE(IsConnected(client));
}

TEST_F(GangNetwork, LeadsNowhereElse) {
  const UniqueFd network = MakeLifted(0);
  const UniqueFd socket = SocketIn(network, SOCK_STREAM);
  EXPECT_EQ(ConnectTo(socket, "192.0.2.1"), -1);
  EXPECT_EQ(errno, ENETUNREACH);
}

TEST_F(GangNetwork, IsMadeHeld) { EXPECT_TRUE(IsHeld(Make(0).get()).value()); }

TEST_F(GangNetwork, IsHeldAndLiftedAsOftenAsOneLikes) {
  const UniqueFd network = Make(0);
  Hold(network);
  EXPECT_TRUE(IsHeld(network.get()).value());
  Lift(network);
  Lift(network);
  EXPECT_FALSE(IsHeld(network.get()).value());
  Hold(network);
  EXPECT_TRUE(IsHeld(network.get()).value());
}

TEST_F(TwoMembers, AConnectWaitsWhileTheOtherIsHeld) {
  const UniqueFd listener = ListenIn(second_);
  Hold(second_);
  const UniqueFd client = SocketIn(first_, SOCK_STREAM | SOCK_NONBLOCK);
  ConnectTo(client, "10.83.0.2");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(client); }));
  EXPECT_FALSE(IsConnected(client));
  Lift(second_);
  EXPECT_TRUE(Eventually([&] { return IsConnected(client); }));
}

TEST_F(TwoMembers, BytesOfAConnectionWaitWhileTheOtherIsHeld) {
  const Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  Hold(second_);
  Send(connection.client, "word");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(connection.client); }));
  EXPECT_EQ(Waiting(connection.server), 0);
  Lift(second_);
  EXPECT_EQ(Receive(connection.server, 4), "word");
}

TEST_F(TwoMembers, AConnectionWithItselfOverTheLoopbackWaitsWhileHeld) {
  const Connection connection = ConnectBetween(first_, first_, kInside);
  Hold(first_);
  Send(connection.client, "word");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(connection.client); }));
  EXPECT_EQ(Waiting(connection.server), 0);
  Lift(first_);
  EXPECT_EQ(Receive(connection.server, 4), "word");
}

// In the order in which they were sent.
TEST_F(GangNetwork, OnlyPacketsWithTheMarkOfCriuComeIntoAHeldOne) {
  const UniqueFd network = Make(0);
  const UniqueFd receiver = SocketIn(network, SOCK_DGRAM), sender = SocketIn(network, SOCK_DGRAM);
  BindTo(receiver, kInside);
  ASSERT_EQ(ConnectTo(sender, kInside), 0);
  Send(sender, "lost");
  ASSERT_EQ(setsockopt(sender.get(), SOL_SOCKET, SO_MARK, &kCriuMark, sizeof kCriuMark), 0);
  Send(sender, "criu");
  EXPECT_EQ(Receive(receiver, 4), "criu");
}

TEST_F(TwoMembers, AreDrainedWhenAllIsAcknowledged) {
  const Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  Hold(second_);
  Send(connection.client, "word");
  EXPECT_EQ(Left(first_), Drained::kNotYet);
  Lift(second_);
  EXPECT_TRUE(Eventually([&] { return Left(first_) == Drained::kYes; }));
  EXPECT_EQ(Waiting(connection.server), 4);
}

TEST_F(TwoMembers, LeaveOrphansWhileAClosedConnectionHasBytesToSend) {
  Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  Hold(second_);
  Send(connection.client, "word");
  connection.client.Reset();
  EXPECT_EQ(Left(first_), Drained::kOrphans);
  Lift(second_);
  EXPECT_EQ(Receive(connection.server, 4), "word");
  EXPECT_TRUE(Eventually([&] { return Left(first_) == Drained::kYes; }));
}

TEST_F(TwoMembers, LeaveAnEndThatHasNotArrived) {
  Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  Hold(second_);
  connection.client.Reset();
  EXPECT_EQ(Left(first_), Drained::kEnds);
  Lift(second_);
  EXPECT_TRUE(Eventually([&] { return Left(first_) == Drained::kYes; }));
}

TEST_F(TwoMembers, ReachNobodyWhenOneIsCutOff) {
  const Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  ASSERT_TRUE(CutNetworkOff(first_.get()).ok());
  EXPECT_TRUE(CutNetworkOff(first_.get()).ok());
  EXPECT_TRUE(absl::IsNotFound(EndpointOf(first_.get()).status()));
}

TEST_F(TwoMembers, AreNotJoinedWhereOneSaysTheLoopbacksAddress) {
  GangEndpoint far = Endpoint(second_);
  far.address = "192.0.2.7";
  const absl::Status joined = JoinGangNetwork(first_.get(), {far});
  EXPECT_THAT(std::string(joined.message()), testing::HasSubstr("do not reach each other"));
}

TEST_F(GangNetwork, IsNotDrainedWhileAConnectionIsBeingMade) {
  const UniqueFd network = MakeLifted(0);
  EXPECT_EQ(Left(network), Drained::kYes);
  const UniqueFd client = SocketIn(network, SOCK_STREAM | SOCK_NONBLOCK);
  ConnectTo(client, "10.83.0.2");
  EXPECT_EQ(Left(network), Drained::kNotYet);
}

TEST_F(GangNetwork, ItsEndpointIsReadBack) {
  const auto made = MakeGangNetwork({.rank = 300, .address = "127.0.0.7", .port = 4790});
  ASSERT_TRUE(made.ok()) << made.status();
  const GangEndpoint endpoint = Endpoint(*made);
  EXPECT_EQ(endpoint, (GangEndpoint{300, "127.0.0.7", 4790, endpoint.vni}));
  EXPECT_GT(endpoint.vni, 0);
}

TEST_F(GangNetwork, AnotherNetworkHasNoEndpoint) {
  const UniqueFd node = OpenOwnNetwork().value();
  EXPECT_TRUE(absl::IsNotFound(EndpointOf(node.get()).status())) << EndpointOf(node.get()).status();
}

TEST_F(GangNetwork, MembersOfOneNodeHaveDifferentNumbers) {
  const UniqueFd first = Make(0), second = Make(0);
  EXPECT_NE(Endpoint(first).vni, Endpoint(second).vni);
}

TEST_F(TwoMembers, OneThatIsMadeAgainTakesTheOthersPlace) {
  second_ = MakeLifted(1);
  Join({&first_, &second_});
  ExchangeBothWays(ConnectBetween(first_, second_, "10.83.0.2"), 1 << 20);
}

// While the other still knows it.
TEST_F(TwoMembers, OneThatIsNotAmongThemAnyMoreIsForgotten) {
  const UniqueFd listener = ListenIn(second_);
  ASSERT_TRUE(JoinGangNetwork(first_.get(), {Endpoint(first_)}).ok());
  EXPECT_FALSE(absl::StrContains(ReadInside(first_, "/proc/thread-self/net/arp"), "02:53:00:00:00:01"));
  const UniqueFd client = SocketIn(first_, SOCK_STREAM | SOCK_NONBLOCK);
  ConnectTo(client, "10.83.0.2");
  EXPECT_TRUE(Eventually([&] { return HasSentAgain(client); }));
  EXPECT_FALSE(IsConnected(client));
}

TEST_F(TwoMembers, AreJoinedAsOftenAsOneLikes) {
  const Connection connection = ConnectBetween(first_, second_, "10.83.0.2");
  Join({&first_, &second_});
  ExchangeBothWays(connection, 1 << 20);
}

TEST_F(GangNetwork, JoiningDoesNotLift) {
  const UniqueFd first = Make(0), second = Make(1);
  Join({&first, &second});
  EXPECT_TRUE(IsHeld(first.get()).value());
}

TEST_F(GangNetwork, JoinedEndpointsThatAreNotRightAreNamed) {
  const UniqueFd network = Make(0);
  const GangEndpoint right{1, "127.0.0.1", 4789, 1};
  const auto refusal = [&](const GangEndpoint& endpoint) {
    const absl::Status status = JoinGangNetwork(network.get(), {endpoint});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_TRUE(absl::StartsWith(refusal({1, "node7", 4789, 1}), "the endpoint of rank 1: address: 'node7'"));
  EXPECT_TRUE(absl::StartsWith(refusal({1, "::1", 4789, 1}), "the endpoint of rank 1: address: ::1 and"));
  EXPECT_TRUE(absl::StartsWith(refusal({1, "127.0.0.1", 0, 1}), "the endpoint of rank 1: port: 0"));
  EXPECT_TRUE(absl::StartsWith(refusal({1, "127.0.0.1", 4789, 0}), "the endpoint of rank 1: vni: 0"));
  EXPECT_TRUE(absl::StartsWith(refusal({-1, "127.0.0.1", 4789, 1}), "the endpoint of rank -1: rank: -1"));
  EXPECT_EQ(JoinGangNetwork(network.get(), {right, right}).message(),
            "the endpoint of rank 1 is there twice");
}

TEST_F(GangNetwork, FieldsThatAreNotRightAreNamed) {
  const auto refusal = [](const GangNetworkOptions& options) {
    const absl::Status status = MakeGangNetwork(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_TRUE(absl::StartsWith(refusal({.rank = 0, .address = "node7"}), "address: 'node7'"));
  EXPECT_TRUE(absl::StartsWith(refusal({.rank = -1, .address = "127.0.0.1"}), "rank: -1"));
  EXPECT_TRUE(absl::StartsWith(refusal({.rank = 65534, .address = "127.0.0.1"}), "rank: 65534"));
  EXPECT_TRUE(absl::StartsWith(refusal({.address = "127.0.0.1", .port = 65536}), "port: 65536"));
  EXPECT_TRUE(absl::StartsWith(refusal({.address = "127.0.0.1", .mtu = 1}), "mtu: 1"));
}

// Without leaving something: the port is free again when it is closed, and one can be made then.
TEST_F(GangNetwork, APortThatAnotherProgramHasIsNamed) {
  UniqueFd other(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = AddressOf("0.0.0.0");
  address.sin_port = htons(4789);
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const absl::Status refused = MakeGangNetwork({.rank = 0, .address = "127.0.0.1"}).status();
  EXPECT_EQ(refused.message(), "UDP port 4789: set the link siding0 up: Address already in use");
  other.Reset();
  Make(0);
}

TEST_F(GangNetwork, GoesAwayWithItsLastDescriptor) {
  const auto socket_is_there = [] {
    return absl::StrContains(ReadFile("/proc/thread-self/net/udp").value(), absl::StrFormat(":%04X", 4789));
  };
  UniqueFd network = Make(0);
  EXPECT_TRUE(socket_is_there());
  network.Reset();
  EXPECT_TRUE(Eventually([&] { return !socket_is_there(); }));
}

TEST_F(GangNetwork, SendsPacketsOfTheSizeThatWasAsked) {
  const auto made = MakeGangNetwork({.rank = 0, .address = "127.0.0.1", .mtu = 8950});
  ASSERT_TRUE(made.ok()) << made.status();
  const UniqueFd socket = SocketIn(*made, SOCK_DGRAM);
  ifreq link = {};
  std::strcpy(link.ifr_name, kGangLink);
  ASSERT_EQ(ioctl(socket.get(), SIOCGIFMTU, &link), 0);
  EXPECT_EQ(link.ifr_mtu, 8950);
}

TEST_F(GangNetwork, HasNoAddressOfIpv6OnItsLink) {
  EXPECT_FALSE(absl::StrContains(ReadInside(Make(0), "/proc/thread-self/net/if_inet6"), "siding0"));
}

TEST_F(GangNetwork, ConnectionsOutliveALongHold) {
  const UniqueFd network = Make(0);
  const std::string folder = "/proc/sys/net/ipv4/";
  const std::string bound = ReadInside(network, folder + "tcp_rto_max_ms");
  if (bound == "none") {
    EXPECT_EQ(ReadInside(network, folder + "tcp_retries2"), "30\n");
    return;
  }
  EXPECT_EQ(bound, "5000\n");
  EXPECT_EQ(ReadInside(network, folder + "tcp_retries2"), "255\n");
  EXPECT_EQ(ReadInside(network, folder + "tcp_orphan_retries"), "255\n");
  EXPECT_EQ(ReadInside(network, folder + "tcp_syn_retries"), "127\n");
  EXPECT_EQ(ReadInside(network, folder + "tcp_synack_retries"), "255\n");
}

TEST_F(GangNetwork, TheNodesSettingsStayAsTheyAre) {
  const std::string before = ReadFile("/proc/sys/net/ipv4/tcp_retries2").value();
  const UniqueFd network = Make(0);
  EXPECT_EQ(ReadFile("/proc/sys/net/ipv4/tcp_retries2").value(), before);
}

// As the agent finds that of a process when it starts again.
TEST_F(GangNetwork, IsFoundByAProcessInIt) {
  const UniqueFd network = Make(0);
  pid_t child = -1;
  ASSERT_TRUE(InNetwork(network.get(), [&] {
                child = fork();
                if (child == 0) {
                  pause();
                  _exit(0);
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_TRUE(HasOwnNetwork(child));
  const auto found = OpenNetworkOf(child);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Endpoint(*found), Endpoint(network));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(GangNetwork, AProcessInTheNodesNetworkHasNoneOfItsOwn) { EXPECT_FALSE(HasOwnNetwork(getpid())); }

TEST_F(GangNetwork, ThatOfNoProcessIsNotFound) {
  EXPECT_FALSE(HasOwnNetwork(0));
  EXPECT_TRUE(absl::IsNotFound(OpenNetworkOf(0).status()));
}

}  // namespace
}  // namespace siding
