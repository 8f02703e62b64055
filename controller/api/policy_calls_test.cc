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
  absl::Status Show() { return service_.ShowPolicy(call_, &empty_, &shown_); }
  absl::Status Reload() { return service_.ReloadPolicy(call_, &empty_, &reloaded_); }

  const v1::Empty empty_;
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
  call_.identity = {1001, 1001, "bob"};
  EXPECT_TRUE(Show().ok());
}
TEST_F(PolicyCallsTest, ShowSaysWhyTheFileIsNotInForce) {
  Write("margin: soon\n");
  Reload().IgnoreError();
  ASSERT_TRUE(Show().ok());
  EXPECT_THAT(shown_.problem(), HasSubstr(path_ + ":1: margin"));
}
TEST_F(PolicyCallsTest, ReloadSaysWhatHasChanged) {
  Write("margin: 2s\noperators: [ada]\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_THAT(reloaded_.changes(), ElementsAre("-margin: 1s", "+margin: 2s"));
}
TEST_F(PolicyCallsTest, EverybodyIsToldOfAChangeAndWhoseItIs) {
  Write("margin: 2s\noperators: [ada]\n");
  ASSERT_TRUE(Reload().ok());
  call_.identity = {1001, 1001, "bob"};
  v1::Event event;
  const v1::EventsRequest all;
  ASSERT_TRUE(service_
                  .Events(call_, &all,
                          [&](const v1::Event& each) {
                            event = each;
                            return true;
                          })
                  .ok());
  EXPECT_EQ(event.kind(), "policy-changed");
  EXPECT_EQ(event.by(), "ada");
  EXPECT_THAT(event.changes(), ElementsAre("-margin: 1s", "+margin: 2s"));
}
TEST_F(PolicyCallsTest, ShowSaysWhatTheDefaultsAre) {
  ASSERT_TRUE(Show().ok());
  EXPECT_THAT(shown_.defaults(), HasSubstr("operators: [root]\n"));
}
TEST_F(PolicyCallsTest, ReloadPutsItInForce) {
  Write("margin: 2s\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(engine_.policy().margin, std::chrono::seconds(2));
}
TEST_F(PolicyCallsTest, ReloadSaysWhatIsWrong) {
  Write("margin: 2s\nconfidence: 7\n");
  const absl::Status status = Reload();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(path_ + ":2: confidence: expected"));
}
TEST_F(PolicyCallsTest, ReloadIsForOperators) {
  Write("operators: [bob]\n");
  call_.identity = {1001, 1001, "bob"};
  EXPECT_EQ(Reload().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(engine_.IsOperator("bob"));
}

}  // namespace
}  // namespace siding
