#include "agent/network/links.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/network/netlink.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kVxlan[] = "vxlan";
// IFLA_VXLAN_LOCALBYPASS, since Linux 6.5; others do not look at it. The short way from one link of a node to
// another (the "local bypass") leaves the sender's route at a packet, and so the receiver drops what does not
// come through a bridge.
constexpr int kLocalBypass = IFLA_VXLAN_VNIFILTER + 1;

std::string PortAttribute(int type, int port) {
  return Attribute(type, BytesOf(htons(static_cast<uint16_t>(port))));
}

absl::Status Tell(int type, int flags, const std::string& header, const std::string& attributes,
                  const std::string& what) {
  return TellKernel(NETLINK_ROUTE, NetlinkMessage(type, flags | NLM_F_ACK, header, attributes), what);
}

absl::StatusOr<int> IndexOf(const std::string& name) {
  const unsigned index = if_nametoindex(name.c_str());
  if (index == 0) return ErrnoError(errno, "find the link " + name);
  return static_cast<int>(index);
}

absl::Status SetFlags(const std::string& name, unsigned flags) {
  ifinfomsg header = {};
  SIDING_ASSIGN_OR_RETURN(header.ifi_index, IndexOf(name));
  header.ifi_flags = flags;
  header.ifi_change = flags;
  return Tell(RTM_NEWLINK, 0, BytesOf(header), "", absl::StrCat("set the link ", name, " up"));
}

// What a link knows of its peers: the family AF_BRIDGE has the nodes by hardware address (the forwarding
// entries), the others have the hardware addresses by address (the neighbours).
std::string NeighbourHeader(int family, int index) {
  ndmsg header = {};
  header.ndm_family = static_cast<uint8_t>(family);
  header.ndm_ifindex = index;
  header.ndm_state = NUD_PERMANENT;
  header.ndm_flags = family == AF_BRIDGE ? NTF_SELF : 0;
  return BytesOf(header);
}

// Removes those permanent entries whose key, of the attribute `type`, is not to be kept.
absl::Status RemoveOthers(int family, int index, int type, const std::set<std::string>& keep) {
  const std::string what = family == AF_BRIDGE ? "forwarding entries" : "neighbours";
  SIDING_ASSIGN_OR_RETURN(
      const auto entries,
      AskKernel(NETLINK_ROUTE, NetlinkMessage(RTM_GETNEIGH, NLM_F_DUMP, NeighbourHeader(family, index), ""),
                "list " + what));
  for (const std::string& entry : entries) {
    ndmsg header = {};
    if (entry.size() < sizeof header) continue;
    std::memcpy(&header, entry.data(), sizeof header);
    if (header.ndm_ifindex != index || (header.ndm_state & NUD_PERMANENT) == 0) continue;
    const NetlinkAttributes attributes = ParseAttributes(absl::string_view(entry).substr(sizeof header));
    const auto key = attributes.find(type);
    if (key == attributes.end() || keep.contains(std::string(key->second))) continue;
    const absl::Status removed = Tell(RTM_DELNEIGH, 0, NeighbourHeader(family, index),
                                      Attribute(type, std::string(key->second)), "remove " + what);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeVxlan(const VxlanLink& link, int mtu, int netns_fd) {
  const bool v4 = link.local.family == AF_INET;
  const std::string data = NumberAttribute(IFLA_VXLAN_ID, static_cast<uint32_t>(link.vni)) +
                           Attribute(v4 ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, link.local.bytes) +
                           PortAttribute(IFLA_VXLAN_PORT, link.port) +
                           Attribute(IFLA_VXLAN_LEARNING, BytesOf(uint8_t{0})) +
                           Attribute(kLocalBypass, BytesOf(uint8_t{0}));
  const std::string attributes = TextAttribute(IFLA_IFNAME, link.name) + Attribute(IFLA_ADDRESS, link.mac) +
                                 NumberAttribute(IFLA_MTU, static_cast<uint32_t>(mtu)) +
                                 NumberAttribute(IFLA_NET_NS_FD, static_cast<uint32_t>(netns_fd)) +
                                 NestAttribute(IFLA_LINKINFO, TextAttribute(IFLA_INFO_KIND, kVxlan) +
                                                                  NestAttribute(IFLA_INFO_DATA, data));
  return Tell(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, BytesOf(ifinfomsg{}), attributes,
              "make the link " + link.name);
}

absl::StatusOr<VxlanLink> ReadVxlan(const std::string& name) {
  const std::string what = "look at the link " + name;
  SIDING_ASSIGN_OR_RETURN(const auto answers, AskKernel(NETLINK_ROUTE,
                                                        NetlinkMessage(RTM_GETLINK, 0, BytesOf(ifinfomsg{}),
                                                                       TextAttribute(IFLA_IFNAME, name)),
                                                        what));
  if (answers.empty() || answers[0].size() < sizeof(ifinfomsg)) return absl::InternalError(what);
  auto attributes = ParseAttributes(absl::string_view(answers[0]).substr(sizeof(ifinfomsg)));
  auto info = ParseAttributes(attributes[IFLA_LINKINFO]);
  auto data = ParseAttributes(info[IFLA_INFO_DATA]);
  const auto vni = ValueOf<uint32_t>(data, IFLA_VXLAN_ID);
  const auto port = ValueOf<uint16_t>(data, IFLA_VXLAN_PORT);
  const bool v4 = data.contains(IFLA_VXLAN_LOCAL);
  const absl::string_view local = data[v4 ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6];
  if (!vni || !port || local.size() != (v4 ? sizeof(in_addr) : sizeof(in6_addr)))
    return absl::FailedPreconditionError(what + ": it is no VXLAN with an address");
  return VxlanLink{.name = name,
                   .mac = std::string(attributes[IFLA_ADDRESS]),
                   .vni = static_cast<int>(*vni),
                   .local = {v4 ? AF_INET : AF_INET6, std::string(local)},
                   .port = ntohs(*port)};
}

absl::Status RemoveLink(const std::string& name) {
  ifinfomsg header = {};
  const auto index = IndexOf(name);
  if (!index.ok()) return absl::OkStatus();
  header.ifi_index = *index;
  return Tell(RTM_DELLINK, 0, BytesOf(header), "", "remove the link " + name);
}

absl::Status AddAddress(const std::string& name, const IpAddress& address, int prefix) {
  SIDING_ASSIGN_OR_RETURN(const int index, IndexOf(name));
  ifaddrmsg header = {};
  header.ifa_family = static_cast<uint8_t>(address.family);
  header.ifa_prefixlen = static_cast<uint8_t>(prefix);
  header.ifa_index = static_cast<uint32_t>(index);
  return Tell(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, BytesOf(header),
              Attribute(IFA_LOCAL, address.bytes) + Attribute(IFA_ADDRESS, address.bytes),
              absl::StrCat("give the link ", name, " the address ", ToText(address)));
}

absl::Status SetUp(const std::string& name) { return SetFlags(name, IFF_UP); }

absl::Status SetUpWithoutArp(const std::string& name) { return SetFlags(name, IFF_UP | IFF_NOARP); }

absl::Status SetPeers(const std::string& name, const std::vector<VxlanPeer>& peers) {
  SIDING_ASSIGN_OR_RETURN(const int index, IndexOf(name));
  std::set<std::string> macs, addresses;
  for (const VxlanPeer& peer : peers) {
    macs.insert(peer.mac);
    addresses.insert(peer.address.bytes);
  }
  SIDING_RETURN_IF_ERROR(RemoveOthers(AF_BRIDGE, index, NDA_LLADDR, macs));
  SIDING_RETURN_IF_ERROR(RemoveOthers(AF_INET, index, NDA_DST, addresses));
  constexpr int kReplace = NLM_F_CREATE | NLM_F_REPLACE;
  for (const VxlanPeer& peer : peers) {
    SIDING_RETURN_IF_ERROR(Tell(
        RTM_NEWNEIGH, kReplace, NeighbourHeader(AF_BRIDGE, index),
        Attribute(NDA_LLADDR, peer.mac) + Attribute(NDA_DST, peer.node.bytes) +
            NumberAttribute(NDA_VNI, static_cast<uint32_t>(peer.vni)) + PortAttribute(NDA_PORT, peer.port),
        absl::StrCat("send the frames for ", ToText(peer.address), " to ", ToText(peer.node))));
    SIDING_RETURN_IF_ERROR(Tell(RTM_NEWNEIGH, kReplace, NeighbourHeader(peer.address.family, index),
                                Attribute(NDA_DST, peer.address.bytes) + Attribute(NDA_LLADDR, peer.mac),
                                "know the neighbour " + ToText(peer.address)));
  }
  return absl::OkStatus();
}

}  // namespace siding
