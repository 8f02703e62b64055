// siding-test-caller HOST:PORT CA CERTIFICATE KEY [CREDENTIAL]: asks a controller for its nodes, as sidingctl
// would, but without looking at its own files first, so that tests see what the controller makes of them.
// Empty certificate and key: none; the credential is MUNGE's. Prints the call's code and message.
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <iostream>
#include <string>

#include "common/files.h"
#include "common/munge/munge.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {
namespace {

namespace tls = grpc::experimental;

std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& ca, const std::string& certificate,
                                                      const std::string& key) {
  std::vector<tls::IdentityKeyCertPair> own;
  if (!certificate.empty()) own.push_back({*ReadFile(key), *ReadFile(certificate)});
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(*ReadFile(ca), own));
  options.watch_root_certs();
  if (!own.empty()) options.watch_identity_key_cert_pairs();
  return tls::TlsCredentials(options);
}

int Main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::cerr << "usage: siding-test-caller HOST:PORT CA CERTIFICATE KEY [CREDENTIAL]\n";
    return 2;
  }
  const auto stub = v1::Siding::NewStub(grpc::CreateChannel(argv[1], Credentials(argv[2], argv[3], argv[4])));
  grpc::ClientContext context;
  if (argc == 6) context.AddMetadata(kMungeMetadata, argv[5]);
  v1::ListNodesResponse response;
  const grpc::Status status = stub->ListNodes(&context, {}, &response);
  std::cout << status.error_code() << " " << status.error_message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
