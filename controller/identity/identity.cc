#include "controller/identity/identity.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/identity/local_identity.h"

namespace siding {

absl::StatusOr<const Identities*> IdentitiesByWay::For(const Call& call) const {
  const std::string peer = call.context.peer();
  if (IsLocalPeer(peer)) return &local_;
  if (remote_ != nullptr) return remote_;
  return absl::UnauthenticatedError(absl::StrCat("peer ", peer, " did not come through the local socket"));
}

absl::StatusOr<UserIdentity> IdentitiesByWay::UserOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const Identities* identities, For(call));
  return identities->UserOf(call);
}

absl::Status IdentitiesByWay::StillGood(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const Identities* identities, For(call));
  return identities->StillGood(call);
}

absl::StatusOr<AgentIdentity> IdentitiesByWay::AgentOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const Identities* identities, For(call));
  return identities->AgentOf(call);
}

}  // namespace siding
