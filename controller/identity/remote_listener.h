// The controller's port on the network. gRPC could listen by itself, but lets any client take all
// descriptors, and listens no more once there were none.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/identity/accept_loop.h"
#include "controller/identity/host_table.h"

namespace siding {

// Thread-safe.
class RemoteListener {
 public:
  // "ADDRESS:PORT"; port 0: one that is free. `accepted` gets each connection and owns it; it is called from
  // a thread of this object's. Those beyond the limits are closed at once.
  static absl::StatusOr<std::unique_ptr<RemoteListener>> Listen(const std::string& address,
                                                                const ServiceLimits& limits,
                                                                std::function<void(int fd)> accepted);
  int port() const { return port_; }
  // No more connections; those that were handed over live on. Twice is once.
  void Stop() { loop_->Stop(); }

 private:
  RemoteListener(int port, const ServiceLimits& limits, std::function<void(int)> accepted);
  void Accept(UniqueFd connection);

  const int port_;
  const std::function<void(int)> accepted_;
  HostTable hosts_;  // only the loop's thread
  std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace siding
