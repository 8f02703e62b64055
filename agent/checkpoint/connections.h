// The TCP connections of a process tree, as far as a dump has to know them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace siding {

struct TcpConnection {
  std::string local, remote;  // address and port as the kernel writes them, IPv4 inside IPv6 as IPv4
  uint64_t inode = 0;         // of the socket
  bool operator==(const TcpConnection&) const = default;
};

// The established ones in a text of /proc/PID/net/tcp or tcp6.
std::vector<TcpConnection> ParseTcp(const std::string& text);

// Each connection that one of the sockets has leads over the loopback device to another one of them.
bool StayInside(const std::vector<TcpConnection>& connections, const std::set<uint64_t>& sockets);

// Of the tree of `root`, as it is now: with all of it frozen nothing can come in from outside, so nothing has
// to be kept out.
bool ConnectionsStayInside(pid_t root);

}  // namespace siding
