// Addresses of this machine alone.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <optional>
#include <string>

namespace siding::page {

// 127.0.0.0/8, as "127.0.0.1"; nothing: it is something else.
inline std::optional<in_addr> LoopbackOf(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1 || ntohl(address.s_addr) >> 24 != 127)
    return std::nullopt;
  return address;
}

}  // namespace siding::page
