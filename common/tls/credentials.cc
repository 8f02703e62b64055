#include "common/tls/credentials.h"

#include <grpc/support/log.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <filesystem>

#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kSecondsBetweenLooks = 1;  // at the files

constexpr int kQuietMs = 30'000;        // then the other end is asked whether it is there
constexpr int kNoAnswerMs = 20'000;     // then it is taken to be gone
constexpr int kCloselyQuietMs = 2'000;  // the same, for KeepAliveClosely
constexpr int kCloselyNoAnswerMs = 2'000;
constexpr int kHandshakeMs = 10'000;  // that long may a client take to say who it is
constexpr int kLeastQuietMs = 1'000;  // clients that ask more often are hung up on

// gRPC could verify clients by itself, but says nothing of those that it refuses. This is called at the end
// of every handshake, resumed ones as well, before anything is read from the client.
class ClientVerifier final : public tls::ExternalCertificateVerifier {
 public:
  ClientVerifier(TlsFiles files, ClientCertificates clients, const Clock& clock)
      : files_(std::move(files)), clients_(clients), clock_(clock) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* result) override {
    if (const absl::Status status = Check(*request->c_request()); !status.ok()) {
      const std::string why(status.message());
      spdlog::warn("TLS: a client is refused: {}", why);
      *result = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, why);
    }
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  absl::Status Check(const grpc_tls_custom_verification_check_request& request) const {
    const auto& peer = request.peer_info;
    if (peer.peer_cert == nullptr || *peer.peer_cert == '\0') {
      if (clients_ == ClientCertificates::kOptional) return absl::OkStatus();
      return absl::UnauthenticatedError("it shows no certificate");
    }
    // Here, the rest of the chain comes without its first certificate.
    const std::string chain =
        absl::StrCat(peer.peer_cert, peer.peer_cert_full_chain == nullptr ? "" : peer.peer_cert_full_chain);
    return VerifyClient(chain, files_, clock_.Now());
  }

  const TlsFiles files_;
  const ClientCertificates clients_;
  const Clock& clock_;
};

// gRPC has found that an authority that is believed has issued it; whether for this host, and whether that is
// still so, is asked here.
class ServerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  ServerVerifier(Trust trust, const Clock& clock) : trust_(std::move(trust)), clock_(clock) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)> done,
              grpc::Status* result) override {
    const bool is_there = host_.Verify(request, std::move(done), result);
    if (!is_there || !result->ok() || trust_.revoked.empty()) return is_there;
    const auto& peer = request->c_request()->peer_info;
    const std::string chain =
        absl::StrCat(peer.peer_cert == nullptr ? "" : peer.peer_cert,
                     peer.peer_cert_full_chain == nullptr ? "" : peer.peer_cert_full_chain);
    const absl::Status good = VerifyChain(chain, trust_, Purpose::kServer, clock_.Now());
    if (!good.ok()) *result = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(good.message()));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest* request) override { host_.Cancel(request); }

 private:
  const Trust trust_;
  const Clock& clock_;
  tls::HostNameCertificateVerifier host_;
};

void Log(gpr_log_func_args* record) {
  // A failed handshake is an error to gRPC; here any stranger may cause it.
  const auto level = record->severity == GPR_LOG_SEVERITY_ERROR  ? spdlog::level::warn
                     : record->severity == GPR_LOG_SEVERITY_INFO ? spdlog::level::debug
                                                                 : spdlog::level::trace;
  spdlog::log(level, "gRPC: {} ({}:{})", record->message,
              std::filesystem::path(record->file).filename().string(), record->line);
}

void KeepAlive(grpc::ChannelArguments& arguments, int quiet_ms, int no_answer_ms) {
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, quiet_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, no_answer_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files,
                                                                              ClientCertificates clients,
                                                                              const Clock& clock) {
  if (files.certificate.empty()) return absl::InvalidArgumentError("a server needs a certificate and a key");
  SIDING_RETURN_IF_ERROR(LoadTlsFiles(files, Purpose::kServer, clock.Now()).status());
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.certificate, kSecondsBetweenLooks));
  options.watch_identity_key_cert_pairs();
  // "Don't verify": ClientVerifier does. That the client has the key to its certificate is TLS's own
  // business.
  options.set_cert_request_type(clients == ClientCertificates::kRequired
                                    ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY
                                    : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<ClientVerifier>(files, clients, clock));
  options.set_check_call_host(false);
  return tls::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(const TlsFiles& files,
                                                                                const Clock& clock) {
  SIDING_ASSIGN_OR_RETURN(const TlsMaterial material, LoadTlsFiles(files, Purpose::kClient, clock.Now()));
  std::vector<tls::IdentityKeyCertPair> own;
  if (!material.certificate.empty()) own.push_back({material.key, material.certificate});
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<tls::StaticDataCertificateProvider>(material.trust.ca, own));
  options.watch_root_certs();
  if (!own.empty()) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<ServerVerifier>(material.trust, clock));
  return tls::TlsCredentials(options);
}

void KeepAlive(grpc::ChannelArguments& arguments) { KeepAlive(arguments, kQuietMs, kNoAnswerMs); }

void KeepAliveClosely(grpc::ChannelArguments& arguments) {
  KeepAlive(arguments, kCloselyQuietMs, kCloselyNoAnswerMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kCloselyNoAnswerMs);  // that long may it take
}

void KeepAlive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kQuietMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kNoAnswerMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastQuietMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
}

void TakeOverGrpcLog() { gpr_set_log_function(Log); }

}  // namespace siding
