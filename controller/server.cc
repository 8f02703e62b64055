#include "controller/server.h"

#include <grpcpp/resource_quota.h>
#include <unistd.h>

#include <chrono>
#include <climits>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "common/tls/credentials.h"

namespace siding {
namespace {

constexpr auto kShutdownGrace = std::chrono::seconds(3);
// Bytes of a message that are taken before somebody reads it.
constexpr int kAhead = 16 * 1024;
// Read from a connection at once. A piece is kept while a single byte of it is.
constexpr int kLongestPiece = 64 * 1024;
// Of a connection without calls. Agents have one for as long as they live.
constexpr int kIdleMs = 5 * 60 * 1000;

// What a connection may cost. By default gRPC takes more and more ahead of a sender who is fast, unpacks what
// becomes a thousand times as long, and keeps what says nothing for ever.
void Bound(grpc::ServerBuilder& builder, const ServiceLimits& limits) {
  builder.SetMaxReceiveMessageSize(kMostToController);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.calls_per_connection);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kAhead);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kLongestPiece);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> RemoteCredentials(const ControllerConfig& config) {
  SIDING_RETURN_IF_ERROR(CheckListening(config));
  if (config.listen.empty()) return nullptr;
  // MUNGE's users need no certificates; agents that show none are refused by their identity.
  const auto clients =
      config.identity == IdentityBy::kMunge ? ClientCertificates::kOptional : ClientCertificates::kRequired;
  auto credentials = TlsServerCredentials(config.tls, clients, SystemClock());
  if (!credentials.ok()) return Annotate(credentials.status(), "tls");
  return credentials;
}

std::string AddressOf(const ControllerConfig& config) {
  if (config.listen.empty()) return config.socket;
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, config.listen.substr(config.listen.rfind(':')));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(
    const ControllerConfig& config, LocalIdentities& local,
    const std::function<void(grpc::ServerBuilder&)>& add_services) {
  std::unique_ptr<Server> opened(new Server);
  SIDING_ASSIGN_OR_RETURN(const auto credentials, RemoteCredentials(config));
  grpc::ServerBuilder builder;
  // However many callers there are: beyond this they are refused, and the process lives.
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(config.limits.threads);
  builder.SetResourceQuota(quota);
  Bound(builder, config.limits);
  KeepAlive(builder);
  add_services(builder);
  if (credentials != nullptr) {
    opened->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  }
  opened->server_ = builder.BuildAndStart();
  if (opened->server_ == nullptr) return absl::InternalError("the gRPC server did not start");

  if (opened->acceptor_ != nullptr) {
    SIDING_ASSIGN_OR_RETURN(
        opened->remote_listener_,
        RemoteListener::Listen(config.listen, config.limits, [acceptor = opened->acceptor_.get()](int fd) {
          Acceptor::NewConnectionParameters connection;
          connection.fd = fd;
          acceptor->HandleNewConnection(&connection);
        }));
    spdlog::info("listening on {} (port {}) with TLS", config.listen, opened->remote_listener_->port());
  }
  SIDING_RETURN_IF_ERROR(MakeDirectories(config.socket.substr(0, config.socket.rfind('/') + 1)));
  SIDING_ASSIGN_OR_RETURN(
      opened->local_listener_,
      LocalListener::Listen(config.socket, config.limits, local, [server = opened->server_.get()](int fd) {
        grpc::AddInsecureChannelFromFd(server, fd);
      }));
  spdlog::info("listening on {}", config.socket);
  return opened;
}

void Server::Close() {
  if (local_listener_ != nullptr) local_listener_->Stop();
  if (remote_listener_ != nullptr) remote_listener_->Stop();
}

void Server::Finish() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_->Wait();
}

Server::~Server() {
  Close();
  Finish();
}

}  // namespace siding
