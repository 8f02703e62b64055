// The calls about the policy.
#include "common/files.h"
#include "controller/api/calls_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PolicyCallsTest : public CallsTest {
 protected:
  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(path_, text).ok()); }
  grpc::Status Show() {
    grpc::ClientContext context;
    return stub_->ShowPolicy(&context, {}, &shown_);
  }
  grpc::Status Reload() {
    grpc::ClientContext context;
    return stub_->ReloadPolicy(&context, {}, &reloaded_);
  }

  v1::PolicyInForce shown_;
  v1::PolicyReloaded reloaded_;
};

TEST_F(PolicyCallsTest, ShowSaysWhatIsInForce) {
  ASSERT_TRUE(Show().ok());
  EXPECT_THAT(shown_.yaml(), HasSubstr("operators: [ada]\n"));
}
TEST_F(PolicyCallsTest, ShowSaysWhereItIsFrom) {
  ASSERT_TRUE(Show().ok());
  EXPECT_EQ(shown_.file(), path_);
}
TEST_F(PolicyCallsTest, ShowSaysWhenItWasLoaded) {
  ASSERT_TRUE(Show().ok());
  EXPECT_EQ(shown_.loaded_us(), 1);
}
TEST_F(PolicyCallsTest, ShowIsForEverybody) {
  identities_.user = UserIdentity{1001, 1001, "bob"};
  EXPECT_TRUE(Show().ok());
}
TEST_F(PolicyCallsTest, ShowSaysWhyTheFileIsNotInForce) {
  Write("margin: soon\n");
  Reload();
  ASSERT_TRUE(Show().ok());
  EXPECT_THAT(shown_.problem(), HasSubstr(path_ + ":1: margin"));
}
TEST_F(PolicyCallsTest, ReloadSaysWhatHasChanged) {
  Write("margin: 2s\noperators: [ada]\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_THAT(reloaded_.changes(), ElementsAre("-margin: 1s", "+margin: 2s"));
}
TEST_F(PolicyCallsTest, ReloadPutsItInForce) {
  Write("margin: 2s\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(engine_.policy().margin, std::chrono::seconds(2));
}
TEST_F(PolicyCallsTest, ReloadSaysWhatIsWrong) {
  Write("margin: 2s\nconfidence: 7\n");
  const grpc::Status status = Reload();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr(path_ + ":2: confidence: expected"));
}
TEST_F(PolicyCallsTest, ReloadIsForOperators) {
  Write("operators: [bob]\n");
  identities_.user = UserIdentity{1001, 1001, "bob"};
  EXPECT_EQ(Reload().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(engine_.IsOperator("bob"));
}

}  // namespace
}  // namespace siding
