#include "controller/identity/connection_table.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siding {

uint64_t InodeOfDescriptor(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

ConnectionTable::ConnectionTable(const ServiceLimits& limits, InodeOf inode_of)
    : limits_(limits), inode_of_(std::move(inode_of)) {}

absl::Status ConnectionTable::MayAdd(uint32_t uid) {
  if (uid == 0) return absl::OkStatus();
  if (CountOf(uid) >= limits_.connections_per_user) ForgetClosed(uid);
  if (CountOf(uid) >= limits_.connections_per_user) {
    return absl::ResourceExhaustedError(absl::StrCat("uid ", uid, " has ", CountOf(uid),
                                                     " connections already; limits.connections_per_user is ",
                                                     limits_.connections_per_user));
  }
  if (of_users_ >= limits_.connections) ForgetClosed(std::nullopt);
  if (of_users_ >= limits_.connections) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "users have ", of_users_, " connections already; limits.connections is ", limits_.connections));
  }
  return absl::OkStatus();
}

void ConnectionTable::Add(int fd, ConnectionOwner owner) {
  if (connections_.size() >= look_at_) {
    ForgetClosed(std::nullopt);
    look_at_ = std::max(kFirstLook, 2 * connections_.size());
  }
  if (auto before = connections_.find(fd); before != connections_.end()) Remove(before);
  connections_[fd] = {owner, inode_of_(fd)};
  ++by_user_[owner.uid];
  if (owner.uid != 0) ++of_users_;
}

std::optional<ConnectionOwner> ConnectionTable::Find(int fd) const {
  auto it = connections_.find(fd);
  if (it == connections_.end()) return std::nullopt;
  return it->second.owner;
}

void ConnectionTable::ForgetClosed(std::optional<uint32_t> uid) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto& [fd, connection] = *it;
    const bool asked = !uid || connection.owner.uid == *uid;
    it = asked && inode_of_(fd) != connection.inode ? Remove(it) : std::next(it);
  }
}

ConnectionTable::Connections::iterator ConnectionTable::Remove(Connections::iterator connection) {
  const uint32_t uid = connection->second.owner.uid;
  if (--by_user_[uid] == 0) by_user_.erase(uid);
  if (uid != 0) --of_users_;
  return connections_.erase(connection);
}

int ConnectionTable::CountOf(uint32_t uid) const {
  auto it = by_user_.find(uid);
  return it == by_user_.end() ? 0 : it->second;
}

}  // namespace siding
