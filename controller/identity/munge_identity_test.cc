#include "controller/identity/munge_identity.h"

#include <grpcpp/grpcpp.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {
namespace {

using testing::HasSubstr;

// A service in this process that asks who calls; credentials are payloads, and root's.
class MungeIdentityTest : public testing::Test, public v1::Siding::Service {
 protected:
  MungeIdentityTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~MungeIdentityTest() override { server_->Shutdown(); }

  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest*,
                         v1::ListNodesResponse*) override {
    user_ = identities_.UserOf({*context, "ListNodes"});
    agent_ = identities_.AgentOf({*context, "ListNodes"});
    return grpc::Status::OK;
  }
  std::string ErrorWith(const std::vector<std::string>& credentials) {
    grpc::ClientContext context;
    for (const std::string& credential : credentials) context.AddMetadata(kMungeMetadata, credential);
    v1::ListNodesResponse response;
    v1::Siding::NewStub(server_->InProcessChannel({}))->ListNodes(&context, {}, &response);
    return std::string(user_.status().message());
  }

  absl::Status decoding_;
  const MungeIdentities identities_{[this](const std::string& credential) -> absl::StatusOr<MungeDecoded> {
    if (!decoding_.ok()) return decoding_;
    return MungeDecoded{0, 7, credential};
  }};
  absl::StatusOr<UserIdentity> user_;
  absl::StatusOr<AgentIdentity> agent_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(MungeIdentityTest, TheCallerIsWhoMadeTheCredential) {
  ASSERT_EQ(ErrorWith({MungePayload("ListNodes")}), "");
  EXPECT_EQ(user_->uid, 0u);
  EXPECT_EQ(user_->gid, 7u);
  EXPECT_EQ(user_->user, "root");
}
TEST_F(MungeIdentityTest, NoCredentialIsRefused) {
  EXPECT_THAT(ErrorWith({}), HasSubstr("sidingctl --munge"));
}
TEST_F(MungeIdentityTest, TwoCredentialsAreRefused) {
  EXPECT_THAT(ErrorWith({MungePayload("ListNodes"), MungePayload("ListNodes")}), HasSubstr("expected one"));
}
TEST_F(MungeIdentityTest, ACredentialForAnotherCallIsRefused) {
  EXPECT_EQ(
      ErrorWith({MungePayload("Kill")}),
      "the MUNGE credential of uid 0 is for 'siding.v1.Siding/Kill', not for 'siding.v1.Siding/ListNodes'");
}
TEST_F(MungeIdentityTest, WhatMungeSaysAgainstACredentialIsTheReason) {
  decoding_ = absl::UnauthenticatedError("MUNGE: Replayed credential");
  EXPECT_EQ(ErrorWith({MungePayload("ListNodes")}), "MUNGE: Replayed credential");
}
TEST_F(MungeIdentityTest, ACredentialMakesNoAgent) {
  ErrorWith({MungePayload("ListNodes")});
  EXPECT_EQ(agent_.status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(MungeIdentityTest, WhatACredentialWasMadeForIsShownInFewWords) {
  EXPECT_LT(ErrorWith({std::string(5000, 'x')}).size(), 200u);
}

class UsedCredentialsTest : public testing::Test {
 protected:
  bool Add(const std::string& credential, Time now = kNow) {
    return used_.Add(credential, kNow + kGood, now);
  }

  static constexpr Duration kGood = std::chrono::minutes(5);
  static constexpr Time kNow{std::chrono::hours(1)};
  UsedCredentials used_;
};

TEST_F(UsedCredentialsTest, OneIsGoodOnce) {
  EXPECT_TRUE(Add("MUNGE:AwQDAABbcdefgh==:"));
  EXPECT_FALSE(Add("MUNGE:AwQDAABbcdefgh==:"));
}
TEST_F(UsedCredentialsTest, AnotherOneIsGood) {
  EXPECT_TRUE(Add("MUNGE:AwQDAABbcdefgh==:"));
  EXPECT_TRUE(Add("MUNGE:AwQDAABxcdefgh==:"));
}
TEST_F(UsedCredentialsTest, WritingItInAnotherWayDoesNotMakeItAnother) {
  EXPECT_TRUE(Add("MUNGE:AwQDAABbcdefgh==:"));
  EXPECT_FALSE(Add(" MUNGE:AwQD AABbcdefgi==: and more"));
}
TEST_F(UsedCredentialsTest, ItIsForgottenWhenNobodyDecodesItAnyMore) {
  EXPECT_TRUE(Add("MUNGE:AwQDAABbcdefgh==:"));
  EXPECT_FALSE(Add("MUNGE:AwQDAABbcdefgh==:", kNow + kGood));
  EXPECT_TRUE(Add("MUNGE:AwQDAABbcdefgh==:", kNow + 2 * kGood));
}

}  // namespace
}  // namespace siding
