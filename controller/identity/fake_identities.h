// Callers with the identities that a test sets.
#pragma once

#include <atomic>

#include "controller/identity/identity.h"

namespace siding {

struct FakeIdentities final : public Identities {
  absl::StatusOr<UserIdentity> user = UserIdentity{1000, 1000, "ada"};
  absl::StatusOr<AgentIdentity> agent = AgentIdentity{"user root", std::nullopt};

  std::atomic<int64_t> version = 0;

  absl::StatusOr<UserIdentity> UserOf(const Call&) const override { return user; }
  absl::StatusOr<AgentIdentity> AgentOf(const Call&) const override { return agent; }
  int64_t Version() const override { return version; }
};

}  // namespace siding
