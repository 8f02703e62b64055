// What siding's certificates say of their holders: a URI among their alternative names, siding://node/n1 or
// siding://user/ada. A URI, because no certificate authority writes one of this scheme by accident, as it may
// an organisational unit or a common name. The controller needs none: it is known by its host names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

struct CertificateName {
  enum class Kind { kNode, kUser };
  Kind kind = Kind::kUser;
  std::string name;
  bool operator==(const CertificateName&) const = default;
};

// "node" or "user".
std::string ToString(CertificateName::Kind kind);
std::string ToUri(const CertificateName& name);

// Of all URIs of a certificate. kUnauthenticated unless exactly one is siding's and says what is expected:
// a certificate that is two things is none.
absl::StatusOr<CertificateName> NameAmong(const std::vector<std::string>& uris);

// Whether a certificate may be made for this name: letters, digits and ._-, at most 64 of them, so that it
// means the same in a URI, a file name and a log.
absl::Status CheckName(const std::string& name);

}  // namespace siding
