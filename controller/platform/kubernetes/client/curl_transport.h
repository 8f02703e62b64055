// The real way to the API server: libcurl, HTTP/1.1 over TLS.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/client/settings.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

struct CurlLimits {
  Duration connect = std::chrono::seconds(5);
  size_t answer = 256 << 20;  // bytes of an answer
  size_t line = 16 << 20;     // bytes of a line of a stream
  // By which the limits of a request count.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Connections are kept and used again, one for each call at a time. The server must be who its certificate
// says, by `settings.authority` alone if there is one. Redirections and proxies of the environment are not
// followed. After a 401 the token is read again, and the call repeated once if there is another. Nothing is
// connected here; the process must ignore SIGPIPE (common/signals.h). kFailedPrecondition: libcurl does not
// work. kInvalidArgument: no https.
absl::StatusOr<std::unique_ptr<Transport>> NewCurlTransport(ServerSettings settings, CurlLimits limits = {});

}  // namespace siding::kubernetes
