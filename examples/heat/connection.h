// Messages to and from one rank. Each has a header that says what it is, so that a byte that was lost or came
// twice is seen as an error at once, rather than in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/heat/tcp_socket.h"

namespace heat {

enum class What : uint32_t { kHello = 1, kUp, kDown, kBlock };

class Connection {
 public:
  // `peer` is for error texts: "rank 1".
  Connection(TcpSocket socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

  void set_peer(std::string peer) { peer_ = std::move(peer); }

  // These throw std::runtime_error that names the peer.
  void Send(What what, int64_t number, const std::vector<double>& values);
  // The next message, which has to be this one.
  std::vector<double> Receive(What what, int64_t number, size_t count);

 private:
  void Check(int error) const;

  TcpSocket socket_;
  std::string peer_;
};

}  // namespace heat
