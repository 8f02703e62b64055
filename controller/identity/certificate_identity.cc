#include "controller/identity/certificate_identity.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/tls/names.h"
#include "controller/identity/certificate_user.h"

namespace siding {
absl::StatusOr<std::vector<std::string>> CertificateIdentities::UrisOf(const Call& call) const {
  const auto shown = call.context.auth_context();
  if (shown == nullptr || shown->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty())
    return absl::UnauthenticatedError("no certificate was shown");
  std::string chain;
  for (const char* const property :
       {GRPC_X509_PEM_CERT_PROPERTY_NAME, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    for (const grpc::string_ref& pem : shown->FindPropertyValues(property))
      chain.append(pem.data(), pem.size());
  }
  SIDING_RETURN_IF_ERROR(revocations_.Check(chain));
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : shown->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return uris;
}

absl::StatusOr<UserIdentity> CertificateIdentities::UserOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> uris, UrisOf(call));
  return UserOfCertificate(uris);
}

absl::StatusOr<AgentIdentity> CertificateIdentities::AgentOf(const Call& call) const {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> uris, UrisOf(call));
  SIDING_ASSIGN_OR_RETURN(const CertificateName name, NameAmong(uris));
  if (name.kind == CertificateName::Kind::kNode) return AgentIdentity{HolderOf(name), NodeId(name.name)};
  return absl::PermissionDeniedError(absl::StrCat(HolderOf(name), " may not run an agent"));
}

}  // namespace siding
