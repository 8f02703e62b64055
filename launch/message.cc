#include "launch/message.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::launch {
namespace {

constexpr absl::string_view kMark = "SML1";
constexpr size_t kHeader = 9;
constexpr std::array kKinds = {Kind::kFollow, Kind::kRun, Kind::kExit, Kind::kStop, Kind::kEnd, Kind::kEnded};

}  // namespace

absl::StatusOr<std::string> Encode(const Message& message) {
  if (message.text.size() > kLongestText)
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kLongestText, " bytes, not ", message.text.size()));
  std::string bytes(kMark);
  bytes.push_back(static_cast<char>(message.kind));
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>((message.text.size() >> shift) & 0xff));
  return bytes + message.text;
}

absl::StatusOr<std::optional<Message>> Take(std::string& received) {
  const size_t seen = std::min(received.size(), kMark.size());
  if (received.compare(0, seen, kMark.data(), seen) != 0)
    return absl::InvalidArgumentError("expected a message of siding-mpirun's, of this version");
  if (received.size() < kHeader) return std::nullopt;
  const auto* const kind = std::find(kKinds.begin(), kKinds.end(), static_cast<Kind>(received[kMark.size()]));
  size_t size = 0;
  for (size_t i = kMark.size() + 1; i < kHeader; ++i) size = size << 8 | static_cast<uint8_t>(received[i]);
  if (kind == kKinds.end() || size > kLongestText)
    return absl::InvalidArgumentError("expected a message of siding-mpirun's: its kind or length is none");
  if (received.size() < kHeader + size) return std::nullopt;
  Message message{*kind, received.substr(kHeader, size)};
  received.erase(0, kHeader + size);
  return message;
}

absl::StatusOr<int> NumberIn(const Message& message) {
  int number = 0;
  if (!absl::SimpleAtoi(message.text, &number) || number < 0 || number > 255)
    return absl::InvalidArgumentError("expected a message with a number from 0 to 255");
  return number;
}

absl::Status Peer::Send(const Message& message) {
  SIDING_ASSIGN_OR_RETURN(const std::string bytes, Encode(message));
  return WriteAll(socket_, bytes, "another task of the job");
}

absl::StatusOr<std::optional<Message>> Peer::Receive() {
  char buffer[16384];
  const ssize_t n = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n > 0) received_.append(buffer, static_cast<size_t>(n));
  SIDING_ASSIGN_OR_RETURN(auto message, Take(received_));
  if (message) return message;
  if (n == 0) return absl::UnavailableError("it has closed the connection");
  if (n < 0 && errno != EAGAIN && errno != EINTR)
    return absl::UnavailableError(ErrnoError(errno, "receive").message());
  return std::nullopt;
}

}  // namespace siding::launch
