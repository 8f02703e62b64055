#include "common/tls/authority.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/tls/openssl.h"

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

}  // namespace

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
