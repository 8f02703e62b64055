// How many connections each remote host has, and whether another one may be let in. Whose they are is not
// known before the handshake, and who has none must not take all descriptors.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "controller/api/limits.h"
#include "controller/identity/connection_table.h"

namespace siding {

// Like ConnectionTable, asks the kernel which connections still live when a limit seems to be reached. Not
// thread-safe.
class HostTable {
 public:
  HostTable(const ServiceLimits& limits, ConnectionTable::InodeOf inode_of);
  // kResourceExhausted, naming the limit.
  absl::Status MayAdd(const std::string& host);
  // A connection that had this number before is forgotten.
  void Add(int fd, const std::string& host);

 private:
  struct Connection {
    std::string host;
    uint64_t inode;
  };
  using Connections = std::map<int, Connection>;
  absl::Status Problem(const std::string& host) const;
  void ForgetClosed();
  Connections::iterator Remove(Connections::iterator connection);

  const ServiceLimits limits_;
  const ConnectionTable::InodeOf inode_of_;
  Connections connections_;
  std::map<std::string, int> by_host_;
};

}  // namespace siding
