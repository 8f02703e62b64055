#include "controller/identity/host_table.h"

#include "absl/strings/str_cat.h"

namespace siding {

HostTable::HostTable(const ServiceLimits& limits, ConnectionTable::InodeOf inode_of)
    : limits_(limits), inode_of_(std::move(inode_of)) {}

absl::Status HostTable::MayAdd(const std::string& host) {
  if (Problem(host).ok()) return absl::OkStatus();
  ForgetClosed();
  return Problem(host);
}

absl::Status HostTable::Problem(const std::string& host) const {
  const auto own = by_host_.find(host);
  if (own != by_host_.end() && own->second >= limits_.connections_per_host) {
    return absl::ResourceExhaustedError(absl::StrCat(host, " has ", own->second,
                                                     " connections already; limits.connections_per_host is ",
                                                     limits_.connections_per_host));
  }
  if (connections_.size() >= static_cast<size_t>(limits_.remote_connections)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", connections_.size(), " remote connections already; limits.remote_connections is ",
        limits_.remote_connections));
  }
  return absl::OkStatus();
}

void HostTable::Add(int fd, const std::string& host) {
  if (auto before = connections_.find(fd); before != connections_.end()) Remove(before);
  connections_[fd] = {host, inode_of_(fd)};
  ++by_host_[host];
}

void HostTable::ForgetClosed() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = inode_of_(it->first) != it->second.inode ? Remove(it) : std::next(it);
  }
}

HostTable::Connections::iterator HostTable::Remove(Connections::iterator connection) {
  const auto host = by_host_.find(connection->second.host);
  if (--host->second == 0) by_host_.erase(host);
  return connections_.erase(connection);
}

}  // namespace siding
