#include "controller/identity/remote_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kBacklog = 1024;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": expected ADDRESS:PORT"));
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(std::string(host).c_str(), address.c_str() + colon + 1, &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(error)));
  return Addresses(found);
}

void Set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

absl::StatusOr<UniqueFd> Bind(const addrinfo& at, const std::string& address) {
  UniqueFd fd(socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  Set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // or a restart would have to wait for old connections
  Set(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);  // its connections inherit that
  if (at.ai_family == AF_INET6) Set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0)
    return ErrnoError(errno, absl::StrCat("bind ", address));
  if (listen(fd.get(), kBacklog) != 0) return ErrnoError(errno, absl::StrCat("listen ", address));
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

// {address, port}; empty if it is gone already.
std::pair<std::string, std::string> PeerOf(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
  getnameinfo(reinterpret_cast<const sockaddr*>(&name), size, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, port};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteListener>> RemoteListener::Listen(const std::string& address,
                                                                       const ServiceLimits& limits,
                                                                       std::function<void(int)> accepted) {
  SIDING_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address));
  absl::StatusOr<UniqueFd> fd = absl::NotFoundError(absl::StrCat(address, ": no such address"));
  for (const addrinfo* at = addresses.get(); at != nullptr && !fd.ok(); at = at->ai_next)
    fd = Bind(*at, address);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<RemoteListener> listener(
      new RemoteListener(PortOf(fd->get()), limits, std::move(accepted)));
  SIDING_ASSIGN_OR_RETURN(listener->loop_, AcceptLoop::Start(address, *std::move(fd),
                                                             [raw = listener.get()](UniqueFd connection) {
                                                               raw->Accept(std::move(connection));
                                                             }));
  return listener;
}

RemoteListener::RemoteListener(int port, const ServiceLimits& limits, std::function<void(int)> accepted)
    : port_(port), accepted_(std::move(accepted)), hosts_(limits, InodeOfDescriptor) {}

void RemoteListener::Accept(UniqueFd connection) {
  const auto [host, port] = PeerOf(connection.get());
  if (host.empty()) return;
  if (const absl::Status room = hosts_.MayAdd(host); !room.ok()) {
    spdlog::warn("port {}: {}", port_, std::string(room.message()));
    return;
  }
  spdlog::debug("connection from {}, port {}", host, port);
  hosts_.Add(connection.get(), host);
  accepted_(connection.Release());
}

}  // namespace siding
