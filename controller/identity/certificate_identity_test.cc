// Who a caller is, over TLS connections on the loopback device.
#include "controller/identity/certificate_identity.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "common/tls/credentials.h"
#include "controller/identity/certificate_cases.h"
#include "gmock/gmock.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {
namespace {

using testing::HasSubstr;

// Notes who calls.
class Doorman final : public v1::Siding::Service {
 public:
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest*,
                         v1::ListNodesResponse*) override {
    user = identities_.UserOf({*context, "ListNodes"});
    agent = identities_.AgentOf({*context, "ListNodes"});
    return grpc::Status::OK;
  }
  absl::StatusOr<UserIdentity> user;
  absl::StatusOr<AgentIdentity> agent;

 private:
  const CertificateIdentities identities_{};
};

class CertificateIdentityTest : public TlsTest {
 protected:
  CertificateIdentityTest() {
    const auto credentials =
        TlsServerCredentials(Keep("controller", IssueServer()), ClientCertificates::kOptional, SystemClock());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", *credentials, &port_);
    builder.RegisterService(&doorman_);
    server_ = builder.BuildAndStart();
  }
  ~CertificateIdentityTest() override { server_->Shutdown(); }

  void CallWith(const TlsFiles& files) {
    const auto channel =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), *TlsChannelCredentials(files, SystemClock()));
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    const grpc::Status status = v1::Siding::NewStub(channel)->ListNodes(&context, {}, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  void CallAs(Kind kind, const std::string& name) { CallWith(Keep("caller", Issue(kind, name))); }

  Doorman doorman_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(CertificateIdentityTest, AUserIsTheAccountOfThatName) {
  CallAs(Kind::kUser, "root");
  ASSERT_TRUE(doorman_.user.ok()) << doorman_.user.status();
  EXPECT_EQ(doorman_.user->uid, 0u);
}
TEST_F(CertificateIdentityTest, AUserWithoutAnAccountIsRefused) {
  CallAs(Kind::kUser, "no-such-user");
  EXPECT_THAT(doorman_.user.status().message(), HasSubstr("no account on the controller's machine"));
}
TEST_F(CertificateIdentityTest, AUserIsNoAgent) {
  CallAs(Kind::kUser, "root");
  EXPECT_EQ(doorman_.agent.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(doorman_.agent.status().message(), HasSubstr("user root may not run an agent"));
}
TEST_F(CertificateIdentityTest, ANodeSpeaksForItselfOnly) {
  CallAs(Kind::kNode, "n1");
  ASSERT_TRUE(doorman_.agent.ok()) << doorman_.agent.status();
  EXPECT_EQ(doorman_.agent->node, NodeId("n1"));
}
TEST_F(CertificateIdentityTest, ANodeIsNoUserEvenIfItIsCalledLikeOne) {
  CallAs(Kind::kNode, "root");
  EXPECT_EQ(doorman_.user.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(doorman_.user.status().message(), HasSubstr("node root may not act as a user"));
}
TEST_F(CertificateIdentityTest, WhoShowsNoCertificateIsNobody) {
  CallWith({.ca = Path("ca.pem")});
  EXPECT_EQ(doorman_.user.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(doorman_.agent.status().code(), absl::StatusCode::kUnauthenticated);
}

// By a client that does not look at its own files.
class CertificateCasesTest : public CertificateCases {
 protected:
  static grpc::Status CallWith(int port, const TlsFiles& files) {
    const grpc::SslCredentialsOptions options{*ReadFile(files.ca), *ReadFile(files.key),
                                              *ReadFile(files.certificate)};
    const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::SslCredentials(options));
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    return v1::Siding::NewStub(channel)->ListNodes(&context, {}, &response);
  }
};
TEST_F(CertificateCasesTest, EachIsWhoItSays) {
  Doorman doorman;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(
      "127.0.0.1:0",
      *TlsServerCredentials(Keep("controller", IssueServer()), ClientCertificates::kOptional, SystemClock()),
      &port);
  builder.RegisterService(&doorman);
  const auto server = builder.BuildAndStart();
  for (const CertificateCase& one : Cases()) {
    doorman.user = absl::UnknownError("");
    const bool came = CallWith(port, one.files).ok();
    EXPECT_EQ(came, one.uid || !one.refusal.empty()) << one.what;
    EXPECT_EQ(doorman.user.ok(), one.uid.has_value()) << one.what;
    if (doorman.user.ok()) {
      EXPECT_EQ(doorman.user->uid, one.uid) << one.what;
    }
    EXPECT_THAT(doorman.user.status().message(), HasSubstr(one.refusal)) << one.what;
  }
  server->Shutdown();
}

}  // namespace
}  // namespace siding
