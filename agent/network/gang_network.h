// The network of one rank of a gang (a member) on a node: a network namespace of its own, with a loopback and
// one VXLAN link ("siding0") to the other members, and nothing else. It leads nowhere but to them.
//
// A member's address and hardware address follow from its rank, so a member that is restored elsewhere has
// the same ones, and connections go on. Where the members are, their endpoints say; each has a number (VNI)
// of its own, by which the node's kernel knows for whom a packet is. Nothing is learnt, asked for or flooded:
// what is sent to a member of which nothing is known is lost, without an error, as on a wire that is cut.
//
// VXLAN has no secrets. Who can send UDP to a node's port and knows a VNI can send to that member. Two
// members on one node reach each other since Linux 6.5.
//
// All functions are for root, and thread-safe: what is done inside of a network is done on a thread of its
// own. The caller's network is the node's, in which the packets of all members are UDP at one port.
//
// A network lives as long as a descriptor of it is open, or a process is in it. The kernel then takes it away
// a moment later, with its link. Errors name what was done ("make the link siding0: Operation not
// supported").
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/network/drained.h"
#include "agent/network/gang_address.h"
#include "common/files.h"
#include "common/units.h"

namespace siding {

inline constexpr char kGangLink[] = "siding0";

// Where a member's network is reached from other nodes.
struct GangEndpoint {
  int rank = 0;
  std::string address;  // of its node, IPv4 or IPv6: of all members the same of these
  int port = 0;         // UDP
  int vni = 0;          // 1 to 2^24 - 1
  bool operator==(const GangEndpoint&) const = default;
};

struct GangNetworkOptions {
  int rank = 0;
  std::string address;  // of this node, as for the endpoint
  int port = 4789;
  // Bytes of a packet inside. Outside it has 50 more with IPv4, and 70 with IPv6, which have to fit.
  int mtu = 1450;
};

// Makes it, held, and knowing no other member. On an error nothing of it is left. kInvalidArgument names the
// field that is not right.
absl::StatusOr<UniqueFd> MakeGangNetwork(const GangNetworkOptions& options);

// Read back from the link.
absl::StatusOr<GangEndpoint> EndpointOf(int netns_fd);

// The member knows `all`, and no others any more. Its own endpoint may be among them, and is not looked at.
// It does not lift. After an error some of them may be known: to be called again. kInvalidArgument names the
// rank whose endpoint is not right; nothing has changed then.
absl::Status JoinGangNetwork(int netns_fd, const std::vector<GangEndpoint>& all);

// While a network is held no packet comes in, from others or over the loopback, but criu's own ones; what is
// sent goes out, and who sends sees no error. TCP sends it again. It stays held when the caller dies. Both do
// nothing where it is so already.
absl::Status HoldNetwork(int netns_fd);
absl::Status LiftNetwork(int netns_fd);
absl::StatusOr<bool> IsHeld(int netns_fd);

// Waits until its connections are as near to drained as `enough`; false: they are not after `patience`, or
// `stop` was true before. One to a peer that does not answer never is.
absl::StatusOr<bool> AwaitConnections(
    int netns_fd, Drained enough, Duration patience, const NotCounted& not_counted = {},
    const std::function<bool()>& stop = [] { return false; });

// Takes its link away: what its processes have left behind reaches nobody, and the network is gone with the
// last of them.
absl::Status CutNetworkOff(int netns_fd);

// That of a process. kNotFound: there is no such process.
absl::StatusOr<UniqueFd> OpenNetworkOf(pid_t pid);
// Whether it is in another one than the caller. False if it is gone.
bool HasOwnNetwork(pid_t pid);

// Why this node cannot have such networks, for want of rights or of something in the kernel: makes one, and a
// node's for it, and takes both away. Empty: it can. It does not say whether the port is free.
std::string WhyNoGangNetwork();

}  // namespace siding
