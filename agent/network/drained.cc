#include "agent/network/drained.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "agent/network/gang_address.h"
#include "agent/network/netlink.h"
#include "common/status.h"

namespace siding {
namespace {

// States of the kernel (tcp_states.h) in which one is asked for, of which its listener knows (listed as
// 12); and in which there is none, or not any more.
constexpr int kIsBeingMade = 3, kTimeWait = 6, kClosed = 7, kListens = 10;
// The word that it is closed counts as a byte.
constexpr uint32_t kEnd = 1;
constexpr uint32_t kStates = ~(1U << kTimeWait | 1U << kClosed | 1U << kListens);

// Of one answer, which describes one connection.
// An address of IPv4 inside one of IPv6 as IPv4.
std::string RemoteOf(const inet_diag_msg& connection) {
  const auto* const bytes = reinterpret_cast<const char*>(connection.id.idiag_dst);
  if (connection.idiag_family == AF_INET) return {bytes, sizeof(in_addr)};
  const std::string v6(bytes, sizeof(in6_addr));
  const std::string mapped = std::string(10, '\0') + "\xff\xff";
  return v6.rfind(mapped, 0) == 0 ? v6.substr(mapped.size()) : v6;
}

Drained LookAt(const std::string& answer, const std::set<std::string>& gone, Duration most_silence) {
  inet_diag_msg connection = {};
  if (answer.size() < sizeof connection) return Drained::kYes;
  std::memcpy(&connection, answer.data(), sizeof connection);
  if (connection.idiag_state == kIsBeingMade) return Drained::kNotYet;
  const bool closed_by_processes = connection.idiag_inode == 0;
  const NetlinkAttributes attributes = ParseAttributes(absl::string_view(answer).substr(sizeof connection));
  const auto info = attributes.find(INET_DIAG_INFO);
  tcp_info tcp = {};
  if (info != attributes.end())
    info->second.copy(reinterpret_cast<char*>(&tcp), sizeof tcp);  // a kernel's may be longer or shorter
  if (closed_by_processes && connection.idiag_wqueue > 0) {
    const bool is_silent =
        most_silence > Duration(0) && std::chrono::milliseconds(tcp.tcpi_last_ack_recv) > most_silence;
    if (is_silent || gone.contains(RemoteOf(connection))) return Drained::kYes;
    return connection.idiag_wqueue > kEnd ? Drained::kOrphans : Drained::kEnds;
  }
  return tcp.tcpi_unacked == 0 ? Drained::kYes : Drained::kNotYet;
}

}  // namespace

absl::StatusOr<Drained> LookAtConnections(const NotCounted& not_counted) {
  std::set<std::string> gone;
  for (const int rank : not_counted.ranks) {
    SIDING_ASSIGN_OR_RETURN(const IpAddress address, ParseIp(GangAddress(rank)));
    gone.insert(address.bytes);
  }
  auto all = Drained::kYes;
  for (const int family : {AF_INET, AF_INET6}) {
    inet_diag_req_v2 header = {};
    header.sdiag_family = static_cast<uint8_t>(family);
    header.sdiag_protocol = IPPROTO_TCP;
    header.idiag_ext = 1 << (INET_DIAG_INFO - 1);
    header.idiag_states = kStates;
    const auto answers =
        AskKernel(NETLINK_SOCK_DIAG, NetlinkMessage(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, BytesOf(header), ""),
                  "look at the TCP connections");
    // A kernel without IPv6 knows none of its connections.
    if (family == AF_INET6 && absl::IsNotFound(answers.status())) continue;
    SIDING_RETURN_IF_ERROR(answers.status());
    for (const std::string& answer : *answers)
      all = std::max(all, LookAt(answer, gone, not_counted.most_silence));
  }
  return all;
}

}  // namespace siding
