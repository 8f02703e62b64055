#include "launch/connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::launch {
namespace {

constexpr int kBacklog = 128;
constexpr Duration kTry = std::chrono::seconds(1), kPause = std::chrono::milliseconds(50);

absl::StatusOr<sockaddr_in> Parse(const std::string& address, int port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
    return absl::InvalidArgumentError(absl::StrCat("expected an IPv4 address, not '", address, "'"));
  return to;
}

absl::StatusOr<UniqueFd> MakeSocket(int more = 0) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | more, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  return fd;
}

}  // namespace

absl::StatusOr<UniqueFd> Listen(const std::string& address, int port) {
  SIDING_ASSIGN_OR_RETURN(const sockaddr_in at, Parse(address, port));
  SIDING_ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(SOCK_NONBLOCK));
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(fd.get(), kBacklog) != 0)
    return ErrnoError(errno, absl::StrCat("listen at ", address, ":", port));
  return fd;
}

UniqueFd Accept(const UniqueFd& listener, const std::string& address) {
  sockaddr_in from = {};
  socklen_t size = sizeof from;
  UniqueFd fd(accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC));
  const auto wanted = Parse(address, 0);
  if (!wanted.ok() || from.sin_addr.s_addr != wanted->sin_addr.s_addr) fd.Reset();
  return fd;
}

absl::StatusOr<UniqueFd> Connect(const std::string& from, const std::string& address, int port,
                                 Duration patience, const std::function<bool()>& stop) {
  SIDING_ASSIGN_OR_RETURN(const sockaddr_in at, Parse(from, 0));
  SIDING_ASSIGN_OR_RETURN(const sockaddr_in to, Parse(address, port));
  // What has been waited is counted: a clock can be another one after a restore.
  for (Duration waited(0); waited <= patience;) {
    if (stop()) return absl::CancelledError("told to end");
    SIDING_ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket());
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      return ErrnoError(errno, from);
    timeval limit = {};
    limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(kTry).count();
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      limit = {};
      setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      return fd;
    }
    waited += errno == EINPROGRESS ? kTry : kPause;  // of the first, no answer has come at all
    poll(nullptr, 0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPause).count()));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("nobody has listened at ", address, ":", port, " for ", FormatDuration(patience)));
}

}  // namespace siding::launch
