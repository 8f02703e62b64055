// Certificates that exist: the files that a program is told to use, and whether a chain is to be believed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

// Paths of PEM files. `ca` is the trusted authority; certificate (first, then those between it and the CA)
// and key are one's own: both, or neither.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

// What is in them.
struct TlsMaterial {
  std::string ca;
  std::string certificate;
  std::string key;
};

// What a certificate is shown for.
enum class Purpose { kServer, kClient };

// Whether the first certificate of `chain` was issued for this purpose by one of the authorities in `ca`,
// and is valid at `now`. The error says whose certificate it is and what is wrong with it.
absl::Status VerifyChain(const std::string& chain, const std::string& ca, Purpose purpose, Time now);

// The same of a client's, by the authorities that the file `ca` has now.
absl::Status VerifyClient(const std::string& chain, const std::string& ca, Time now);

// The URIs among the alternative names of the first certificate of `chain`.
absl::StatusOr<std::vector<std::string>> UrisOf(const std::string& chain);

// Of a file with a secret: nobody but its owner may write it, and none but its group read it beside him.
// `what` is what errors call it.
absl::Status CheckSecretMode(const std::string& what, const std::string& path);

// When the first of these certificates ends to be valid.
absl::StatusOr<Time> EndOfValidity(const std::string& certificates);

// Reads the files and finds, with the file's name, what would otherwise only show as a broken connection: a
// key that does not belong to the certificate, or that others may read; a certificate that has expired or
// was not issued by this CA for this purpose.
absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files, Purpose purpose, Time now);

}  // namespace siding
