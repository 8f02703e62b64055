#include "controller/identity/certificate_identity.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/tls/names.h"
#include "controller/identity/accounts.h"

namespace siding {
namespace {

using Kind = CertificateName::Kind;

absl::StatusOr<CertificateName> NameOf(const Call& call) {
  const auto shown = call.context.auth_context();
  if (shown == nullptr || shown->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty()) {
    return absl::UnauthenticatedError("no certificate was shown");
  }
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : shown->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return NameAmong(uris);
}

std::string Holder(const CertificateName& name) {
  return absl::StrCat("the certificate of ", ToString(name.kind), " ", name.name);
}

}  // namespace

absl::StatusOr<UserIdentity> CertificateIdentities::UserOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const CertificateName name, NameOf(call));
  if (name.kind == Kind::kUser) return AccountOf(name.name);
  return absl::PermissionDeniedError(absl::StrCat(Holder(name), " may not act as a user"));
}

absl::StatusOr<AgentIdentity> CertificateIdentities::AgentOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const CertificateName name, NameOf(call));
  if (name.kind == Kind::kNode) return AgentIdentity{Holder(name), NodeId(name.name)};
  return absl::PermissionDeniedError(absl::StrCat(Holder(name), " may not run an agent"));
}

}  // namespace siding
