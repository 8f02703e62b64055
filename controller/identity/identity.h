// Who is at the other end of a call. The services ask this interface, and do not know by what means it
// answers: the unix socket, a certificate, or MUNGE (docs/admin/security.md).
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "controller/identity/user.h"

namespace siding {

// A caller that may run an agent.
struct AgentIdentity {
  std::string who;             // for people
  std::optional<NodeId> node;  // the one it may speak for; none: any
};

struct Call {
  const grpc::ServerContextBase& context;
  std::string method;  // plain, such as "Submit"
};

// Thread-safe. kUnauthenticated: the caller is not known. kPermissionDenied: it is known, and may not.
class Identities {
 public:
  virtual ~Identities() = default;
  // The user for whom the call acts. To be asked once for each call: a credential is good for one question.
  virtual absl::StatusOr<UserIdentity> UserOf(const Call& call) const = 0;
  virtual absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const = 0;
  // Another one when what was answered about a connection may be answered otherwise now.
  virtual int64_t Version() const { return 0; }
  // Of a call that was answered before, whose credential is not asked for again. Not OK: why it is to end.
  virtual absl::Status StillGood(const Call& /*call*/) const { return absl::OkStatus(); }
};

// Asks `local` about calls that came over the unix socket, and `remote` about all others. Both must outlive
// it; without `remote`, all other calls are rejected.
class IdentitiesByWay final : public Identities {
 public:
  IdentitiesByWay(const Identities& local, const Identities* remote) : local_(local), remote_(remote) {}
  absl::StatusOr<UserIdentity> UserOf(const Call& call) const override;
  absl::StatusOr<AgentIdentity> AgentOf(const Call& call) const override;
  int64_t Version() const override { return remote_ == nullptr ? 0 : remote_->Version(); }
  absl::Status StillGood(const Call& call) const override;

 private:
  absl::StatusOr<const Identities*> For(const Call& call) const;

  const Identities& local_;
  const Identities* const remote_;
};

}  // namespace siding
