#include "agent/network/address_towards.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr char kThisMachine[] = "127.0.0.1";

std::string TextOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* const bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  inet_ntop(address.ss_family, bytes, text, sizeof text);
  return text;
}

// Empty: there is no way.
std::string From(const addrinfo& to) {
  const UniqueFd any(socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  // Of a socket without connections that sends nothing; it is given the address that it would send from.
  const bool found = any.valid() && connect(any.get(), to.ai_addr, to.ai_addrlen) == 0 &&
                     getsockname(any.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0;
  return found ? TextOf(own) : "";
}

}  // namespace

absl::StatusOr<std::string> AddressTowards(const std::vector<std::string>& others) {
  bool is_far = false;
  for (const std::string& other : others) {
    const size_t colon = other.rfind(':');
    if (colon == std::string::npos || other.find('/') != std::string::npos) continue;
    is_far = true;
    std::string host = other.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const addrinfo hints = {.ai_flags = AI_ADDRCONFIG, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), other.substr(colon + 1).c_str(), &hints, &found) != 0) continue;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
      if (const std::string address = From(*one); !address.empty()) return address;
  }
  if (!is_far) return kThisMachine;
  return absl::UnavailableError(absl::StrCat("the address of this node is not known: it finds no way to ",
                                             absl::StrJoin(others, ", ")));
}

}  // namespace siding
