#include "agent/network/gang_address.h"

#include <arpa/inet.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

constexpr size_t kMacBytes = 6;
constexpr char kMacPrefix[] = {0x02, 0x53};

}  // namespace

std::string GangAddress(int rank) {
  if (!IsGangRank(rank)) return "";
  const int host = rank + 1;
  return absl::StrCat("10.83.", host >> 8, ".", host & 0xff);
}

std::string GangMac(int rank) {
  std::string mac(kMacPrefix, sizeof kMacPrefix);
  for (int shift = 24; shift >= 0; shift -= 8) mac += static_cast<char>(rank >> shift);
  return mac;
}

std::optional<int> RankOfMac(absl::string_view mac) {
  if (mac.size() != kMacBytes) return std::nullopt;
  uint32_t rank = 0;
  for (const char byte : mac.substr(sizeof kMacPrefix)) rank = rank << 8 | static_cast<uint8_t>(byte);
  // Also where the prefix is another one.
  if (rank > kLastGangRank || GangMac(static_cast<int>(rank)) != mac) return std::nullopt;
  return static_cast<int>(rank);
}

absl::StatusOr<IpAddress> ParseIp(const std::string& text) {
  for (const int family : {AF_INET, AF_INET6}) {
    IpAddress address{family, std::string(family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr), '\0')};
    if (inet_pton(family, text.c_str(), address.bytes.data()) == 1 &&
        address.bytes.find_first_not_of('\0') != std::string::npos)
      return address;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "address: '", text, "' is no address of a node in IPv4 or IPv6, such as 192.0.2.7 or 2001:db8::7"));
}

std::string ToText(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.family, address.bytes.data(), text, sizeof text);
  return text;
}

bool IsLoopback(const IpAddress& address) {
  return address.family == AF_INET ? address.bytes[0] == 127
                                   : address == ParseIp("::1").value_or(IpAddress());
}

}  // namespace siding
