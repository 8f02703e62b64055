// Where the controller is reached: its unix socket, and a port with TLS if it listens on the network.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/config.h"
#include "controller/identity/local_listener.h"
#include "controller/identity/remote_listener.h"

namespace siding {

// What remote callers connect with; nullptr if there are none.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> RemoteCredentials(const ControllerConfig& config);
// Under what name it can be dialled: HOST:PORT, or the socket.
std::string AddressOf(const ControllerConfig& config);

// Not thread-safe.
class Server {
 public:
  // `add_services` says what is served there. `local` and the services must outlive the server.
  static absl::StatusOr<std::unique_ptr<Server>> Open(
      const ControllerConfig& config, LocalIdentities& local,
      const std::function<void(grpc::ServerBuilder&)>& add_services);
  ~Server();  // Close(), Finish()

  // No more connections.
  void Close();
  // Calls that are under way have a moment to end; then all connections are cut.
  void Finish();

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  Server() = default;

  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<RemoteListener> remote_listener_;
  std::unique_ptr<LocalListener> local_listener_;
};

}  // namespace siding
