#include "common/tls/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

std::string Written(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// A service cannot ask for a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status OpensslError(const std::string& doing) {
  const unsigned long error = ERR_get_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ForgetOpensslErrors();
  return absl::InternalError(absl::StrCat(doing, ": ", reason == nullptr ? "OpenSSL failed" : reason));
}

void ForgetOpensslErrors() { ERR_clear_error(); }

BioPtr ReaderOf(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(const std::string& pem) {
  const BioPtr bio = ReaderOf(pem);
  std::vector<X509Ptr> found;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)) found.emplace_back(one);
  // Anything but the end of the text is damage: half a file must not pass for a shorter one.
  const unsigned long error = ERR_peek_last_error();
  ForgetOpensslErrors();
  if (found.empty() || ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return absl::InvalidArgumentError("expected certificates in PEM");
  }
  return found;
}

absl::StatusOr<KeyPtr> ParseKey(const std::string& pem) {
  const BioPtr bio = ReaderOf(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ForgetOpensslErrors();
  if (key == nullptr)
    return absl::InvalidArgumentError("expected a private key in PEM, without a passphrase");
  return key;
}

std::string ToPem(X509& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), &certificate);
  return Written(*bio);
}

std::string ToPem(EVP_PKEY& key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
  return Written(*bio);
}

std::string ToPem(X509_CRL& list) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(bio.get(), &list);
  return Written(*bio);
}

}  // namespace siding
