#include "common/tls/authority.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/tls/openssl.h"
#include "common/tls/revocation.h"

namespace siding {
namespace {

constexpr Duration kClocksMayBeBehind = std::chrono::minutes(5);
constexpr size_t kLongestCommonName = 64;

// What is to be written into a certificate.
struct Form {
  std::string unit, common_name;  // for people
  std::vector<std::pair<int, std::string>> extensions;
};

std::vector<std::pair<int, std::string>> EndExtensions(const char* usage, const std::string& names) {
  return {{NID_basic_constraints, "critical,CA:FALSE"},
          {NID_key_usage, "critical,digitalSignature"},
          {NID_ext_key_usage, usage},
          {NID_subject_alt_name, names},
          {NID_subject_key_identifier, "hash"},
          {NID_authority_key_identifier, "keyid"}};
}

bool IsAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 || inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

absl::StatusOr<std::string> AlternativeName(const std::string& host) {
  if (IsAddress(host)) return absl::StrCat("IP:", host);
  const auto usual = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-'; };
  if (!host.empty() && host.size() < 254 && std::all_of(host.begin(), host.end(), usual)) {
    return absl::StrCat("DNS:", host);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", host, "': expected a host name or an address"));
}

absl::Status SetName(X509_NAME* name, const Form& form) {
  const auto add = [name](const char* field, const std::string& text) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0) == 1;
  };
  if (add("O", "siding") && add("OU", form.unit) &&
      add("CN", form.common_name.substr(0, kLongestCommonName))) {
    return absl::OkStatus();
  }
  return OpensslError("writing the certificate's subject");
}

absl::Status SetSerial(X509& certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return OpensslError("drawing a serial number");
  bytes[0] &= 0x7f;  // positive
  const OpensslPtr<BIGNUM, BN_free> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) == nullptr) {
    return OpensslError("writing the serial number");
  }
  return absl::OkStatus();
}

absl::Status SetTimes(X509& certificate, const X509* issuer, Duration lifetime, Time now) {
  ASN1_TIME_set(X509_getm_notBefore(&certificate),
                std::chrono::system_clock::to_time_t(now - kClocksMayBeBehind));
  ASN1_TIME_set(X509_getm_notAfter(&certificate), std::chrono::system_clock::to_time_t(now + lifetime));
  if (issuer == nullptr) return absl::OkStatus();
  const ASN1_TIME* last = X509_get0_notAfter(issuer);
  if (ASN1_TIME_compare(X509_getm_notAfter(&certificate), last) > 0) X509_set1_notAfter(&certificate, last);
  if (ASN1_TIME_cmp_time_t(last, std::chrono::system_clock::to_time_t(now)) <= 0) {
    return absl::FailedPreconditionError("the authority's own certificate has expired");
  }
  return absl::OkStatus();
}

absl::Status AddExtensions(X509& certificate, X509& issuer, const Form& form) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  for (const auto& [kind, text] : form.extensions) {
    const OpensslPtr<X509_EXTENSION, X509_EXTENSION_free> extension(
        X509V3_EXT_conf_nid(nullptr, &context, kind, text.c_str()));
    if (extension == nullptr || X509_add_ext(&certificate, extension.get(), -1) != 1) {
      return OpensslError(absl::StrCat("writing ", OBJ_nid2sn(kind), " '", text, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyPtr> KeyOf(const std::string& pem) {
  if (!pem.empty()) return ParseKey(pem);
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("making a key");
  return key;
}

struct Issuer {
  X509Ptr certificate;
  KeyPtr key;
};

// Without an issuer it is its own.
absl::StatusOr<Issued> Sign(const Form& form, const Issuer* issuer, Duration lifetime, Time now,
                            const std::string& old_key) {
  SIDING_ASSIGN_OR_RETURN(const KeyPtr key, KeyOf(old_key));
  const X509Ptr certificate(X509_new());
  X509* const above = issuer == nullptr ? certificate.get() : issuer->certificate.get();
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_set_pubkey(certificate.get(), key.get());
  SIDING_RETURN_IF_ERROR(SetSerial(*certificate));
  SIDING_RETURN_IF_ERROR(SetTimes(*certificate, issuer == nullptr ? nullptr : above, lifetime, now));
  SIDING_RETURN_IF_ERROR(SetName(X509_get_subject_name(certificate.get()), form));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(above));
  SIDING_RETURN_IF_ERROR(AddExtensions(*certificate, *above, form));
  if (X509_sign(certificate.get(), issuer == nullptr ? key.get() : issuer->key.get(), EVP_sha256()) == 0) {
    return OpensslError("signing the certificate");
  }
  return Issued{ToPem(*certificate), ToPem(*key)};
}

absl::StatusOr<Issuer> IssuerOf(const Issued& authority) {
  SIDING_ASSIGN_OR_RETURN(std::vector<X509Ptr> certificates, ParseCertificates(authority.certificate));
  SIDING_ASSIGN_OR_RETURN(KeyPtr key, ParseKey(authority.key));
  if (X509_check_private_key(certificates.front().get(), key.get()) != 1) {
    ForgetOpensslErrors();
    return absl::FailedPreconditionError("the authority's key does not belong to its certificate");
  }
  return Issuer{std::move(certificates.front()), std::move(key)};
}

bool IsSignedBy(X509& certificate, X509& authority) {
  const bool is = X509_verify(&certificate, X509_get0_pubkey(&authority)) == 1;
  ForgetOpensslErrors();
  return is;
}

using RevokedPtr = OpensslPtr<X509_REVOKED, X509_REVOKED_free>;
using IntegerPtr = OpensslPtr<ASN1_INTEGER, ASN1_INTEGER_free>;

// A certificate that is in it already stays as it is.
absl::Status Add(X509_CRL& list, X509& certificate, const ASN1_TIME& now) {
  X509_REVOKED* known = nullptr;
  if (X509_CRL_get0_by_cert(&list, &known, &certificate) == 1) return absl::OkStatus();
  RevokedPtr entry(X509_REVOKED_new());
  X509_REVOKED_set_serialNumber(entry.get(), X509_get_serialNumber(&certificate));
  X509_REVOKED_set_revocationDate(entry.get(), const_cast<ASN1_TIME*>(&now));
  if (X509_CRL_add0_revoked(&list, entry.get()) != 1) return OpensslError("adding to the list");
  entry.release();
  return absl::OkStatus();
}

// Whoever keeps the newest one of several knows it by that.
absl::Status SetNumber(X509_CRL& list, const X509_CRL* last) {
  int64_t number = 0;
  if (last != nullptr) {
    const IntegerPtr of_last(
        static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(last, NID_crl_number, nullptr, nullptr)));
    if (of_last != nullptr) ASN1_INTEGER_get_int64(&number, of_last.get());
  }
  const IntegerPtr next(ASN1_INTEGER_new());
  if (ASN1_INTEGER_set_int64(next.get(), number + 1) != 1 ||
      X509_CRL_add1_ext_i2d(&list, NID_crl_number, next.get(), 0, X509V3_ADD_REPLACE) != 1)
    return OpensslError("numbering the list");
  return absl::OkStatus();
}

// The last one has its entries; all else is of the authority and of now.
absl::Status FillIn(X509_CRL& list, const X509_CRL* last, const Issuer& issuer, const ASN1_TIME& now) {
  X509_CRL_set_version(&list, X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(&list, X509_get_subject_name(issuer.certificate.get()));
  X509_CRL_set1_lastUpdate(&list, &now);
  X509_CRL_set1_nextUpdate(&list, X509_get0_notAfter(issuer.certificate.get()));
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer.certificate.get(), nullptr, nullptr, &list, 0);
  const OpensslPtr<X509_EXTENSION, X509_EXTENSION_free> key(
      X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid"));
  if (key == nullptr || X509_CRL_add_ext(&list, key.get(), -1) != 1) return OpensslError("writing the list");
  return SetNumber(list, last);
}

}  // namespace

absl::StatusOr<std::string> Revoke(const Issued& authority, const std::string& list,
                                   const std::vector<std::string>& certificates, Time now) {
  SIDING_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  std::vector<CrlPtr> last;
  if (!list.empty()) {
    SIDING_RETURN_IF_ERROR(CheckRevocationLists(list, authority.certificate));
    SIDING_ASSIGN_OR_RETURN(last, ParseRevocationLists(list));
  }
  const CrlPtr made(X509_CRL_new());
  const OpensslPtr<ASN1_TIME, ASN1_TIME_free> time(
      ASN1_TIME_set(nullptr, std::chrono::system_clock::to_time_t(now - kClocksMayBeBehind)));
  SIDING_RETURN_IF_ERROR(FillIn(*made, last.empty() ? nullptr : last.front().get(), issuer, *time));
  for (const CrlPtr& one : last) {
    STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(one.get());
    for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
      RevokedPtr copy(X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i)));
      if (X509_CRL_add0_revoked(made.get(), copy.get()) != 1) return OpensslError("copying the list");
      copy.release();
    }
  }
  for (const std::string& pem : certificates) {
    SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> parsed, ParseCertificates(pem));
    X509& one = *parsed.front();
    if (X509_check_ca(&one) > 0)
      return absl::InvalidArgumentError(
          "an authority's own certificate is taken back by taking it out of ca.pem");
    if (!IsSignedBy(one, *issuer.certificate))
      return absl::InvalidArgumentError("a certificate that this authority has not issued");
    SIDING_RETURN_IF_ERROR(Add(*made, one, *time));
  }
  X509_CRL_sort(made.get());
  if (X509_CRL_sign(made.get(), issuer.key.get(), EVP_sha256()) == 0) return OpensslError("signing the list");
  return ToPem(*made);
}

absl::StatusOr<bool> IsIssuedBy(const Issued& authority, const std::string& certificates) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> its, ParseCertificates(authority.certificate));
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> parsed, ParseCertificates(certificates));
  return IsSignedBy(*parsed.front(), *its.front());
}

absl::StatusOr<bool> IsRevokedKey(const std::string& key, const std::vector<std::string>& certificates,
                                  const std::string& list) {
  SIDING_ASSIGN_OR_RETURN(const KeyPtr its, ParseKey(key));
  SIDING_ASSIGN_OR_RETURN(const std::vector<CrlPtr> lists, ParseRevocationLists(list));
  for (const std::string& pem : certificates) {
    SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> parsed, ParseCertificates(pem));
    const bool is_its = X509_check_private_key(parsed.front().get(), its.get()) == 1;
    ForgetOpensslErrors();
    if (is_its && IsRevoked(*parsed.front(), lists)) return true;
  }
  return false;
}

absl::StatusOr<std::string> SerialOf(const std::string& certificates) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> parsed, ParseCertificates(certificates));
  const OpensslPtr<BIGNUM, BN_free> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(parsed.front().get()), nullptr));
  char* const text = BN_bn2hex(number.get());
  std::string serial(text);
  OPENSSL_free(text);
  return serial;
}

absl::StatusOr<Issued> MakeAuthority(Duration lifetime, Time now) {
  const Form form{"authority",
                  "siding CA",
                  {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                   {NID_key_usage, "critical,keyCertSign,cRLSign"},
                   {NID_subject_key_identifier, "hash"}}};
  return Sign(form, nullptr, lifetime, now, "");
}

absl::StatusOr<Issued> IssueFor(const CertificateName& holder, const Issued& authority, Duration lifetime,
                                Time now, const std::string& key) {
  SIDING_RETURN_IF_ERROR(CheckName(holder.name));
  SIDING_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  const Form form{ToString(holder.kind), holder.name,
                  EndExtensions("clientAuth", absl::StrCat("URI:", ToUri(holder)))};
  return Sign(form, &issuer, lifetime, now, key);
}

absl::StatusOr<Issued> IssueForHosts(const std::vector<std::string>& hosts, const Issued& authority,
                                     Duration lifetime, Time now, const std::string& key) {
  if (hosts.empty()) return absl::InvalidArgumentError("expected a host name");
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    SIDING_ASSIGN_OR_RETURN(names.emplace_back(), AlternativeName(host));
  }
  SIDING_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  const Form form{"controller", hosts.front(), EndExtensions("serverAuth", absl::StrJoin(names, ","))};
  return Sign(form, &issuer, lifetime, now, key);
}

}  // namespace siding
