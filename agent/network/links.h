// Links of the network that the calling thread is in: its loopback, and VXLAN links that learn nothing. For
// root. Thread-safe; errors name the link and what was to be done with it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/network/gang_address.h"

namespace siding {

// Bits of a number of a VXLAN (VNI).
inline constexpr int kLastVni = 0xffffff;

struct VxlanLink {
  std::string name;
  std::string mac;
  int vni = 0;
  IpAddress local;  // of the node
  int port = 0;     // UDP, of all links of the node and their peers
};

// Makes it in the network behind `netns_fd`. Its packets go through the calling thread's, where its socket is
// from when it is up. kAlreadyExists: there is such a VNI at this port.
absl::Status MakeVxlan(const VxlanLink& link, int mtu, int netns_fd);
// kNotFound: there is no such link.
absl::StatusOr<VxlanLink> ReadVxlan(const std::string& name);

// Not there: nothing to do.
absl::Status RemoveLink(const std::string& name);
absl::Status AddAddress(const std::string& name, const IpAddress& address, int prefix);
absl::Status SetUp(const std::string& name);
// Without ARP: what is sent to an address that is not known is lost, and the sender sees no error.
absl::Status SetUpWithoutArp(const std::string& name);

// Whom such a link sends to: the frames for `mac`, which is the neighbour with `address`, to a node.
struct VxlanPeer {
  IpAddress address;
  std::string mac;
  IpAddress node;
  int port = 0;
  int vni = 0;
};
// These alone: others are removed first.
absl::Status SetPeers(const std::string& name, const std::vector<VxlanPeer>& peers);

}  // namespace siding
