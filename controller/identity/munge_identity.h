// Identity by MUNGE: each call of a user's brings a credential of its own. Agents have certificates.
#pragma once

#include <functional>
#include <string>

#include "common/munge/munge.h"
#include "controller/identity/certificate_identity.h"

namespace siding {

class MungeIdentities final : public Identities {
 public:
  // MungeDecode, or a test's. Must see to it that a credential is good only once.
  using Decode = std::function<absl::StatusOr<MungeDecoded>(const std::string& credential)>;
  explicit MungeIdentities(Decode decode) : decode_(std::move(decode)) {}

  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override {
    return certificates_.AgentOf(call);
  }

 private:
  const Decode decode_;
  const CertificateIdentities certificates_;
};

}  // namespace siding
