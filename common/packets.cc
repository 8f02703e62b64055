#include "common/packets.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding {

absl::StatusOr<UniqueFd> ListenForPackets(const std::string& path, int mode) {
  // A socket has its name once it is bound, and refuses connections until it is listened to. It gets its own
  // name last, so that whoever waits for the name can connect.
  const std::string unready = path + "~";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (unready.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the path of a socket has at most ",
                                                   sizeof address.sun_path - 2, " characters"));
  }
  std::strcpy(address.sun_path, unready.c_str());
  SIDING_RETURN_IF_ERROR(MakeDirectories(std::filesystem::path(path).parent_path()));
  unlink(unready.c_str());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(unready.c_str(), static_cast<mode_t>(mode)) != 0 || listen(fd.get(), SOMAXCONN) != 0 ||
      rename(unready.c_str(), path.c_str()) != 0) {
    return ErrnoError(errno, path);
  }
  return fd;
}

absl::StatusOr<uint32_t> UserOfPeer(int connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return ErrnoError(errno, "who is at the other end");
  return peer.uid;
}

absl::StatusOr<std::string> ReceivePacket(int connection, size_t most) {
  std::string text(most, '\0');
  // With MSG_TRUNC a packet that is too long tells its length.
  const ssize_t size = recv(connection, text.data(), text.size(), MSG_TRUNC);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return absl::DeadlineExceededError("nothing was said");
  if (size < 0) return ErrnoError(errno, "recv");
  if (size == 0) return absl::UnavailableError("the other side has gone");
  if (static_cast<size_t>(size) > most)
    return absl::InvalidArgumentError(absl::StrCat("a message has at most ", most, " bytes, not ", size));
  text.resize(static_cast<size_t>(size));
  return text;
}

void SendPacket(int connection, const std::string& text) {
  if (send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

absl::StatusOr<KeysAndValues> ParsePacket(const std::string& text, const std::string& kind, int version) {
  const std::string expected = absl::StrCat(kind, " ", version);
  const std::vector<std::string> all = absl::StrSplit(text, '\n');
  if (all.front() != expected) {
    const std::string message = absl::StrCat("expected '", expected, "', found '", all.front(), "'");
    return absl::StartsWith(all.front(), kind + " ") ? absl::UnimplementedError(message)
                                                     : absl::InvalidArgumentError(message);
  }
  if (!all.back().empty()) return absl::InvalidArgumentError("the message does not end with a newline");
  KeysAndValues lines;
  for (size_t i = 1; i + 1 < all.size(); ++i)
    lines.push_back(absl::StrSplit(all[i], absl::MaxSplits(' ', 1)));
  return lines;
}

std::string OneLine(const absl::Status& status, size_t size) {
  std::string text(status.message());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, size - 1);
}

}  // namespace siding
