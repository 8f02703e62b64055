// Identity by the certificate that was shown in the TLS handshake (common/tls), which found it good: a node's
// speaks for this node, a user's is the account of this name, and neither is the other.
#pragma once

#include <string>

#include "common/tls/revocation.h"
#include "controller/identity/identity.h"

namespace siding {

class CertificateIdentities final : public Identities {
 public:
  // TlsFiles::revoked: connections outlive the handshake.
  explicit CertificateIdentities(std::string revoked = "") : revocations_(std::move(revoked)) {}
  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override;
  int64_t Version() const override { return revocations_.Version(); }
  absl::Status StillGood(const Call& call) const override { return UrisOf(call).status(); }

 private:
  absl::StatusOr<std::vector<std::string>> UrisOf(const Call& call) const;

  mutable Revocations revocations_;
};

}  // namespace siding
