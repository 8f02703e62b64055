#include "controller/identity/munge_identity.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/identity/accounts.h"

namespace siding {

absl::StatusOr<UserIdentity> MungeIdentities::UserOf(const Call& call) const {
  const auto& metadata = call.context.client_metadata();
  const auto [first, last] = metadata.equal_range(kMungeMetadata);
  if (first == last || std::next(first) != last) {
    return absl::UnauthenticatedError("expected one MUNGE credential with the call (sidingctl --munge)");
  }
  SIDING_ASSIGN_OR_RETURN(const MungeDecoded decoded,
                          decode_(std::string(first->second.data(), first->second.size())));
  if (decoded.payload != MungePayload(call.method)) {
    return absl::UnauthenticatedError(absl::StrCat("the MUNGE credential of uid ", decoded.uid, " is for '",
                                                   absl::CHexEscape(decoded.payload), "', not for '",
                                                   MungePayload(call.method), "'"));
  }
  return UserIdentity{decoded.uid, decoded.gid, UserName(decoded.uid)};
}

}  // namespace siding
