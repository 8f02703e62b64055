// TLS of the page's server by GnuTLS, which libmicrohttpd has it by. What certificates are worth is told by
// common/tls, as it is for gRPC.
#pragma once

#include <gnutls/gnutls.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/tls/certificates.h"
#include "common/tls/revocation.h"

namespace siding::page {

// Not thread-safe: the server's thread's.
class ServerTls {
 public:
  // Of GnuTLS; the same as gRPC's.
  static constexpr char kVersions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

  // The files are checked now. `ask`: clients for a certificate; one that is shown must be good. `clock` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Open(const TlsFiles& files, bool ask, const Clock& clock);

  // Before a handshake: it is done with what the files say now, or said last before they were broken. What is
  // returned must live as long as the connection. A client that is refused is in the log.
  std::shared_ptr<void> Begin(gnutls_session_t session);
  // What the files said when it was opened: what a server must be given to begin with.
  const TlsMaterial& first() const { return first_; }

 private:
  using Credentials = std::shared_ptr<gnutls_certificate_credentials_st>;

  ServerTls(TlsFiles files, bool ask, const Clock& clock)
      : files_(std::move(files)), ask_(ask), clock_(clock), revocations_(files_.revoked) {}
  absl::Status Load();
  void Look();
  static int Verify(gnutls_session_t session);
  friend std::optional<std::vector<std::string>> UrisShown(gnutls_session_t session);

  const TlsFiles files_;
  const bool ask_;
  const Clock& clock_;
  Revocations revocations_;
  TlsMaterial first_;
  Credentials credentials_;
  std::string stamp_;  // of the files that have been read
  Time looked_;
};

// The URIs of the certificate that was shown; nothing: none was. One that has been revoked since has none.
std::optional<std::vector<std::string>> UrisShown(gnutls_session_t session);

}  // namespace siding::page
