// Identity over the unix socket: the uid that the kernel named when the connection was made.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "controller/identity/connection_table.h"
#include "controller/identity/identity.h"

namespace siding {

// Whether ServerContext::peer() names a descriptor, as it does for connections from LocalListener only.
bool IsLocalPeer(const std::string& peer);

// Users are their uid. Agents are root's or this process's own, of any node. Thread-safe.
class LocalIdentities final : public Identities {
 public:
  explicit LocalIdentities(const ServiceLimits& limits);

  // kResourceExhausted, naming the limit, if there may be no more connections of this user's.
  absl::Status MayAdd(uint32_t uid);
  void Add(int fd, ConnectionOwner owner);

  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override;
  // The same, by ServerContext::peer().
  absl::StatusOr<UserIdentity> Of(const std::string& peer) const;

 private:
  mutable Mutex mutex_;
  ConnectionTable connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
