#include "examples/heat/tcp_exchange.h"

#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace heat {
namespace {

std::string Name(int rank) { return "rank " + std::to_string(rank); }

bool AreConnected(int a, int b) { return std::abs(a - b) == 1 || (a != b && (a == 0 || b == 0)); }

void PauseBeforeRetry() {
  const timespec pause = {0, 20'000'000};
  nanosleep(&pause, nullptr);
}

[[noreturn]] void Throw(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::generic_category().message(error));
}

}  // namespace

std::vector<Endpoint> Endpoints(const std::string& addresses, int port, int ranks) {
  std::vector<Endpoint> endpoints;
  std::istringstream words(addresses);
  for (std::string word; std::getline(words, word, ',');) {
    if (!IsAddress(word)) {
      throw std::invalid_argument("SIDING_GANG_ADDRS: expected IPv4 addresses with commas, got \"" + word +
                                  "\" in \"" + addresses + "\"");
    }
    endpoints.push_back({word, port + static_cast<int>(endpoints.size())});
  }
  if (endpoints.size() != static_cast<size_t>(ranks)) {
    throw std::invalid_argument("SIDING_GANG_ADDRS: expected the addresses of " + std::to_string(ranks) +
                                " ranks with commas, got \"" + addresses +
                                "\"; jobs have it that are submitted with --connections keep");
  }
  if (endpoints.back().port > 65535) {
    throw std::invalid_argument("--port: expected at most " + std::to_string(65536 - ranks) + " for " +
                                std::to_string(ranks) + " ranks, got " + std::to_string(port));
  }
  return endpoints;
}

// Each rank listens, then connects to those before it, then accepts those behind it. Rank 0 has none before
// it, so no ring of ranks waits for each other. The listener goes at the end: nobody comes later.
TcpExchange::TcpExchange(const std::vector<Endpoint>& ranks, int rank) : rank_(rank) {
  const int count = static_cast<int>(ranks.size());
  const Endpoint& own = ranks[static_cast<size_t>(rank)];
  TcpSocket listener;
  if (const int error = listener.Listen(own, count); error != 0)
    Throw("cannot listen on " + Text(own), error);
  for (int peer = 0; peer < rank; ++peer) {
    if (AreConnected(peer, rank)) ConnectTo(peer, ranks[static_cast<size_t>(peer)]);
  }
  for (int peer = rank + 1; peer < count; ++peer) {
    if (AreConnected(peer, rank)) AcceptOne(listener, count);
  }
}

// Ranks start one after the other, and nothing says how long that takes. Until one listens, its machine
// refuses connections, or says nothing if its network is not there yet.
void TcpExchange::ConnectTo(int peer, const Endpoint& endpoint) {
  TcpSocket socket;
  for (bool has_said = false;; has_said = true) {
    const int error = socket.Connect(endpoint);
    if (error == 0) break;
    const std::string what = Name(peer) + " at " + Text(endpoint);
    if (error != ECONNREFUSED && error != ETIMEDOUT) Throw("cannot connect to " + what, error);
    if (!has_said) {
      std::printf("heat rank %d: waits for %s\n", rank_, what.c_str());
      std::fflush(stdout);
    }
    PauseBeforeRetry();
  }
  Connection& connection =
      connections_.emplace(peer, Connection(std::move(socket), Name(peer))).first->second;
  connection.Send(What::kHello, 0, {static_cast<double>(rank_)});
}

void TcpExchange::AcceptOne(TcpSocket& listener, int ranks) {
  TcpSocket socket;
  if (const int error = listener.Accept(&socket); error != 0) Throw("cannot accept a connection", error);
  Connection connection(std::move(socket), "who has connected");
  const double said = connection.Receive(What::kHello, 0, 1)[0];
  if (!(said > rank_ && said < ranks) || !AreConnected(rank_, static_cast<int>(said)) ||
      connections_.contains(static_cast<int>(said))) {
    std::ostringstream text;
    text << "a connection says that it is of rank " << said << ", expected one that rank " << rank_
         << " waits for";
    throw std::runtime_error(text.str());
  }
  const int peer = static_cast<int>(said);
  connection.set_peer(Name(peer));
  connections_.emplace(peer, std::move(connection));
}

// Rows may be more than the kernel holds, so a send may last until the other end receives. Hence ranks are in
// pairs, first (0, 1), (2, 3) and so on, then (1, 2), (3, 4); the even one of a pair sends first, the odd one
// receives first.
Halo TcpExchange::Swap(int64_t number, const Halo& own) {
  const bool even = rank_ % 2 == 0;
  Halo theirs;
  const auto swap_with = [&](int peer, What out, const std::vector<double>& mine, What in,
                             std::vector<double>& rows) {
    if (mine.empty()) return;
    Connection& connection = connections_.at(peer);
    if (even) connection.Send(out, number, mine);
    rows = connection.Receive(in, number, mine.size());
    if (!even) connection.Send(out, number, mine);
  };
  const auto above = [&] { swap_with(rank_ - 1, What::kUp, own.above, What::kDown, theirs.above); };
  const auto below = [&] { swap_with(rank_ + 1, What::kDown, own.below, What::kUp, theirs.below); };
  if (even) {
    below();
    above();
  } else {
    above();
    below();
  }
  return theirs;
}

void TcpExchange::GiveBlock(const std::vector<double>& block) {
  connections_.at(0).Send(What::kBlock, 0, block);
}

std::vector<double> TcpExchange::TakeBlock(int from, size_t count) {
  return connections_.at(from).Receive(What::kBlock, 0, count);
}

}  // namespace heat
