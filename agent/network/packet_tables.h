// Tables of nftables by which packets are held back: those of criu, and the one that holds all that comes
// into a network.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

// The table belongs to the socket that makes it, and goes with it (NFT_TABLE_F_OWNER, since Linux 5.12).
inline constexpr uint32_t kOwnedTable = 2;

// Whether this kernel makes a table with such flags: tries it, in a network of its own that is gone
// afterwards. Not OK: it does not, and why. kUnavailable: that cannot be tried here. For root.
absl::Status TryPacketTable(uint32_t flags = kOwnedTable);

// The mark (SO_MARK) of criu's own packets, which the hold lets in.
inline constexpr uint32_t kCriuMark = 0xc114;

// Of the network that the calling thread is in; for root, thread-safe. While it is held, no packet comes in,
// one that was sent to itself neither, and who sends sees no error. The hold belongs to the network, and
// stays when who has set it dies. Holding what is held and lifting what is not do nothing.
absl::Status HoldPackets();
absl::Status LiftPackets();
absl::StatusOr<bool> ArePacketsHeld();

}  // namespace siding
