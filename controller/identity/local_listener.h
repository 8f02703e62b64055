// The controller's unix socket.
//
// gRPC for C++ does not tell a handler the credentials of a unix socket's peer. So this class listens and
// accepts by itself, asks the kernel for the peer's uid (SO_PEERCRED: the uid at the time of connect(), which
// no process can forge), and hands the connected descriptor to gRPC, whose handlers then see "fd:<number>" as
// their peer. LocalIdentities turns that back into the uid.
//
// Descriptor numbers are reused, but not while gRPC has a call of the connection that is not done: each holds
// the connection, which holds the descriptor (connection_life_test.cc). So no handler looks up the uid of a
// later connection. Beside that each connection is moved to a number of its own that counts upwards through
// the whole range the process may have, and comes round only after tens of thousands of connections.
//
// Connections beyond the limits are closed at once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "controller/identity/accept_loop.h"
#include "controller/identity/local_identity.h"

namespace siding {

// Thread-safe.
class LocalListener {
 public:
  // Takes over the path: a socket without a listener is replaced, one in use is
  // kFailedPrecondition. `peers` is told of each connection, then `accepted` gets it and owns it; both are
  // called from this object's thread.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Listen(const std::string& path,
                                                               const ServiceLimits& limits,
                                                               LocalIdentities& peers,
                                                               std::function<void(int fd)> accepted);
  ~LocalListener();
  // No more connections; those that were handed over live on. Twice is once.
  void Stop();

 private:
  LocalListener(std::string path, LocalIdentities& peers, std::function<void(int)> accepted);
  void Accept(UniqueFd connection);
  int MoveToFreshNumber(int fd);

  const std::string path_;
  LocalIdentities& peers_;
  const std::function<void(int)> accepted_;
  int next_number_;  // only the loop's thread
  std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace siding
