// Halo rows between ranks, over TCP connections that live as long as the run. None is made again: what siding
// keeps of them has to be enough.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "examples/heat/connection.h"
#include "examples/heat/exchange.h"
#include "examples/heat/tcp_socket.h"

namespace heat {

// Where the ranks listen, by rank. `addresses`: as in SIDING_GANG_ADDRS. Each has a port of its own, from
// `port` on, so that all can be on one machine. Throws std::invalid_argument.
std::vector<Endpoint> Endpoints(const std::string& addresses, int port, int ranks);

class TcpExchange final : public Exchange {
 public:
  // Waits until all ranks are there that this one talks to: its neighbours, and rank 0.
  TcpExchange(const std::vector<Endpoint>& ranks, int rank);

  Halo Swap(int64_t number, const Halo& own) override;
  void GiveBlock(const std::vector<double>& block) override;
  std::vector<double> TakeBlock(int from, size_t count) override;

 private:
  void ConnectTo(int peer, const Endpoint& endpoint);
  void AcceptOne(TcpSocket& listener, int ranks);

  const int rank_;
  std::map<int, Connection> connections_;  // by rank
};

}  // namespace heat
