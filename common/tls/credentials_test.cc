// Connections between a server and clients of this process, over the loopback device.
#include "common/tls/credentials.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/patience_for_test.h"
#include "common/tls/tls_fixture.h"

namespace siding {
namespace {

class CredentialsTest : public TlsTest {
 protected:
  ~CredentialsTest() override {
    if (server_ != nullptr) server_->Shutdown();
  }
  void Serve(const TlsFiles& files, ClientCertificates clients = ClientCertificates::kRequired) {
    const auto credentials = TlsServerCredentials(files, clients, clock_);
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", *credentials, &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  // Over a connection of its own. UNIMPLEMENTED comes from the service: the client was let in.
  // Dialled by address, so that no name has to be looked up; `host` is the name that the server is to have.
  bool LetsIn(const TlsFiles& files, const std::string& host = "127.0.0.1") {
    const auto credentials = TlsChannelCredentials(files, SystemClock());
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return LetsIn(*credentials, host);
  }
  bool LetsIn(const std::shared_ptr<grpc::ChannelCredentials>& credentials, const std::string& host) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    if (host != "127.0.0.1") arguments.SetSslTargetNameOverride(host);
    const auto channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), credentials, arguments);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    grpc::CompletionQueue queue;
    const grpc::Slice nothing;
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto call = grpc::GenericStub(channel).PrepareUnaryCall(&context, "/any/Method",
                                                                  grpc::ByteBuffer(&nothing, 1), &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    servers_certificate_.clear();
    if (const auto shown = context.auth_context(); shown != nullptr) {
      for (const auto& pem : shown->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
        servers_certificate_.assign(pem.data(), pem.size());
      }
    }
    return status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
  }

  FakeClock clock_{now_};                 // the server's
  grpc::CallbackGenericService service_;  // knows no method
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string servers_certificate_;  // of the last call
  const TlsFiles controller_ = Keep("controller", IssueServer());
  const TlsFiles ada_ = Keep("ada", Issue(Kind::kUser, "ada"));
};

TEST_F(CredentialsTest, AGoodCertificateIsLetIn) {
  Serve(controller_);
  EXPECT_TRUE(LetsIn(ada_));
}
TEST_F(CredentialsTest, NoCertificateIsRefused) {
  Serve(controller_);
  EXPECT_FALSE(LetsIn(TlsFiles{.ca = ada_.ca}));
}
TEST_F(CredentialsTest, NoCertificateIsLetInWhereItIsOptional) {
  Serve(controller_, ClientCertificates::kOptional);
  EXPECT_TRUE(LetsIn(TlsFiles{.ca = ada_.ca}));
}
TEST_F(CredentialsTest, AnotherAuthoritysCertificateIsRefused) {
  const TlsFiles stranger = Keep("eve", IssueFor({Kind::kUser, "root"}, other_authority_, kHour, now_));
  Write("both.pem", authority_.certificate + other_authority_.certificate);
  Serve(controller_);
  EXPECT_FALSE(LetsIn({Path("both.pem"), stranger.certificate, stranger.key}));
}
TEST_F(CredentialsTest, ABadCertificateIsRefusedWhereItIsOptionalToo) {
  const TlsFiles stranger = Keep("eve", IssueFor({Kind::kUser, "root"}, other_authority_, kHour, now_));
  Write("both.pem", authority_.certificate + other_authority_.certificate);
  Serve(controller_, ClientCertificates::kOptional);
  EXPECT_FALSE(LetsIn({Path("both.pem"), stranger.certificate, stranger.key}));
}
TEST_F(CredentialsTest, AnExpiredCertificateIsRefused) {
  Serve(controller_);
  clock_.Advance(2 * kHour);
  EXPECT_FALSE(LetsIn(ada_));
}
TEST_F(CredentialsTest, ARevokedCertificateIsRefusedWithoutARestart) {
  TlsFiles controller = controller_;
  controller.revoked = Path("revoked.pem");
  Write("revoked.pem", *Revoke(authority_, "", {}, now_));
  Serve(controller);
  EXPECT_TRUE(LetsIn(ada_));
  Write("revoked.pem", *Revoke(authority_, "", {*ReadFile(ada_.certificate)}, now_));
  EXPECT_FALSE(LetsIn(ada_));
}
TEST_F(CredentialsTest, ARevokedServerIsNotBelieved) {
  Serve(controller_);
  TlsFiles ada = ada_;
  ada.revoked = Path("revoked.pem");
  Write("revoked.pem", *Revoke(authority_, "", {}, now_));
  EXPECT_TRUE(LetsIn(ada));
  EXPECT_FALSE(LetsIn(ada, "head1")) << "it is another host's still";
  Write("revoked.pem", *Revoke(authority_, "", {*ReadFile(controller_.certificate)}, now_));
  EXPECT_FALSE(LetsIn(ada));
}
TEST_F(CredentialsTest, PlainTextIsRefused) {
  Serve(controller_);
  EXPECT_FALSE(LetsIn(grpc::InsecureChannelCredentials(), "127.0.0.1"));
}
TEST_F(CredentialsTest, AServerUnderAnotherNameIsNotBelieved) {
  Serve(Keep("elsewhere", IssueServer("head1")));
  EXPECT_FALSE(LetsIn(ada_));
}
TEST_F(CredentialsTest, AServerOfAnotherAuthorityIsNotBelieved) {
  Serve(Keep("fake", IssueForHosts({"127.0.0.1"}, other_authority_, kHour, now_), "other.pem"));
  EXPECT_FALSE(LetsIn(ada_));
}
TEST_F(CredentialsTest, AServerIsKnownByItsName) {
  Serve(Keep("head", IssueServer("head1")));
  EXPECT_TRUE(LetsIn(ada_, "head1"));
}
TEST_F(CredentialsTest, AServerNeedsACertificate) {
  EXPECT_FALSE(TlsServerCredentials({.ca = ada_.ca}, ClientCertificates::kRequired, clock_).ok());
}
TEST_F(CredentialsTest, ARenewedCertificateIsUsedWithoutARestart) {
  Serve(controller_);
  const auto renewed = IssueServer();
  Keep("controller", renewed);
  EXPECT_TRUE(Eventually([&] { return LetsIn(ada_) && servers_certificate_ == renewed->certificate; }))
      << "the renewed certificate to be shown";
  EXPECT_TRUE(LetsIn(ada_));
}
TEST_F(CredentialsTest, AnExchangedAuthorityIsBelievedWithoutARestart) {
  const TlsFiles bob = Keep("bob", IssueFor({Kind::kUser, "bob"}, other_authority_, kHour, now_));
  Write("both.pem", authority_.certificate + other_authority_.certificate);
  Serve(controller_);
  ASSERT_FALSE(LetsIn({Path("both.pem"), bob.certificate, bob.key}));
  Write("ca.pem", authority_.certificate + other_authority_.certificate);
  EXPECT_TRUE(LetsIn({Path("both.pem"), bob.certificate, bob.key}));
}

}  // namespace
}  // namespace siding
