#include "agent/network/packet_tables.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "agent/network/netlink.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kTried[] = "siding", kHold[] = "siding_hold", kChain[] = "input";
constexpr int kBeforeAllOthers = -1000;

std::string NfMessage(int type, int flags, uint8_t family, int resource, const std::string& attributes) {
  nfgenmsg of = {};
  of.nfgen_family = family;
  of.version = NFNETLINK_V0;
  of.res_id = htons(static_cast<uint16_t>(resource));
  return NetlinkMessage(type, flags, BytesOf(of), attributes);
}

// About a table of the family inet.
std::string Message(int type, int flags, const std::string& attributes) {
  return NfMessage((NFNL_SUBSYS_NFTABLES << 8) | type, flags, NFPROTO_INET, 0, attributes);
}

// What the kernel does all at once or not at all.
std::string Batch(const std::string& messages) {
  return NfMessage(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, "") + messages +
         NfMessage(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, "");
}

std::string Expression(absl::string_view name, const std::string& data) {
  return NestAttribute(NFTA_LIST_ELEM,
                       TextAttribute(NFTA_EXPR_NAME, name) + NestAttribute(NFTA_EXPR_DATA, data));
}

// "meta mark 0xc114 accept". The mark is compared in the order of the machine.
std::string AcceptCriu() {
  const std::string verdict =
      NestAttribute(NFTA_DATA_VERDICT, BigEndianAttribute(NFTA_VERDICT_CODE, NF_ACCEPT));
  return Expression("meta", BigEndianAttribute(NFTA_META_KEY, NFT_META_MARK) +
                                BigEndianAttribute(NFTA_META_DREG, NFT_REG_1)) +
         Expression("cmp", BigEndianAttribute(NFTA_CMP_SREG, NFT_REG_1) +
                               BigEndianAttribute(NFTA_CMP_OP, NFT_CMP_EQ) +
                               NestAttribute(NFTA_CMP_DATA, NumberAttribute(NFTA_DATA_VALUE, kCriuMark))) +
         Expression("immediate", BigEndianAttribute(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT) +
                                     NestAttribute(NFTA_IMMEDIATE_DATA, verdict));
}

std::string MakeHold() {
  const std::string hook = BigEndianAttribute(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_IN) +
                           BigEndianAttribute(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(kBeforeAllOthers));
  const std::string chain = TextAttribute(NFTA_CHAIN_TABLE, kHold) + TextAttribute(NFTA_CHAIN_NAME, kChain) +
                            NestAttribute(NFTA_CHAIN_HOOK, hook) +
                            BigEndianAttribute(NFTA_CHAIN_POLICY, NF_DROP) +
                            TextAttribute(NFTA_CHAIN_TYPE, "filter");
  const std::string rule = TextAttribute(NFTA_RULE_TABLE, kHold) + TextAttribute(NFTA_RULE_CHAIN, kChain) +
                           NestAttribute(NFTA_RULE_EXPRESSIONS, AcceptCriu());
  return Batch(Message(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, TextAttribute(NFTA_TABLE_NAME, kHold)) +
               Message(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, chain) +
               Message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, rule));
}

absl::Status TryHere(uint32_t flags) {
  if (unshare(CLONE_NEWNET) != 0)
    return absl::UnavailableError(std::string("a network of its own: ") + std::strerror(errno));
  const std::string table =
      TextAttribute(NFTA_TABLE_NAME, kTried) + BigEndianAttribute(NFTA_TABLE_FLAGS, flags);
  const absl::Status made =
      TellKernel(NETLINK_NETFILTER, Batch(Message(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK, table)),
                 "a table of nftables");
  // For lack of memory, which says nothing about tables.
  return absl::IsResourceExhausted(made) ? absl::UnavailableError(made.message()) : made;
}

}  // namespace

absl::Status TryPacketTable(uint32_t flags) {
  absl::Status status;
  // It is in that network for the rest of its life.
  std::thread([&] { status = TryHere(flags); }).join();
  return status;
}

absl::Status HoldPackets() {
  // The table is there with all that is in it, or not at all.
  const absl::Status made = TellKernel(NETLINK_NETFILTER, MakeHold(), "hold packets by nftables");
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

absl::Status LiftPackets() {
  const absl::Status removed = TellKernel(
      NETLINK_NETFILTER, Batch(Message(NFT_MSG_DELTABLE, NLM_F_ACK, TextAttribute(NFTA_TABLE_NAME, kHold))),
      "let packets in again");
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<bool> ArePacketsHeld() {
  const auto table =
      AskKernel(NETLINK_NETFILTER, Message(NFT_MSG_GETTABLE, 0, TextAttribute(NFTA_TABLE_NAME, kHold)),
                "look whether packets are held");
  if (absl::IsNotFound(table.status())) return false;
  SIDING_RETURN_IF_ERROR(table.status());
  return true;
}

}  // namespace siding
