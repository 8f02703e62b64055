// Identity by the certificate that was shown in the TLS handshake (common/tls), which found it good: a node's
// speaks for this node, a user's is the account of this name, and neither is the other.
#pragma once

#include "controller/identity/identity.h"

namespace siding {

class CertificateIdentities final : public Identities {
 public:
  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override;
};

}  // namespace siding
