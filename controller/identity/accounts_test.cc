#include "controller/identity/accounts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

TEST(Accounts, UidsHaveNames) { EXPECT_EQ(UserName(0), "root"); }
TEST(Accounts, AUidWithoutANameIsItsNumber) { EXPECT_EQ(UserName(3999999999), "uid:3999999999"); }
TEST(Accounts, RootIsCalledRoot) { EXPECT_EQ(AccountOf("root")->uid, 0u); }
TEST(Accounts, UsersHaveTheirUid) {
  const auto nobody = AccountOf("nobody");
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  EXPECT_EQ(UserName(nobody->uid), "nobody");
}
TEST(Accounts, WhoHasNoneIsRefused) {
  const auto none = AccountOf("no-such-user");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(none.status().message(), HasSubstr("no-such-user has no account"));
}

}  // namespace
}  // namespace siding
