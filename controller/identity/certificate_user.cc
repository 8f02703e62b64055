#include "controller/identity/certificate_user.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/identity/accounts.h"

namespace siding {

std::string HolderOf(const CertificateName& name) {
  return absl::StrCat("the certificate of ", ToString(name.kind), " ", name.name);
}

absl::StatusOr<UserIdentity> UserOfCertificate(const std::vector<std::string>& uris) {
  SIDING_ASSIGN_OR_RETURN(const CertificateName name, NameAmong(uris));
  if (name.kind == CertificateName::Kind::kUser) return AccountOf(name.name);
  return absl::PermissionDeniedError(absl::StrCat(HolderOf(name), " may not act as a user"));
}

}  // namespace siding
