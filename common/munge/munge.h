// MUNGE: credentials that say which uid and gid made them, and that every machine with the site's key can
// decode. libmunge is loaded when it is first needed, so that programs run where it is not installed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

// Under this name a credential travels with a call.
inline constexpr char kMungeMetadata[] = "siding-munge";

// What a credential for a call of the user's service is made of, so that it is good for no other method and
// no other service. `method` is the plain name, such as "Submit".
std::string MungePayload(const std::string& method);

struct MungeDecoded {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string payload;
  Time expires;  // from then on it is refused
};

// Speaks to munged on `socket`; empty: where libmunge looks. Blocks for as long as munged takes. kUnavailable
// if there is no libmunge or no munged.
absl::StatusOr<std::string> MungeEncode(const std::string& payload, const std::string& socket);
// kUnauthenticated, saying why, for a credential that is none, has expired or has been decoded before.
absl::StatusOr<MungeDecoded> MungeDecode(const std::string& credential, const std::string& socket);

}  // namespace siding
