// How programs of siding's on one machine talk: packets of a unix socket (SOCK_SEQPACKET), each a text of
// lines "key value", whose first line is what it is and its version. Thread-safe: nothing is kept.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace siding {

// A socket that is listened to at `path`, not blocking; one that is there is replaced, and its folder is
// made. Whoever sees the path can connect, if `mode` lets that user. The error names the path.
absl::StatusOr<UniqueFd> ListenForPackets(const std::string& path, int mode);

// Who is at the other end of a connection.
absl::StatusOr<uint32_t> UserOfPeer(int connection);

// The next packet. kUnavailable: the other side has gone; kInvalidArgument: it is longer than `most` bytes;
// kDeadlineExceeded: there is none yet, and the socket does not wait (any longer).
absl::StatusOr<std::string> ReceivePacket(int connection, size_t most);

// Never waits and never fails: a peer that has gone, or does not read, sees the end of the connection.
void SendPacket(int connection, const std::string& text);

using KeysAndValues = std::vector<std::pair<std::string, std::string>>;
// The lines after the first one, in their order. kInvalidArgument says what was expected; kUnimplemented: of
// another version.
absl::StatusOr<KeysAndValues> ParsePacket(const std::string& text, const std::string& kind, int version);

// What a status says, as a value that is one line and shorter than `size` bytes.
std::string OneLine(const absl::Status& status, size_t size);

}  // namespace siding
