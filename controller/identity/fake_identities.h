// Callers with the identities that a test sets.
#pragma once

#include "controller/identity/identity.h"

namespace siding {

struct FakeIdentities final : public Identities {
  absl::StatusOr<UserIdentity> user = UserIdentity{1000, 1000, "ada"};
  absl::StatusOr<AgentIdentity> agent = AgentIdentity{"user root", std::nullopt};

  absl::StatusOr<UserIdentity> UserOf(const Call&) const override { return user; }
  absl::StatusOr<AgentIdentity> AgentOf(const Call&) const override { return agent; }
};

}  // namespace siding
