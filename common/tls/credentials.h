// The one place that makes credentials of gRPC for connections between machines: TLS 1.2 at least (1.3
// between programs of ours), and both ends verified.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/tls/certificates.h"

namespace siding {

// kOptional is for servers that know some of their callers by other means: who shows a certificate must show
// a good one.
enum class ClientCertificates { kRequired, kOptional };

// The files are checked now, and read again when they change, so that certificates can be renewed and an
// authority be exchanged without a restart. A client whose certificate is not good is refused in the
// handshake, and the log says who it claims to be and what is wrong. `clock` must outlive the server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files,
                                                                              ClientCertificates clients,
                                                                              const Clock& clock);

// For one connection: the files are read and checked now. The server must have a certificate for the host
// name under which it is dialled. The certificate may be missing (see ClientCertificates). `clock` must
// outlive the connection.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(const TlsFiles& files,
                                                                                const Clock& clock);

// Finds out within a minute that the other end has gone without a word, as a machine does that loses its
// power or its network. Both ends of a connection are to be told.
void KeepAlive(grpc::ChannelArguments& arguments);
void KeepAlive(grpc::ServerBuilder& builder);
// The same within some seconds, also while it connects, for clients that have another controller to dial.
// Over unix sockets as well: a process that was stopped keeps its connections.
void KeepAliveClosely(grpc::ChannelArguments& arguments);

// Sends what gRPC has to say, such as why a handshake failed, to our own log.
void TakeOverGrpcLog();

}  // namespace siding
