#include "agent/checkpoint/connections.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

// States of sockets that have no other end.
constexpr char kClosed[] = "07", kListens[] = "0A";
constexpr size_t kDigitsOfV4 = 8;

// "0000000000000000FFFF00000100007F:1F90" -> "0100007F:1F90": one end may know the other by either.
std::string AsV4(const std::string& address) {
  static const std::string kPrefix = "0000000000000000FFFF0000";
  return address.rfind(kPrefix, 0) == 0 ? address.substr(kPrefix.size()) : address;
}

bool IsLoopback(const std::string& address) {
  if (address.find(':') == kDigitsOfV4)
    return address.compare(6, 2, "7F") == 0;  // in the order of the machine
  return address.rfind("00000000000000000000000001000000:", 0) == 0;
}

// "0100007F:1F90" -> "127.0.0.1:8080"; of IPv6 in the order of its bytes.
std::string Readable(const std::string& address) {
  const size_t colon = address.find(':');
  std::vector<uint8_t> bytes;
  for (size_t word = 0; word + kDigitsOfV4 <= colon; word += kDigitsOfV4) {
    for (size_t i = kDigitsOfV4; i > 0; i -= 2)
      bytes.push_back(
          static_cast<uint8_t>(std::strtoul(address.substr(word + i - 2, 2).c_str(), nullptr, 16)));
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
  const auto port = std::to_string(std::strtoul(address.substr(colon + 1).c_str(), nullptr, 16));
  return bytes.size() == 4 ? absl::StrCat(text, ":", port) : absl::StrCat("[", text, "]:", port);
}

bool IsAnAddress(const std::string& address) {
  const size_t colon = address.find(':');
  return (colon == kDigitsOfV4 || colon == 4 * kDigitsOfV4) &&
         address.find_first_not_of("0123456789ABCDEF:") == std::string::npos;
}

bool IsAny(const std::string& address) { return address.find_first_not_of('0') == address.find(':'); }

std::set<uint64_t> SocketsOf(pid_t root) {
  std::set<uint64_t> sockets;
  for (pid_t pid : ProcessTree(root)) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
      char target[64] = "";
      unsigned long inode = 0;
      if (readlink((folder + "/" + entry->d_name).c_str(), target, sizeof target - 1) > 0 &&
          std::sscanf(target, "socket:[%lu]", &inode) == 1) {
        sockets.insert(inode);
      }
    }
  }
  return sockets;
}

// Of each line of a text of /proc/PID/net/tcp, udp or the like that is whole: its ends and its state.
void ForEachSocket(const std::string& text,
                   const std::function<void(TcpConnection, const std::string& state)>& visit) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the headings
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, skipped;
    uint64_t inode = 0;
    words >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) words >> skipped;
    if (words >> inode) visit({AsV4(local), AsV4(remote), inode}, state);
  }
}

std::vector<TcpConnection> ConnectionsSeenBy(pid_t root) {
  std::vector<TcpConnection> connections;
  for (const char* const table : {"/net/tcp", "/net/tcp6"}) {
    const auto text = ReadFile("/proc/" + std::to_string(root) + table);
    if (!text.ok()) continue;  // a kernel without IPv6
    const auto found = ParseTcp(*text);
    connections.insert(connections.end(), found.begin(), found.end());
  }
  return connections;
}

}  // namespace

std::vector<TcpConnection> ParseTcp(const std::string& text) {
  std::vector<TcpConnection> connections;
  ForEachSocket(text, [&](TcpConnection connection, const std::string& state) {
    if (state != kClosed && state != kListens) connections.push_back(std::move(connection));
  });
  return connections;
}

bool StayInside(const std::vector<TcpConnection>& connections, const std::set<uint64_t>& sockets) {
  return std::all_of(connections.begin(), connections.end(), [&](const TcpConnection& one) {
    if (!sockets.contains(one.inode)) return true;
    return IsLoopback(one.remote) &&
           std::any_of(connections.begin(), connections.end(), [&](const TcpConnection& other) {
             return sockets.contains(other.inode) && other.local == one.remote && other.remote == one.local;
           });
  });
}

bool ConnectionsStayInside(pid_t root) { return StayInside(ConnectionsSeenBy(root), SocketsOf(root)); }

std::string LeadsOutside(const std::vector<TcpConnection>& connections, const std::set<uint64_t>& sockets) {
  for (const TcpConnection& one : connections) {
    if (sockets.contains(one.inode) && IsAnAddress(one.remote) && !IsLoopback(one.remote))
      return Readable(one.remote);
  }
  return "";
}

std::string FindConnectionOutside(pid_t root) {
  return LeadsOutside(ConnectionsSeenBy(root), SocketsOf(root));
}

std::vector<std::string> BoundToAnAddress(const std::string& text, const std::set<uint64_t>& sockets,
                                          bool is_tcp) {
  std::vector<std::string> found;
  ForEachSocket(text, [&](const TcpConnection& one, const std::string& state) {
    if (!sockets.contains(one.inode) || !IsAnAddress(one.local) || (is_tcp && state != kListens)) return;
    if (!IsAny(one.local) && !IsLoopback(one.local)) found.push_back(Readable(one.local));
  });
  return found;
}

std::string FindBoundAddress(pid_t root) {
  const std::set<uint64_t> sockets = SocketsOf(root);
  for (const char* const table :
       {"tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "icmp", "icmp6", "raw", "raw6"}) {
    const auto text = ReadFile("/proc/" + std::to_string(root) + "/net/" + table);
    if (!text.ok()) continue;  // the kernel has not got this
    const auto found = BoundToAnAddress(*text, sockets, absl::StartsWith(table, "tcp"));
    if (!found.empty()) return absl::StrCat(table, " ", found.front());
  }
  return "";
}

}  // namespace siding
