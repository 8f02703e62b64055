// The accounts of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "controller/identity/user.h"

namespace siding {

// The name of a uid, "uid:1234" if it has none.
std::string UserName(uint32_t uid);
// kPermissionDenied if there is no such account, or if it is another name of root's: root is called root.
absl::StatusOr<UserIdentity> AccountOf(const std::string& user);

}  // namespace siding
