#include "agent/checkpoint/connections.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr char kEstablished[] = "01";
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

}  // namespace

std::vector<TcpConnection> ParseTcp(const std::string& text) {
  std::vector<TcpConnection> connections;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the headings
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, skipped;
    TcpConnection connection;
    words >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) words >> skipped;
    if (words >> connection.inode && state == kEstablished) {
      connection.local = AsV4(local);
      connection.remote = AsV4(remote);
      connections.push_back(std::move(connection));
    }
  }
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

bool ConnectionsStayInside(pid_t root) {
  std::vector<TcpConnection> connections;
  for (const char* const table : {"/net/tcp", "/net/tcp6"}) {
    const auto text = ReadFile("/proc/" + std::to_string(root) + table);
    if (!text.ok()) continue;  // a kernel without IPv6
    const auto found = ParseTcp(*text);
    connections.insert(connections.end(), found.begin(), found.end());
  }
  return StayInside(connections, SocketsOf(root));
}

}  // namespace siding
