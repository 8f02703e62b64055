// Where the controller is.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"

namespace siding {

// In the trailing metadata of every answer of a controller that stands by: it has done nothing.
inline constexpr char kStandsByMetadata[] = "siding-stands-by";

struct Endpoint {
  std::string target;   // for gRPC
  bool remote = false;  // over the network, hence with TLS
};

// "head1:7433", "10.0.0.1:7433" and "[fd00::1]:7433" are on the network; all else is a unix socket's path.
inline Endpoint ParseEndpoint(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  const bool remote = colon != std::string::npos && colon > 0 && text.find('/') == std::string::npos &&
                      absl::SimpleAtoi(text.substr(colon + 1), &port) && port >= 0 && port <= 65535;
  if (remote) return {text, true};
  std::error_code none;  // an empty path has no absolute one, and nothing listens there
  return {"unix:" + std::filesystem::absolute(text, none).string(), false};
}

}  // namespace siding
