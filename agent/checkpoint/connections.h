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

// Those in a text of /proc/PID/net/tcp or tcp6, closed by one end or not.
std::vector<TcpConnection> ParseTcp(const std::string& text);

// Each connection that one of the sockets has leads over the loopback device to another one of them.
bool StayInside(const std::vector<TcpConnection>& connections, const std::set<uint64_t>& sockets);

// Of the tree of `root`, as it is now: with all of it frozen nothing can come in from outside, so nothing has
// to be kept out.
bool ConnectionsStayInside(pid_t root);

// To whom one of the connections that one of the sockets has leads outside of this machine or container
// ("10.98.7.1:5432"); empty: none does.
std::string LeadsOutside(const std::vector<TcpConnection>& connections, const std::set<uint64_t>& sockets);

// The same of the tree of `root`, as it is now.
std::string FindConnectionOutside(pid_t root);

// The addresses of this machine or container alone ("10.98.7.5:8080") that the sockets have, by a text of
// /proc/PID/net/udp or the like; of connections, which are TCP's, see above.
std::vector<std::string> BoundToAnAddress(const std::string& text, const std::set<uint64_t>& sockets,
                                          bool is_tcp);

// Of the tree of `root`: the first such address, which another container has not ("udp 10.98.7.5:53"); empty:
// none.
std::string FindBoundAddress(pid_t root);

}  // namespace siding
