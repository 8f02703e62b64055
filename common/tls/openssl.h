// OpenSSL's objects with owners, for the sources of this folder.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

template <auto kFree>
struct OpensslDelete {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <class T, auto kFree>
using OpensslPtr = std::unique_ptr<T, OpensslDelete<kFree>>;

using X509Ptr = OpensslPtr<X509, X509_free>;
using KeyPtr = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
using CrlPtr = OpensslPtr<X509_CRL, X509_CRL_free>;
using BioPtr = OpensslPtr<BIO, BIO_free_all>;

// What OpenSSL says of its last failure, which it then forgets; with `doing` before it.
absl::Status OpensslError(const std::string& doing);
// OpenSSL keeps a list of failures for each thread; what is of no interest must not stay for the next to
// find.
void ForgetOpensslErrors();

// Reads `text`, which must outlive it.
BioPtr ReaderOf(const std::string& text);
// All certificates of a PEM text, at least one. kInvalidArgument.
absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(const std::string& pem);
// Without a passphrase. kInvalidArgument.
absl::StatusOr<KeyPtr> ParseKey(const std::string& pem);
std::string ToPem(X509& certificate);
std::string ToPem(EVP_PKEY& key);
std::string ToPem(X509_CRL& list);

}  // namespace siding
