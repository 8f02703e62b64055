// Certificates that exist: the files that a program is told to use, and whether a chain is to be believed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

// Paths of PEM files. `ca` is the trusted authority; certificate (first, then those between it and the CA)
// and key are one's own: both, or neither. `revoked` has lists of certificates that authorities have taken
// back (CRLs); empty: nobody keeps one.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string revoked;
};

// Whom a program believes: authorities, and their lists of what they have taken back; PEM.
struct Trust {
  std::string ca;
  std::string revoked;
};

// What is in them.
struct TlsMaterial {
  Trust trust;
  std::string certificate;
  std::string key;
};

// What a certificate is shown for.
enum class Purpose { kServer, kClient };

// Whether the first certificate of `chain` was issued for this purpose by one of the authorities that are
// believed, has not been revoked, and is valid at `now`. A list that has run out counts still: what it names
// does not become good again. Of an authority without a list nothing has been revoked. The error says whose
// certificate it is and what is wrong with it.
absl::Status VerifyChain(const std::string& chain, const Trust& trust, Purpose purpose, Time now);

// The same of a client's, by what the files `ca` and `revoked` say now.
absl::Status VerifyClient(const std::string& chain, const TlsFiles& files, Time now);
// What they say now. A list that is not of one of these authorities is an error.
absl::StatusOr<Trust> ReadTrust(const TlsFiles& files);

// The URIs among the alternative names of the first certificate of `chain`.
absl::StatusOr<std::vector<std::string>> UrisOf(const std::string& chain);

// Of a file with a secret: nobody but its owner may write it, and none but its group read it beside him.
// `what` is what errors call it.
absl::Status CheckSecretMode(const std::string& what, const std::string& path);
// Such a file's content: one word, of 32 characters or more, so that nobody finds it by trying.
absl::StatusOr<std::string> ReadSecretWord(const std::string& what, const std::string& path);

// When the first of these certificates ends to be valid.
absl::StatusOr<Time> EndOfValidity(const std::string& certificates);

// Reads the files and finds, with the file's name, what would otherwise only show as a broken connection: a
// key that does not belong to the certificate, or that others may read; a certificate that has expired or
// was not issued by this CA for this purpose.
absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files, Purpose purpose, Time now);

}  // namespace siding
