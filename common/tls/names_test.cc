#include "common/tls/names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;
using Kind = CertificateName::Kind;

std::string ErrorOf(const std::vector<std::string>& uris) {
  const auto name = NameAmong(uris);
  EXPECT_EQ(name.status().code(), absl::StatusCode::kUnauthenticated);
  return std::string(name.status().message());
}

TEST(CertificateNames, NodesAndUsersAreDifferent) {
  EXPECT_EQ(*NameAmong({"siding://node/n1"}), (CertificateName{Kind::kNode, "n1"}));
  EXPECT_EQ(*NameAmong({"siding://user/n1"}), (CertificateName{Kind::kUser, "n1"}));
}
TEST(CertificateNames, OthersUrisDoNotMatter) {
  EXPECT_EQ(*NameAmong({"spiffe://site/x", "siding://user/ada"}), (CertificateName{Kind::kUser, "ada"}));
}
TEST(CertificateNames, AreReadAsTheyAreWritten) {
  const CertificateName name{Kind::kNode, "rack-1.node_2"};
  EXPECT_EQ(*NameAmong({ToUri(name)}), name);
}
TEST(CertificateNames, NoneIsNobody) { EXPECT_THAT(ErrorOf({}), HasSubstr("neither siding://node/NAME")); }
TEST(CertificateNames, TwoAreNobody) {
  EXPECT_THAT(ErrorOf({"siding://node/n1", "siding://user/root"}), HasSubstr("two names"));
}
TEST(CertificateNames, TwoInAnyCaseAreNobody) {
  EXPECT_THAT(ErrorOf({"siding://user/ada", "SIDING://user/root"}), HasSubstr("two names"));
}
TEST(CertificateNames, AnotherKindIsNobody) {
  EXPECT_THAT(ErrorOf({"siding://operator/ada"}), HasSubstr("expected siding://node/NAME"));
}
TEST(CertificateNames, WhatCouldMeanSomethingElseElsewhereIsNobody) {
  for (const std::string name : {"", "../root", "a/b", "ro ot", "-x", "root\n"}) {
    EXPECT_THAT(ErrorOf({"siding://user/" + name}), HasSubstr("expected at most 64")) << name;
  }
  EXPECT_THAT(ErrorOf({std::string("siding://user/root\0x", 20)}), HasSubstr("root\\x00x"));
}
TEST(CertificateNames, HaveALongest) {
  EXPECT_TRUE(CheckName(std::string(64, 'x')).ok());
  EXPECT_FALSE(CheckName(std::string(65, 'x')).ok());
}

}  // namespace
}  // namespace siding
