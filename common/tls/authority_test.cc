#include "common/tls/authority.h"

#include "common/tls/openssl.h"
#include "common/tls/tls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;

class AuthorityTest : public TlsTest {
 protected:
  absl::Status Verify(const absl::StatusOr<Issued>& issued, Purpose purpose, Duration later = Duration(0)) {
    return VerifyChain(issued->certificate, {authority_.certificate, ""}, purpose, now_ + later);
  }
};

TEST_F(AuthorityTest, HoldersAreClients) {
  EXPECT_TRUE(Verify(Issue(Kind::kNode, "n1"), Purpose::kClient).ok());
  EXPECT_TRUE(Verify(Issue(Kind::kUser, "ada"), Purpose::kClient).ok());
}
TEST_F(AuthorityTest, HoldersAreNoServers) {
  EXPECT_THAT(Verify(Issue(Kind::kNode, "n1"), Purpose::kServer).message(),
              HasSubstr("not for this purpose"));
}
TEST_F(AuthorityTest, HostsAreServersOnly) {
  EXPECT_TRUE(Verify(IssueServer(), Purpose::kServer).ok());
  EXPECT_FALSE(Verify(IssueServer(), Purpose::kClient).ok());
}
TEST_F(AuthorityTest, AClockThatIsALittleBehindDoesNotMatter) {
  EXPECT_TRUE(Verify(Issue(Kind::kUser, "ada"), Purpose::kClient, -std::chrono::minutes(4)).ok());
}
TEST_F(AuthorityTest, CertificatesEnd) {
  EXPECT_TRUE(Verify(Issue(Kind::kUser, "ada"), Purpose::kClient, kHour - std::chrono::minutes(1)).ok());
  EXPECT_THAT(Verify(Issue(Kind::kUser, "ada"), Purpose::kClient, kHour + std::chrono::minutes(1)).message(),
              HasSubstr("siding://user/ada: it expired at "));
}
TEST_F(AuthorityTest, NoCertificateOutlivesTheAuthority) {
  const auto issued = Issue(Kind::kUser, "ada", std::chrono::hours(48));
  const auto ada = *ParseCertificates(issued->certificate), ca = *ParseCertificates(authority_.certificate);
  EXPECT_EQ(ASN1_TIME_compare(X509_get0_notAfter(ada[0].get()), X509_get0_notAfter(ca[0].get())), 0);
}
TEST_F(AuthorityTest, AnAuthorityThatHasExpiredIssuesNothing) {
  const auto issued = IssueFor({Kind::kUser, "ada"}, authority_, kHour, now_ + std::chrono::hours(25));
  EXPECT_THAT(issued.status().message(), HasSubstr("authority's own certificate has expired"));
}
TEST_F(AuthorityTest, AHolderIsNoAuthority) {
  const Issued ada = *Issue(Kind::kUser, "ada");
  const Issued forged = *IssueFor({Kind::kUser, "root"}, ada, kHour, now_);
  EXPECT_FALSE(
      VerifyChain(forged.certificate + ada.certificate, {authority_.certificate, ""}, Purpose::kClient, now_)
          .ok());
}
TEST_F(AuthorityTest, AnotherAuthorityIsNotBelieved) {
  const auto issued = IssueFor({Kind::kUser, "ada"}, other_authority_, kHour, now_);
  EXPECT_THAT(Verify(issued, Purpose::kClient).message(), HasSubstr("not issued by a trusted authority"));
}
TEST_F(AuthorityTest, ARenewalKeepsTheKey) {
  const Issued first = *Issue(Kind::kNode, "n1");
  const Issued second = *IssueFor({Kind::kNode, "n1"}, authority_, kHour, now_, first.key);
  EXPECT_EQ(second.key, first.key);
  EXPECT_NE(second.certificate, first.certificate);
}
TEST_F(AuthorityTest, TwoCertificatesHaveTwoKeys) {
  EXPECT_NE(Issue(Kind::kNode, "n1")->key, Issue(Kind::kNode, "n1")->key);
}
TEST_F(AuthorityTest, ANameCannotBringNamesOfItsOwn) {
  EXPECT_THAT(Issue(Kind::kUser, "ada,URI:siding://user/root").status().message(),
              HasSubstr("expected at most"));
  EXPECT_THAT(IssueServer("x,URI:siding://user/root").status().message(), HasSubstr("expected a host name"));
}
TEST_F(AuthorityTest, HostsMayBeAddresses) {
  EXPECT_TRUE(IssueServer("10.0.0.1").ok());
  EXPECT_TRUE(IssueServer("fd00::1").ok());
}
TEST_F(AuthorityTest, AnotherAuthoritysKeyIssuesNothing) {
  const auto issued =
      IssueFor({Kind::kUser, "ada"}, {authority_.certificate, other_authority_.key}, kHour, now_);
  EXPECT_THAT(issued.status().message(), HasSubstr("does not belong"));
}

}  // namespace
}  // namespace siding
