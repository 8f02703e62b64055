// A thread that accepts the connections of one listening socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace siding {

class AcceptLoop {
 public:
  // `accepted` gets each connection, non-blocking, from this object's thread. `name` is the socket's in the
  // log.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Start(std::string name, UniqueFd socket,
                                                           std::function<void(UniqueFd)> accepted);
  ~AcceptLoop();  // Stop()
  // When it returns, `accepted` is called no more. Twice is once.
  void Stop();

 private:
  AcceptLoop(std::string name, UniqueFd socket, UniqueFd wake, std::function<void(UniqueFd)> accepted);
  void Run();
  // False: there is no descriptor for a connection, which waits until there is.
  bool Accept();

  const std::string name_;
  const UniqueFd socket_;
  const UniqueFd wake_;  // an eventfd that ends Run()
  const std::function<void(UniqueFd)> accepted_;
  std::thread thread_;
};

}  // namespace siding
