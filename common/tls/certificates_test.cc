#include "common/tls/certificates.h"

#include "common/tls/tls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TlsFilesTest : public TlsTest {
 protected:
  std::string ErrorOf(const TlsFiles& files, Purpose purpose = Purpose::kClient) const {
    return std::string(LoadTlsFiles(files, purpose, now_).status().message());
  }
  const TlsFiles ada_ = Keep("ada", Issue(Kind::kUser, "ada"));
};

TEST_F(TlsFilesTest, AreReadIfTheyBelongTogether) {
  const auto material = LoadTlsFiles(ada_, Purpose::kClient, now_);
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_EQ(material->trust.ca, authority_.certificate);
}
TEST_F(TlsFilesTest, AnAuthorityIsEnoughToBelieveOthers) {
  EXPECT_TRUE(LoadTlsFiles({.ca = ada_.ca}, Purpose::kClient, now_).ok());
}
TEST_F(TlsFilesTest, NeedAnAuthority) { EXPECT_THAT(ErrorOf({}), HasSubstr("(ca)")); }
TEST_F(TlsFilesTest, ACertificateNeedsItsKey) {
  EXPECT_THAT(ErrorOf({.ca = ada_.ca, .certificate = ada_.certificate}), HasSubstr("needed together"));
}
TEST_F(TlsFilesTest, AFileThatIsMissingIsNamed) {
  EXPECT_THAT(ErrorOf({Path("none"), ada_.certificate, ada_.key}), HasSubstr("ca: open " + Path("none")));
}
TEST_F(TlsFilesTest, AFileThatIsNoCertificateIsNamed) {
  EXPECT_THAT(ErrorOf({ada_.ca, ada_.key, ada_.key}), HasSubstr(ada_.key + ": expected certificates in PEM"));
}
TEST_F(TlsFilesTest, HalfAFileIsNoCertificate) {
  Write("ada.pem", authority_.certificate + authority_.certificate.substr(0, 300));
  EXPECT_THAT(ErrorOf(ada_), HasSubstr("expected certificates in PEM"));
}
TEST_F(TlsFilesTest, AFileThatIsNoKeyIsNamed) {
  EXPECT_THAT(ErrorOf({ada_.ca, ada_.certificate, ada_.ca}), HasSubstr(ada_.ca + ": expected a private key"));
}
TEST_F(TlsFilesTest, AKeyThatEverybodyMayReadIsRefused) {
  std::filesystem::permissions(ada_.key, std::filesystem::perms(0644));
  EXPECT_THAT(ErrorOf(ada_), AllOf(HasSubstr(ada_.key), HasSubstr("mode 0644"), HasSubstr("expected 0600")));
}
TEST_F(TlsFilesTest, AGroupMayReadAKey) {
  std::filesystem::permissions(ada_.key, std::filesystem::perms(0640));
  EXPECT_EQ(ErrorOf(ada_), "");
}
TEST_F(TlsFilesTest, AnotherCertificatesKeyIsRefused) {
  const TlsFiles bob = Keep("bob", Issue(Kind::kUser, "bob"));
  EXPECT_THAT(ErrorOf({ada_.ca, ada_.certificate, bob.key}),
              AllOf(HasSubstr(bob.key), HasSubstr("does not belong"), HasSubstr(ada_.certificate)));
}
TEST_F(TlsFilesTest, ACertificateOfAnotherAuthorityIsRefused) {
  EXPECT_THAT(ErrorOf({Path("other.pem"), ada_.certificate, ada_.key}),
              AllOf(HasSubstr(ada_.certificate), HasSubstr("not issued by a trusted authority")));
}
TEST_F(TlsFilesTest, AClientsCertificateIsNoServers) {
  EXPECT_THAT(ErrorOf(ada_, Purpose::kServer), HasSubstr("not for this purpose"));
}
TEST_F(TlsFilesTest, AnExpiredCertificateIsRefused) {
  const TlsFiles old = Keep("old", IssueFor({Kind::kUser, "old"}, authority_, kHour, now_ - 2 * kHour));
  EXPECT_THAT(ErrorOf(old), AllOf(HasSubstr(old.certificate), HasSubstr("siding://user/old: it expired at")));
}

}  // namespace
}  // namespace siding
