// What the tasks of siding-mpirun say to each other, over TCP within the job's network. A message is its kind
// and a text:
//
//   "SML1", kind (a byte), length of the text (4 bytes, the first is the highest), text
//
// A task but the first listens, and is spoken to by rank 0 alone:
//
//   by the leader, the siding-mpirun of rank 0, all the time:  kFollow ->   kEnd ->        the task ends
//                                                             <- kStop     <- kEnded
//   by a relay, for each command:                              kRun ->
//                                                             <- kExit
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files.h"

namespace siding::launch {

enum class Kind : char {
  kFollow = 'F',  // empty: the sender is the leader
  kRun = 'R',     // a command for a shell
  kExit = 'X',    // the command's exit code
  kStop = 'S',    // the number of a signal: the job has been told to end
  kEnd = 'E',     // empty: mpirun has ended
  kEnded = 'D',   // empty: so has all that ran there
};

inline constexpr size_t kLongestText = 1 << 20;

struct Message {
  Kind kind = Kind::kFollow;
  std::string text;
  bool operator==(const Message&) const = default;
};

// kInvalidArgument: its text is longer than kLongestText.
absl::StatusOr<std::string> Encode(const Message& message);

// Takes a message from the front of what has been received; nothing: it is not there in full.
// kInvalidArgument: what has come is no message, and nothing that follows would be one.
absl::StatusOr<std::optional<Message>> Take(std::string& received);

// The number in a message's text, 0 to 255. kInvalidArgument: there is none.
absl::StatusOr<int> NumberIn(const Message& message);

// A connection. Not thread-safe.
class Peer {
 public:
  explicit Peer(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  // Waits until the kernel has taken it all.
  absl::Status Send(const Message& message);
  // What has come by now; nothing: no whole message. kUnavailable: the other side has gone. kInvalidArgument:
  // it is none of ours.
  absl::StatusOr<std::optional<Message>> Receive();

 private:
  UniqueFd socket_;
  std::string received_;
};

}  // namespace siding::launch
