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

// The authority's list of what it has taken back: what is in `list`, its last one (empty: there is none), and
// these certificates, PEM, which are its own. It does not run out before the authority does.
absl::StatusOr<std::string> Revoke(const Issued& authority, const std::string& list,
                                   const std::vector<std::string>& certificates, Time now);

// Whether the authority's key has signed the first of these certificates.
absl::StatusOr<bool> IsIssuedBy(const Issued& authority, const std::string& certificates);

// Whether one of these certificates is of that key, PEM, and on one of the lists.
absl::StatusOr<bool> IsRevokedKey(const std::string& key, const std::vector<std::string>& certificates,
                                  const std::string& list);

// The serial number of the first of these certificates, in hexadecimal digits.
absl::StatusOr<std::string> SerialOf(const std::string& certificates);

}  // namespace siding
