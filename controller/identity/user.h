// Whose a call is, whichever way it came.
#pragma once

#include <cstdint>
#include <string>

namespace siding {

// An account of this machine.
struct UserIdentity {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string user;  // "uid:1234" if the system knows no name
};

}  // namespace siding
