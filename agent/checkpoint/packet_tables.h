// The tables of nftables by which criu holds back the packets of connections during a dump.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace siding {

// The table belongs to the socket that makes it, and goes with it (NFT_TABLE_F_OWNER, since Linux 5.12).
inline constexpr uint32_t kOwnedTable = 2;

// Whether this kernel makes a table with such flags: tries it, in a network of its own that is gone
// afterwards. Not OK: it does not, and why. kUnavailable: that cannot be tried here. For root.
absl::Status TryPacketTable(uint32_t flags = kOwnedTable);

}  // namespace siding
