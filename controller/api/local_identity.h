// Who is on the other end of the controller's unix socket.
//
// gRPC for C++ does not tell a handler the credentials of a unix socket's peer. So this class listens and
// accepts by itself, asks the kernel for the peer's uid (SO_PEERCRED: the uid at the time of connect(), which
// no process can forge), and hands the connected descriptor to gRPC, whose handlers then see "fd:<number>" as
// their peer. Of() turns that back into the uid.
//
// Descriptor numbers are reused, so a handler of a connection that has just been closed might otherwise look
// up the uid of the next one. Each connection is therefore moved to a number of its own that counts upwards
// through the whole range the process may have; it comes round only after tens of thousands of connections,
// long after any handler of the earlier one has looked.
//
// Connections beyond the limits are closed at once.
//
// Remote callers (TLS) will get a second implementation of Of(); nothing else asks who somebody is.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "controller/api/connection_table.h"

namespace siding {

struct PeerIdentity {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string user;  // "uid:1234" if the system knows no name
};

// Thread-safe.
class LocalListener {
 public:
  // Takes over the path: a socket that nobody answers any more is replaced, one in use is
  // kFailedPrecondition. `accepted` gets each connection and owns it; it is called from this object's thread.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Listen(const std::string& path,
                                                               const ServiceLimits& limits,
                                                               std::function<void(int fd)> accepted);
  ~LocalListener();
  // No more connections; those that were handed over live on, and are known until destruction. Twice is once.
  void Stop();
  // The identity behind ServerContext::peer(). kUnauthenticated if it is none of this listener's.
  absl::StatusOr<PeerIdentity> Of(const std::string& peer) const;

 private:
  LocalListener(std::string path, const ServiceLimits& limits, UniqueFd socket, UniqueFd wake,
                std::function<void(int)> accepted);
  void Run();
  void Accept();
  int MoveToFreshNumber(int fd);

  const std::string path_;
  const UniqueFd socket_;
  const UniqueFd wake_;  // an eventfd that ends Run()
  const std::function<void(int)> accepted_;
  int next_number_;  // only Run()'s thread

  mutable std::mutex mutex_;
  ConnectionTable connections_;  // guarded by mutex_
  std::thread thread_;
};

// The name of a uid, "uid:1234" if it has none.
std::string UserName(uint32_t uid);

}  // namespace siding
