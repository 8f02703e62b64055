#include "agent/network/gang_network.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/network/drained.h"
#include "agent/network/gang_address.h"
#include "agent/network/inside.h"
#include "agent/network/links.h"
#include "agent/network/packet_tables.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kLoopback[] = "lo";
// A number that is taken is drawn again. A node has few members: so many in a row are never taken.
constexpr int kDraws = 100;
// What IPv4 can live with, and what an IP packet can be.
constexpr int kSmallestMtu = 68, kLargestMtu = 65535;
constexpr int kLargestPort = 65535;

// Between looks at connections: a peer that reads answers at once, and one that does not may take hours.
constexpr Duration kFirstPause = std::chrono::milliseconds(2), kLongestPause = std::chrono::milliseconds(250);

// Where the kernel has the first one (since 6.15), TCP sends again every few seconds what was lost while a
// network was held, instead of after up to two minutes. It counts how often, so the others must allow for
// more of it: a connection is given up after 21 minutes then, and one that is being made after 10.
constexpr char kResendAtLeastEvery[] = "tcp_rto_max_ms";
constexpr char kSeconds[] = "5000";
struct Setting {
  const char* name;
  const char* value;  // the largest one
};
constexpr Setting kSendAgain[] = {{"tcp_retries2", "255"},
                                  {"tcp_orphan_retries", "255"},
                                  {"tcp_syn_retries", "127"},
                                  {"tcp_synack_retries", "255"}};
// Without the first one.
constexpr Setting kSendAgainLess = {"tcp_retries2", "30"};

// Of the calling thread's network. kNotFound: this kernel has no such setting.
absl::Status WriteSetting(const std::string& name, const std::string& value) {
  const std::string path = "/proc/sys/net/" + name;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, "open " + path);
  return WriteAll(file, value, path);
}

absl::Status SetTcp() {
  const std::string folder = "ipv4/";
  const absl::Status bounded = WriteSetting(folder + kResendAtLeastEvery, kSeconds);
  if (absl::IsNotFound(bounded)) return WriteSetting(folder + kSendAgainLess.name, kSendAgainLess.value);
  SIDING_RETURN_IF_ERROR(bounded);
  for (const Setting& setting : kSendAgain)
    SIDING_RETURN_IF_ERROR(WriteSetting(folder + setting.name, setting.value));
  return absl::OkStatus();
}

// CRIU cannot dump it, and programs that ask for it fall back to TCP.
absl::Status RefuseMptcp() {
  const absl::Status refused = WriteSetting("mptcp/enabled", "0");
  return absl::IsNotFound(refused) ? absl::OkStatus() : refused;
}

int DrawVni() {
  std::random_device random;
  return std::uniform_int_distribution<int>(1, kLastVni)(random);
}

absl::Status CheckRank(int rank) {
  if (IsGangRank(rank)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank: ", rank, " is not in 0 to ", kLastGangRank));
}

absl::Status CheckPort(int port) {
  if (port >= 1 && port <= kLargestPort) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("port: ", port, " is not in 1 to ", kLargestPort));
}

absl::Status MakeGangLink(const GangNetworkOptions& options, const IpAddress& local, int netns_fd) {
  VxlanLink link{.name = kGangLink, .mac = GangMac(options.rank), .local = local, .port = options.port};
  absl::Status made;
  for (int draw = 0; draw < kDraws; ++draw) {
    link.vni = DrawVni();
    made = MakeVxlan(link, options.mtu, netns_fd);
    if (!absl::IsAlreadyExists(made)) break;
  }
  return made;
}

// Without addresses of IPv6, of which each link would make one.
absl::Status StartGangLink(const GangNetworkOptions& options) {
  const absl::Status disabled = WriteSetting(absl::StrCat("ipv6/conf/", kGangLink, "/disable_ipv6"), "1");
  if (!disabled.ok() && !absl::IsNotFound(disabled)) return disabled;
  SIDING_ASSIGN_OR_RETURN(const IpAddress address, ParseIp(GangAddress(options.rank)));
  SIDING_RETURN_IF_ERROR(AddAddress(kGangLink, address, kGangPrefix));
  return Annotate(SetUpWithoutArp(kGangLink), absl::StrCat("UDP port ", options.port));
}

absl::StatusOr<VxlanPeer> PeerOf(const GangEndpoint& endpoint, const IpAddress& local) {
  SIDING_RETURN_IF_ERROR(CheckRank(endpoint.rank));
  VxlanPeer peer{.mac = GangMac(endpoint.rank), .port = endpoint.port, .vni = endpoint.vni};
  SIDING_ASSIGN_OR_RETURN(peer.address, ParseIp(GangAddress(endpoint.rank)));
  SIDING_ASSIGN_OR_RETURN(peer.node, ParseIp(endpoint.address));
  SIDING_RETURN_IF_ERROR(CheckPort(endpoint.port));
  if (endpoint.vni < 1 || endpoint.vni > kLastVni)
    return absl::InvalidArgumentError(absl::StrCat("vni: ", endpoint.vni, " is not in 1 to ", kLastVni));
  if (IsLoopback(peer.node) != IsLoopback(local)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address: ", endpoint.address, " and this node's, ", ToText(local),
                     ", do not reach each other: --gang-address of their agents says others"));
  }
  if (peer.node.family != local.family) {
    return absl::InvalidArgumentError(
        absl::StrCat("address: ", endpoint.address, " and this node's are not both of IPv4, or of IPv6"));
  }
  return peer;
}

absl::StatusOr<std::vector<VxlanPeer>> PeersOf(const VxlanLink& link, const std::vector<GangEndpoint>& all) {
  const std::optional<int> own = RankOfMac(link.mac);
  std::set<int> ranks;
  std::vector<VxlanPeer> peers;
  for (const GangEndpoint& endpoint : all) {
    if (endpoint.rank == own) continue;
    const std::string who = absl::StrCat("the endpoint of rank ", endpoint.rank);
    if (!ranks.insert(endpoint.rank).second) return absl::InvalidArgumentError(who + " is there twice");
    const auto peer = PeerOf(endpoint, link.local);
    if (!peer.ok()) return Annotate(peer.status(), who);
    peers.push_back(*peer);
  }
  return peers;
}

std::string NetworkLink(pid_t pid) { return absl::StrCat("/proc/", pid, "/ns/net"); }

}  // namespace

absl::StatusOr<UniqueFd> MakeGangNetwork(const GangNetworkOptions& options) {
  SIDING_RETURN_IF_ERROR(CheckRank(options.rank));
  SIDING_RETURN_IF_ERROR(CheckPort(options.port));
  if (options.mtu < kSmallestMtu || options.mtu > kLargestMtu) {
    return absl::InvalidArgumentError(
        absl::StrCat("mtu: ", options.mtu, " is not in ", kSmallestMtu, " to ", kLargestMtu));
  }
  SIDING_ASSIGN_OR_RETURN(const IpAddress local, ParseIp(options.address));
  // Held before there is anything that a packet could come by.
  SIDING_ASSIGN_OR_RETURN(UniqueFd network, MakeNetwork([]() -> absl::Status {
                            SIDING_RETURN_IF_ERROR(HoldPackets());
                            SIDING_RETURN_IF_ERROR(SetTcp());
                            SIDING_RETURN_IF_ERROR(RefuseMptcp());
                            return SetUp(kLoopback);
                          }));
  SIDING_RETURN_IF_ERROR(MakeGangLink(options, local, network.get()));
  SIDING_RETURN_IF_ERROR(InNetwork(network.get(), [&] { return StartGangLink(options); }));
  return network;
}

absl::StatusOr<GangEndpoint> EndpointOf(int netns_fd) {
  GangEndpoint endpoint;
  SIDING_RETURN_IF_ERROR(InNetwork(netns_fd, [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const VxlanLink link, ReadVxlan(kGangLink));
    const std::optional<int> rank = RankOfMac(link.mac);
    if (!rank) return absl::FailedPreconditionError(absl::StrCat(kGangLink, " is no link of a gang's rank"));
    endpoint = {*rank, ToText(link.local), link.port, link.vni};
    return absl::OkStatus();
  }));
  return endpoint;
}

absl::Status JoinGangNetwork(int netns_fd, const std::vector<GangEndpoint>& all) {
  return InNetwork(netns_fd, [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const VxlanLink link, ReadVxlan(kGangLink));
    SIDING_ASSIGN_OR_RETURN(const std::vector<VxlanPeer> peers, PeersOf(link, all));
    return SetPeers(kGangLink, peers);
  });
}

absl::Status HoldNetwork(int netns_fd) { return InNetwork(netns_fd, HoldPackets); }

absl::Status LiftNetwork(int netns_fd) { return InNetwork(netns_fd, LiftPackets); }

absl::StatusOr<bool> IsHeld(int netns_fd) {
  bool held = false;
  SIDING_RETURN_IF_ERROR(InNetwork(netns_fd, [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(held, ArePacketsHeld());
    return absl::OkStatus();
  }));
  return held;
}

absl::StatusOr<bool> AwaitConnections(int netns_fd, Drained enough, Duration patience,
                                      const NotCounted& not_counted, const std::function<bool()>& stop) {
  absl::StatusOr<Drained> left = Drained::kOrphans;
  SIDING_RETURN_IF_ERROR(InNetwork(netns_fd, [&] {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (Duration pause = kFirstPause;; pause = std::min(pause + pause / 4, kLongestPause)) {
      left = LookAtConnections(not_counted);
      const auto now = std::chrono::steady_clock::now();
      if (!left.ok() || *left <= enough || stop() || now >= until) return left.status();
      std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(pause, until - now));
    }
  }));
  return *left <= enough;
}

absl::Status CutNetworkOff(int netns_fd) {
  return InNetwork(netns_fd, [] { return RemoveLink(kGangLink); });
}

absl::StatusOr<UniqueFd> OpenNetworkOf(pid_t pid) {
  const std::string path = NetworkLink(pid);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + path);
  return fd;
}

bool HasOwnNetwork(pid_t pid) {
  struct stat own = {}, its = {};
  return stat("/proc/thread-self/ns/net", &own) == 0 && stat(NetworkLink(pid).c_str(), &its) == 0 &&
         (own.st_dev != its.st_dev || own.st_ino != its.st_ino);
}

std::string WhyNoGangNetwork() {
  // The node's network stays as it is, and this one has no user of the port.
  const auto tried = MakeNetwork([]() -> absl::Status {
    const auto network = MakeGangNetwork({.rank = 0, .address = "127.0.0.1"});
    SIDING_RETURN_IF_ERROR(network.status());
    SIDING_RETURN_IF_ERROR(JoinGangNetwork(
        network->get(), {GangEndpoint{.rank = 1, .address = "127.0.0.2", .port = 4789, .vni = 1}}));
    SIDING_RETURN_IF_ERROR(AwaitConnections(network->get(), Drained::kYes, Duration(0)).status());
    return LiftNetwork(network->get());
  });
  return tried.ok() ? "" : std::string(tried.status().message());
}

}  // namespace siding
