// How the ranks of a gang are addressed: by the rank alone, so that it is the same on whatever nodes they
// are. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

// Rank 0 has 10.83.0.1, the last one 10.83.255.254, the last address of the network that is no broadcast.
inline constexpr int kGangPrefix = 16;
inline constexpr int kLastGangRank = 65533;
inline bool IsGangRank(int rank) { return rank >= 0 && rank <= kLastGangRank; }

// "10.83.0.1" has the first one, 0. Empty: there is no such rank.
std::string GangAddress(int rank);
// The six bytes of a rank's hardware address: 02:53, which is nobody's product, and the rank.
std::string GangMac(int rank);
// nullopt: it is none of those.
std::optional<int> RankOfMac(absl::string_view mac);

// An address of IPv4 or IPv6, in the order of the network.
struct IpAddress {
  int family = 0;  // AF_INET, AF_INET6
  std::string bytes;
  bool operator==(const IpAddress&) const = default;
};
// kInvalidArgument names the text; the address that means all of them is none.
absl::StatusOr<IpAddress> ParseIp(const std::string& text);
std::string ToText(const IpAddress& address);
bool IsLoopback(const IpAddress& address);

}  // namespace siding
