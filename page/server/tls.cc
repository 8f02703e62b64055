#include "page/server/tls.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding::page {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);  // at the files

gnutls_datum_t DatumOf(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

// Another one when one of the files has been exchanged, or written.
std::string StampOf(const TlsFiles& files) {
  std::string stamp;
  for (const std::string& file : {files.ca, files.certificate, files.key, files.revoked}) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) info = {};
    absl::StrAppend(&stamp, info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ",
                    info.st_mtim.tv_nsec, " ", info.st_ctim.tv_sec, " ", info.st_ctim.tv_nsec, "\n");
  }
  return stamp;
}

// As PEM, the client's own first; "": none was shown.
std::string ChainShown(gnutls_session_t session) {
  unsigned count = 0;
  const gnutls_datum_t* const shown = gnutls_certificate_get_peers(session, &count);
  std::string chain;
  for (unsigned i = 0; shown != nullptr && i < count; ++i) {
    gnutls_datum_t pem{};
    if (gnutls_pem_base64_encode2("CERTIFICATE", &shown[i], &pem) != GNUTLS_E_SUCCESS) continue;
    chain.append(reinterpret_cast<const char*>(pem.data), pem.size);
    gnutls_free(pem.data);
  }
  return chain;
}

}  // namespace

std::optional<std::vector<std::string>> UrisShown(gnutls_session_t session) {
  const std::string chain = ChainShown(session);
  if (chain.empty()) return std::nullopt;
  auto* const server = static_cast<ServerTls*>(gnutls_session_get_ptr(session));
  if (!server->revocations_.Check(chain).ok()) return std::vector<std::string>();
  return UrisOf(chain).value_or(std::vector<std::string>());
}

absl::StatusOr<std::unique_ptr<ServerTls>> ServerTls::Open(const TlsFiles& files, bool ask,
                                                           const Clock& clock) {
  if (files.certificate.empty()) return absl::InvalidArgumentError("a server needs a certificate and a key");
  std::unique_ptr<ServerTls> opened(new ServerTls(files, ask, clock));
  SIDING_RETURN_IF_ERROR(opened->Load());
  return opened;
}

absl::Status ServerTls::Load() {
  looked_ = clock_.Now();
  stamp_ = StampOf(files_);
  SIDING_ASSIGN_OR_RETURN(TlsMaterial material, LoadTlsFiles(files_, Purpose::kServer, looked_));
  gnutls_certificate_credentials_t made = nullptr;
  if (gnutls_certificate_allocate_credentials(&made) != GNUTLS_E_SUCCESS)
    return absl::ResourceExhaustedError("no memory for a certificate");
  Credentials credentials(made, gnutls_certificate_free_credentials);
  const gnutls_datum_t ca = DatumOf(material.trust.ca), certificate = DatumOf(material.certificate),
                       key = DatumOf(material.key);
  // Clients are told the authorities' names, so that a browser knows which of its certificates to show.
  int result = gnutls_certificate_set_x509_trust_mem(made, &ca, GNUTLS_X509_FMT_PEM);
  if (result >= 0)
    result = gnutls_certificate_set_x509_key_mem(made, &certificate, &key, GNUTLS_X509_FMT_PEM);
  if (result < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("certificate ", files_.certificate, ": GnuTLS: ", gnutls_strerror(result)));
  }
  credentials_ = std::move(credentials);
  if (first_.certificate.empty()) first_ = std::move(material);
  return absl::OkStatus();
}

void ServerTls::Look() {
  const Time now = clock_.Now();
  if (now >= looked_ && now - looked_ < kBetweenLooks) return;
  looked_ = now;
  if (StampOf(files_) == stamp_) return;
  if (const absl::Status loaded = Load(); loaded.ok())
    spdlog::info("page: TLS: the certificate was read again");
  else
    spdlog::warn("page: TLS: the certificate before is used on: {}", std::string(loaded.message()));
}

std::shared_ptr<void> ServerTls::Begin(gnutls_session_t session) {
  Look();
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials_.get());
  gnutls_certificate_server_set_request(session, ask_ ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
  if (ask_) {
    gnutls_session_set_ptr(session, this);  // libmicrohttpd's own is for keys that are agreed upon before
    gnutls_session_set_verify_function(session, &Verify);
  }
  return credentials_;
}

// In the handshake; what comes before it is over is not read as a request.
int ServerTls::Verify(gnutls_session_t session) {
  const auto& self = *static_cast<const ServerTls*>(gnutls_session_get_ptr(session));
  const std::string chain = ChainShown(session);
  if (chain.empty()) return 0;
  const absl::Status good = VerifyClient(chain, self.files_, self.clock_.Now());
  if (good.ok()) return 0;
  spdlog::warn("page: TLS: a client is refused: {}", std::string(good.message()));
  gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
  return GNUTLS_E_CERTIFICATE_ERROR;
}

}  // namespace siding::page
