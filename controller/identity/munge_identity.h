// Identity by MUNGE: each call of a user's brings a credential of its own. Agents have certificates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "common/munge/munge.h"
#include "common/mutex.h"
#include "controller/identity/certificate_identity.h"

namespace siding {

// Credentials that were good. munged remembers those, too, but not beyond its own end.
//
// Thread-safe.
class UsedCredentials {
 public:
  static constexpr size_t kMost = 1'000'000;  // beyond that munged's memory is all there is

  // False: it has been used before.
  bool Add(const std::string& credential, Time expires, Time now);

 private:
  Mutex mutex_;
  std::unordered_map<uint64_t, Time> expires_ ABSL_GUARDED_BY(mutex_);  // by a checksum of the credential
  Time swept_ ABSL_GUARDED_BY(mutex_);
};

class MungeIdentities final : public Identities {
 public:
  // MungeDecode, or a test's. A credential is good only once, also if it does not see to that.
  using Decode = std::function<absl::StatusOr<MungeDecoded>(const std::string& credential)>;
  explicit MungeIdentities(Decode decode, std::string revoked = "")
      : decode_(std::move(decode)), certificates_(std::move(revoked)) {}

  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override {
    return certificates_.AgentOf(call);
  }
  int64_t Version() const override { return certificates_.Version(); }

 private:
  const Decode decode_;
  mutable UsedCredentials used_;
  const CertificateIdentities certificates_;
};

}  // namespace siding
