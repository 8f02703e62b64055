// Makes certificates: for development, and for sites that have no authority of their own. EC keys on P-256.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tls/certificates.h"
#include "common/tls/names.h"
#include "common/units.h"

namespace siding {

// A certificate and its key, PEM.
struct Issued {
  std::string certificate;
  std::string key;
};

absl::StatusOr<Issued> MakeAuthority(Duration lifetime, Time now);

// Valid from a little before `now`, for clocks that are behind, until `lifetime` after it, but no longer than
// the authority itself. `key`: one that there is already, or empty for a fresh one.
absl::StatusOr<Issued> IssueFor(const CertificateName& holder, const Issued& authority, Duration lifetime,
                                Time now, const std::string& key = "");
// For a server that is reached under these host names or addresses.
absl::StatusOr<Issued> IssueForHosts(const std::vector<std::string>& hosts, const Issued& authority,
                                     Duration lifetime, Time now, const std::string& key = "");

}  // namespace siding
