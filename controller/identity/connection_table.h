// Whose connection has which descriptor, and whether another one may be let in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "controller/api/limits.h"

namespace siding {

struct ConnectionOwner {
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// The inode behind a descriptor; 0: it is not open.
uint64_t InodeOfDescriptor(int fd);

// gRPC owns the descriptors and says nothing when it closes one. So whether a connection still lives is asked
// of the kernel, by the socket's inode, as soon as a limit seems to be reached, and whenever there are twice
// as many as at the last look. Not thread-safe.
class ConnectionTable {
 public:
  // InodeOfDescriptor, or a test's.
  using InodeOf = std::function<uint64_t(int fd)>;
  ConnectionTable(const ServiceLimits& limits, InodeOf inode_of);

  // kResourceExhausted, naming the limit. Root may have any number.
  absl::Status MayAdd(uint32_t uid);
  // A connection that had this number before is forgotten.
  void Add(int fd, ConnectionOwner owner);
  std::optional<ConnectionOwner> Find(int fd) const;
  // Known ones, closed or not.
  size_t size() const { return connections_.size(); }

 private:
  static constexpr size_t kFirstLook = 1024;

  struct Connection {
    ConnectionOwner owner;
    uint64_t inode;
  };
  using Connections = std::map<int, Connection>;
  // Of all users, if there is no `uid`.
  void ForgetClosed(std::optional<uint32_t> uid);
  Connections::iterator Remove(Connections::iterator connection);
  int CountOf(uint32_t uid) const;

  const ServiceLimits limits_;
  const InodeOf inode_of_;
  Connections connections_;
  // Known ones, closed or not: never less than there are.
  std::map<uint32_t, int> by_user_;
  int of_users_ = 0;  // of all but root
  size_t look_at_ = kFirstLook;
};

}  // namespace siding
