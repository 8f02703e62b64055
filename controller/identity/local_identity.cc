#include "controller/identity/local_identity.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "controller/identity/accounts.h"

namespace siding {
namespace {

constexpr char kPrefix[] = "fd:";

}  // namespace

bool IsLocalPeer(const std::string& peer) { return absl::StartsWith(peer, kPrefix); }

LocalIdentities::LocalIdentities(const ServiceLimits& limits) : connections_(limits, InodeOfDescriptor) {}

absl::Status LocalIdentities::MayAdd(uint32_t uid) {
  MutexLock lock(mutex_);
  return connections_.MayAdd(uid);
}

void LocalIdentities::Add(int fd, ConnectionOwner owner) {
  MutexLock lock(mutex_);
  connections_.Add(fd, owner);
}

absl::StatusOr<UserIdentity> LocalIdentities::Of(const std::string& peer) const {
  absl::string_view text = peer;
  int number = -1;
  if (!absl::ConsumePrefix(&text, kPrefix) || !absl::SimpleAtoi(text, &number)) {
    return absl::UnauthenticatedError(absl::StrCat("peer ", peer, " did not come through the local socket"));
  }
  std::optional<ConnectionOwner> owner;
  {
    MutexLock lock(mutex_);
    owner = connections_.Find(number);
  }
  if (!owner) return absl::UnauthenticatedError(absl::StrCat("peer ", peer, " is not known"));
  return UserIdentity{owner->uid, owner->gid, UserName(owner->uid)};
}

absl::StatusOr<UserIdentity> LocalIdentities::UserOf(const Call& call) const {
  return Of(call.context.peer());
}

absl::StatusOr<AgentIdentity> LocalIdentities::AgentOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const UserIdentity identity, UserOf(call));
  const std::string who = absl::StrCat("user ", identity.user);
  if (identity.uid == 0 || identity.uid == geteuid()) return AgentIdentity{who, std::nullopt};
  return absl::PermissionDeniedError(absl::StrCat(who, " may not run an agent"));
}

}  // namespace siding
