// Certificates that their authority has taken back before they expire: revocation lists (CRLs, RFC 5280).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/tls/openssl.h"

namespace siding {

// All lists in a text of PEM, at least one, and nothing behind them. kInvalidArgument: also of a list that
// has to be understood in another way than a plain one (RFC 5280: those that are a part only, by what they
// are of or by what has changed, and those of other issuers), since nobody here does.
absl::StatusOr<std::vector<CrlPtr>> ParseRevocationLists(const std::string& pem);

// Whether each list in `lists` was signed by one of the authorities in `ca`. kInvalidArgument.
absl::Status CheckRevocationLists(const std::string& lists, const std::string& ca);

// Whether one of them names it. Any does, also one that has run out, or that a later one has followed: what
// was taken back once does not become good again.
bool IsRevoked(X509& certificate, const std::vector<CrlPtr>& lists);

// For connections, which outlive the handshake in which a certificate was found good: the lists in a file,
// which is read again when it has changed, or could not be read. While it cannot, no certificate is good.
//
// Thread-safe.
class Revocations {
 public:
  // Empty: there are none.
  explicit Revocations(std::string file) : file_(std::move(file)) {}

  // Of `chain`, in PEM. kUnauthenticated: one of these has been taken back.
  absl::Status Check(const std::string& chain) ABSL_LOCKS_EXCLUDED(mutex_);
  // Another one when the file has changed: what was good then may not be now.
  int64_t Version() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string file_;
  Mutex mutex_;
  struct stat seen_ ABSL_GUARDED_BY(mutex_) = {};
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::StatusOr<std::vector<CrlPtr>> lists_ ABSL_GUARDED_BY(mutex_) = std::vector<CrlPtr>();
};

}  // namespace siding
