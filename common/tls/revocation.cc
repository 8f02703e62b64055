#include "common/tls/revocation.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

bool IsSame(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_dev == other.st_dev && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

bool IsOf(X509_CRL& list, X509& authority) {
  const bool named = X509_NAME_cmp(X509_CRL_get_issuer(&list), X509_get_subject_name(&authority)) == 0;
  const bool signed_by_it = named && X509_CRL_verify(&list, X509_get0_pubkey(&authority)) == 1;
  ForgetOpensslErrors();
  return signed_by_it;
}

// Of a plain list no extension is critical.
bool IsPlain(const X509_CRL& list) {
  return X509_CRL_get_ext_by_critical(&list, 1, -1) < 0 &&
         X509_CRL_get_ext_by_NID(&list, NID_delta_crl, -1) < 0 &&
         X509_CRL_get_ext_by_NID(&list, NID_issuing_distribution_point, -1) < 0;
}

// Half a file must not pass for a shorter one.
bool EndsWithAList(const std::string& pem) {
  constexpr std::string_view kEnd = "-----END X509 CRL-----";
  const size_t last = pem.rfind(kEnd);
  return last != std::string::npos &&
         pem.find_first_not_of(" \t\r\n", last + kEnd.size()) == std::string::npos;
}

}  // namespace

absl::StatusOr<std::vector<CrlPtr>> ParseRevocationLists(const std::string& pem) {
  const BioPtr bio = ReaderOf(pem);
  std::vector<CrlPtr> found;
  while (X509_CRL* one = PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr)) found.emplace_back(one);
  const unsigned long error = ERR_peek_last_error();
  ForgetOpensslErrors();
  if (found.empty() || ERR_GET_REASON(error) != PEM_R_NO_START_LINE || !EndsWithAList(pem))
    return absl::InvalidArgumentError("expected revocation lists (X509 CRL) in PEM");
  if (!std::all_of(found.begin(), found.end(), [](const CrlPtr& list) { return IsPlain(*list); }))
    return absl::InvalidArgumentError(
        "a list in it is not a plain one: it is a part (a delta, or of some certificates or reasons only), "
        "or of "
        "several issuers");
  return found;
}

absl::Status CheckRevocationLists(const std::string& lists, const std::string& ca) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<CrlPtr> parsed, ParseRevocationLists(lists));
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authorities, ParseCertificates(ca));
  const bool all = std::all_of(parsed.begin(), parsed.end(), [&](const CrlPtr& list) {
    return std::any_of(authorities.begin(), authorities.end(),
                       [&](const X509Ptr& authority) { return IsOf(*list, *authority); });
  });
  if (all) return absl::OkStatus();
  return absl::InvalidArgumentError("a list in it was not signed by a trusted authority");
}

bool IsRevoked(X509& certificate, const std::vector<CrlPtr>& lists) {
  return std::any_of(lists.begin(), lists.end(), [&](const CrlPtr& list) {
    X509_REVOKED* entry = nullptr;
    return X509_NAME_cmp(X509_CRL_get_issuer(list.get()), X509_get_issuer_name(&certificate)) == 0 &&
           X509_CRL_get0_by_cert(list.get(), &entry, &certificate) == 1;
  });
}

void Revocations::Look() {
  if (file_.empty()) return;
  struct stat now = {};
  if (stat(file_.c_str(), &now) != 0) now = {};
  if (version_ > 0 && IsSame(now, seen_)) return;
  const auto text = ReadFile(file_);
  const bool failed_before = version_ > 0 && !lists_.ok();
  lists_ = text.ok() ? ParseRevocationLists(*text) : text.status();
  if (!lists_.ok()) lists_ = Annotate(lists_.status(), absl::StrCat("revoked ", file_));
  // What was wrong with reading it may pass without a change of the file.
  seen_ = text.ok() ? now : decltype(now){};
  if (text.ok() || !failed_before) ++version_;
}

absl::Status Revocations::Check(const std::string& chain) {
  if (file_.empty()) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const std::vector<X509Ptr> shown, ParseCertificates(chain));
  MutexLock lock(mutex_);
  Look();
  if (!lists_.ok()) return absl::UnauthenticatedError(std::string(lists_.status().message()));
  const bool revoked =
      std::any_of(shown.begin(), shown.end(), [&](const X509Ptr& one) { return IsRevoked(*one, *lists_); });
  return revoked ? absl::UnauthenticatedError("its certificate has been revoked") : absl::OkStatus();
}

int64_t Revocations::Version() {
  MutexLock lock(mutex_);
  Look();
  return version_;
}

}  // namespace siding
