// Whose a user's certificate is, whichever way it was shown: to gRPC, or to the operators' page.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tls/names.h"
#include "controller/identity/user.h"

namespace siding {

// For people: "the certificate of node n1".
std::string HolderOf(const CertificateName& name);

// By the URIs of a certificate that was found good: the account of its name, as it is now. kUnauthenticated:
// it has none of siding's, or several. kPermissionDenied: it is a node's, or there is no such account.
absl::StatusOr<UserIdentity> UserOfCertificate(const std::vector<std::string>& uris);

}  // namespace siding
