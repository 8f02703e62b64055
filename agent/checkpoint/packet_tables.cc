#include "agent/checkpoint/packet_tables.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kName[] = "siding";

void Append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
  bytes.resize(NLMSG_ALIGN(bytes.size()));
}

std::string Attribute(uint16_t type, const void* data, size_t size) {
  const nlattr head = {static_cast<uint16_t>(NLA_HDRLEN + size), type};
  std::string bytes;
  Append(bytes, &head, sizeof head);
  Append(bytes, data, size);
  return bytes;
}

std::string Message(int type, int flags, uint8_t family, int resource, const std::string& attributes) {
  nlmsghdr head = {};
  head.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(sizeof(nfgenmsg)) + attributes.size());
  head.nlmsg_type = static_cast<uint16_t>(type);
  head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  nfgenmsg of = {};
  of.nfgen_family = family;
  of.version = NFNETLINK_V0;
  of.res_id = htons(static_cast<uint16_t>(resource));
  std::string bytes;
  Append(bytes, &head, sizeof head);
  Append(bytes, &of, sizeof of);
  return bytes + attributes;
}

// What the kernel says to a table with these flags; 0: it has made it.
int MakeTable(int socket, uint32_t flags) {
  const uint32_t wire = htonl(flags);
  const std::string table =
      Attribute(NFTA_TABLE_NAME, kName, sizeof kName) + Attribute(NFTA_TABLE_FLAGS, &wire, sizeof wire);
  const std::string batch = Message(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, "") +
                            Message((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK,
                                    NFPROTO_INET, 0, table) +
                            Message(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, "");
  if (send(socket, batch.data(), batch.size(), 0) < 0) return errno;
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = recv(socket, answer, sizeof answer, 0);
  if (size < 0) return errno;
  nlmsghdr head = {};
  nlmsgerr said = {};
  if (static_cast<size_t>(size) < NLMSG_LENGTH(sizeof said)) return EPROTO;
  std::memcpy(&head, answer, sizeof head);
  std::memcpy(&said, answer + NLMSG_HDRLEN, sizeof said);
  return head.nlmsg_type == NLMSG_ERROR ? -said.error : EPROTO;
}

absl::Status TryHere(uint32_t flags) {
  if (unshare(CLONE_NEWNET) != 0)
    return absl::UnavailableError(std::string("a network of its own: ") + std::strerror(errno));
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!socket.valid()) return ErrnoError(errno, "netlink");
  const int error = MakeTable(socket.get(), flags);
  if (error == ENOMEM || error == ENOBUFS)  // which says nothing about tables
    return absl::UnavailableError(std::string("a table of nftables: ") + std::strerror(error));
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "a table of nftables");
}

}  // namespace

absl::Status TryPacketTable(uint32_t flags) {
  absl::Status status;
  // It is in that network for the rest of its life.
  std::thread([&] { status = TryHere(flags); }).join();
  return status;
}

}  // namespace siding
