#include "common/tls/certificates.h"

#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "common/tls/openssl.h"
#include "common/tls/revocation.h"

namespace siding {
namespace {

using StorePtr = OpensslPtr<X509_STORE, X509_STORE_free>;
using StoreContextPtr = OpensslPtr<X509_STORE_CTX, X509_STORE_CTX_free>;
using NamesPtr = OpensslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

constexpr size_t kLongestDescription = 256;
constexpr size_t kShortestSecret = 32;

std::string TextOf(const ASN1_STRING* text) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return absl::CHexEscape(std::string(data, static_cast<size_t>(ASN1_STRING_length(text))));
}

// Its URIs and host names; its subject if it has none. Not trusted text, so escaped.
std::string Describe(X509& certificate) {
  std::vector<std::string> found;
  const NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI || name->type == GEN_DNS) found.push_back(TextOf(name->d.ia5));
  }
  if (!found.empty()) return absl::StrJoin(found, ", ").substr(0, kLongestDescription);
  char subject[256] = "";
  X509_NAME_oneline(X509_get_subject_name(&certificate), subject, sizeof subject);
  return absl::CHexEscape(subject);
}

// "2026-05-01T12:00:00Z"
std::string EndOf(X509& certificate) {
  tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end) != 1) return "an unknown time";
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &end);
  return text;
}

std::string WhyNot(int error, X509& certificate) {
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "it was not issued by a trusted authority";
    case X509_V_ERR_INVALID_PURPOSE:
      return "it is not for this purpose: a client shows a client's certificate, a server a server's";
    case X509_V_ERR_CERT_REVOKED:
      return "it has been revoked";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat("it expired at ", EndOf(certificate));
    default:
      return X509_verify_cert_error_string(error);
  }
}

absl::StatusOr<std::string> Read(const std::string& what, const std::string& path) {
  auto text = ReadFile(path);
  if (!text.ok()) return Annotate(text.status(), what);
  return text;
}

absl::Status CheckOwn(const TlsMaterial& material, const TlsFiles& files, Purpose purpose, Time now) {
  const auto certificates = ParseCertificates(material.certificate);
  if (!certificates.ok()) {
    return Annotate(certificates.status(), absl::StrCat("certificate ", files.certificate));
  }
  SIDING_RETURN_IF_ERROR(CheckSecretMode("key", files.key));
  const auto key = ParseKey(material.key);
  if (!key.ok()) return Annotate(key.status(), absl::StrCat("key ", files.key));
  if (X509_check_private_key(certificates->front().get(), key->get()) != 1) {
    ForgetOpensslErrors();
    return absl::FailedPreconditionError(
        absl::StrCat("key ", files.key, " does not belong to the certificate in ", files.certificate));
  }
  return Annotate(VerifyChain(material.certificate, material.trust, purpose, now),
                  absl::StrCat("certificate ", files.certificate));
}

// The first of a chain that was found good which has been taken back; nullptr: none. The last is believed
// whatever a list says: it is taken back by being taken out of the file.
X509* RevokedOf(X509_STORE_CTX& context, const std::vector<CrlPtr>& lists) {
  STACK_OF(X509)* const chain = X509_STORE_CTX_get0_chain(&context);
  for (int i = 0; i + 1 < sk_X509_num(chain); ++i) {
    if (X509* const one = sk_X509_value(chain, i); IsRevoked(*one, lists)) return one;
  }
  return nullptr;
}

}  // namespace

absl::Status VerifyChain(const std::string& chain, const Trust& trust, Purpose purpose, Time now) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> shown, ParseCertificates(chain));
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> believed, ParseCertificates(trust.ca));
  std::vector<CrlPtr> lists;
  if (!trust.revoked.empty()) {
    SIDING_ASSIGN_OR_RETURN(lists, ParseRevocationLists(trust.revoked));
  }
  const StorePtr store(X509_STORE_new());
  for (const X509Ptr& one : believed) X509_STORE_add_cert(store.get(), one.get());
  STACK_OF(X509)* between = sk_X509_new_null();  // owns none of them
  for (size_t i = 1; i < shown.size(); ++i) sk_X509_push(between, shown[i].get());

  const StoreContextPtr context(X509_STORE_CTX_new());
  bool good = X509_STORE_CTX_init(context.get(), store.get(), shown.front().get(), between) == 1 &&
              X509_STORE_CTX_set_default(context.get(),
                                         purpose == Purpose::kServer ? "ssl_server" : "ssl_client") == 1;
  if (good) {
    X509_STORE_CTX_set_time(context.get(), 0, std::chrono::system_clock::to_time_t(now));
    good = X509_verify_cert(context.get()) == 1;
  }
  X509* const revoked = good ? RevokedOf(*context, lists) : nullptr;
  const int error = revoked != nullptr ? X509_V_ERR_CERT_REVOKED : X509_STORE_CTX_get_error(context.get());
  sk_X509_free(between);
  if (good && revoked == nullptr) return absl::OkStatus();
  ForgetOpensslErrors();  // the context says more
  X509* at = revoked != nullptr ? revoked : X509_STORE_CTX_get_current_cert(context.get());
  X509& blamed = at == nullptr ? *shown.front() : *at;
  return absl::UnauthenticatedError(absl::StrCat(
      Describe(*shown.front()), &blamed == shown.front().get() ? "" : ", issuer " + Describe(blamed), ": ",
      WhyNot(error, blamed)));
}

absl::StatusOr<Trust> ReadTrust(const TlsFiles& files) {
  Trust trust;
  SIDING_ASSIGN_OR_RETURN(trust.ca, Read("ca", files.ca));
  if (const auto parsed = ParseCertificates(trust.ca); !parsed.ok())
    return Annotate(parsed.status(), absl::StrCat("ca ", files.ca));
  if (files.revoked.empty()) return trust;
  SIDING_ASSIGN_OR_RETURN(trust.revoked, Read("revoked", files.revoked));
  SIDING_RETURN_IF_ERROR(
      Annotate(CheckRevocationLists(trust.revoked, trust.ca), absl::StrCat("revoked ", files.revoked)));
  return trust;
}

absl::Status VerifyClient(const std::string& chain, const TlsFiles& files, Time now) {
  SIDING_ASSIGN_OR_RETURN(const Trust trust, ReadTrust(files));
  return VerifyChain(chain, trust, Purpose::kClient, now);
}

absl::StatusOr<std::vector<std::string>> UrisOf(const std::string& chain) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> shown, ParseCertificates(chain));
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(shown.front().get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.ia5));
    uris.emplace_back(data, static_cast<size_t>(ASN1_STRING_length(name->d.ia5)));
  }
  return uris;
}

absl::Status CheckSecretMode(const std::string& what, const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return ErrnoError(errno, absl::StrCat(what, " ", path));
  if ((info.st_mode & 0027) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s %s has mode %04o, so that others could use it; expected 0600", what, path,
                      static_cast<unsigned>(info.st_mode & 07777)));
}

absl::StatusOr<std::string> ReadSecretWord(const std::string& what, const std::string& path) {
  SIDING_RETURN_IF_ERROR(CheckSecretMode(what, path));
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::string secret(absl::StripAsciiWhitespace(text));
  for (const char c : secret) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) secret.clear();
  }
  if (secret.size() >= kShortestSecret) return secret;
  return absl::InvalidArgumentError(absl::StrCat(what, " ", path, ": expected one word of ", kShortestSecret,
                                                 " characters or more, such as by 'openssl rand -hex 32'"));
}

absl::StatusOr<Time> EndOfValidity(const std::string& certificates) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain, ParseCertificates(certificates));
  Time first = Time::max();
  for (const X509Ptr& one : chain) {
    tm end{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(one.get()), &end) != 1)
      return absl::InvalidArgumentError("a certificate that does not say how long it is valid");
    first = std::min(first, Time(std::chrono::seconds(timegm(&end))));
  }
  return first;
}

absl::StatusOr<TlsMaterial> LoadTlsFiles(const TlsFiles& files, Purpose purpose, Time now) {
  if (files.ca.empty()) {
    return absl::InvalidArgumentError("no file with the trusted certificate authority (ca)");
  }
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("a certificate and its key are needed together");
  }
  TlsMaterial material;
  SIDING_ASSIGN_OR_RETURN(material.trust, ReadTrust(files));
  if (files.certificate.empty()) return material;
  SIDING_ASSIGN_OR_RETURN(material.certificate, Read("certificate", files.certificate));
  SIDING_ASSIGN_OR_RETURN(material.key, Read("key", files.key));
  SIDING_RETURN_IF_ERROR(CheckOwn(material, files, purpose, now));
  return material;
}

}  // namespace siding
