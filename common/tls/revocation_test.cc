#include "common/tls/revocation.h"

#include <filesystem>

#include "common/tls/certificates.h"
#include "common/tls/tls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;

class RevocationTest : public TlsTest {
 protected:
  std::string List(const std::vector<std::string>& certificates, const std::string& last = "") const {
    const auto list = Revoke(authority_, last, certificates, now_);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.value_or("");
  }
  absl::Status Verify(const Issued& issued, const std::string& list, Duration later = Duration(0)) const {
    return VerifyChain(issued.certificate, {authority_.certificate, list}, Purpose::kClient, now_ + later);
  }
  const Issued ada_ = *Issue(Kind::kUser, "ada");
  const Issued bob_ = *Issue(Kind::kUser, "bob");
};

TEST_F(RevocationTest, OneThatHasBeenRevokedIsNotGood) {
  EXPECT_TRUE(Verify(ada_, "").ok());
  EXPECT_EQ(Verify(ada_, List({ada_.certificate})).message(), "siding://user/ada: it has been revoked");
}
TEST_F(RevocationTest, OthersAre) { EXPECT_TRUE(Verify(bob_, List({ada_.certificate})).ok()); }
TEST_F(RevocationTest, AnEmptyListIsOne) {
  EXPECT_TRUE(CheckRevocationLists(List({}), authority_.certificate).ok());
  EXPECT_TRUE(Verify(ada_, List({})).ok());
}
TEST_F(RevocationTest, ALaterListHasWhatTheOneBeforeHad) {
  const std::string both = List({bob_.certificate}, List({ada_.certificate, ada_.certificate}));
  EXPECT_FALSE(Verify(ada_, both).ok());
  EXPECT_FALSE(Verify(bob_, both).ok());
  EXPECT_EQ(ParseRevocationLists(both)->size(), 1u);
}
TEST_F(RevocationTest, ARenewedCertificateIsAnotherOne) {
  const Issued renewed = *IssueFor({Kind::kUser, "ada"}, authority_, kHour, now_, ada_.key);
  EXPECT_TRUE(Verify(renewed, List({ada_.certificate})).ok());
}
TEST_F(RevocationTest, AListThatHasRunOutCountsStill) {
  const Time then = now_ - 30 * kHour;
  const Issued old = *MakeAuthority(24 * kHour, then);
  const Issued eve = *IssueFor({Kind::kUser, "eve"}, old, kHour, then);
  const auto lists = ParseRevocationLists(*Revoke(old, "", {eve.certificate}, then));
  const auto parsed = ParseCertificates(eve.certificate);
  EXPECT_TRUE(IsRevoked(*parsed->front(), *lists));
}
TEST_F(RevocationTest, AnyOfSeveralListsCounts) {
  const std::string both = List({ada_.certificate}) + List({bob_.certificate});
  EXPECT_FALSE(Verify(ada_, both).ok());
  EXPECT_FALSE(Verify(bob_, both).ok());
}
TEST_F(RevocationTest, TwoAuthoritiesOfOneNameHaveTheirOwn) {
  const Issued eve = *IssueFor({Kind::kUser, "eve"}, other_authority_, kHour, now_);
  const Trust both{authority_.certificate + other_authority_.certificate,
                   List({ada_.certificate}) + *Revoke(other_authority_, "", {}, now_)};
  EXPECT_TRUE(VerifyChain(eve.certificate, both, Purpose::kClient, now_).ok());
  EXPECT_TRUE(VerifyChain(bob_.certificate, both, Purpose::kClient, now_).ok());
  EXPECT_FALSE(VerifyChain(ada_.certificate, both, Purpose::kClient, now_).ok());
}
TEST_F(RevocationTest, ACertificateBetweenIsLookedAtToo) {
  const std::string chain = ada_.certificate + bob_.certificate;  // of an open connection
  Write("revoked.pem", List({bob_.certificate}));
  EXPECT_FALSE(Revocations(Path("revoked.pem")).Check(chain).ok());
}
TEST_F(RevocationTest, AnAuthorityDoesNotRevokeItself) {
  EXPECT_THAT(Revoke(authority_, "", {authority_.certificate}, now_).status().message(),
              HasSubstr("by taking it out of ca.pem"));
}
TEST_F(RevocationTest, AnAuthorityWithoutAListHasRevokedNothing) {
  const Issued eve = *IssueFor({Kind::kUser, "eve"}, other_authority_, kHour, now_);
  const Trust both{authority_.certificate + other_authority_.certificate, List({ada_.certificate})};
  EXPECT_TRUE(VerifyChain(eve.certificate, both, Purpose::kClient, now_).ok());
  EXPECT_FALSE(VerifyChain(ada_.certificate, both, Purpose::kClient, now_).ok());
}
TEST_F(RevocationTest, AListOfAnotherAuthorityIsRefused) {
  const std::string list = *Revoke(other_authority_, "", {}, now_);
  EXPECT_THAT(CheckRevocationLists(list, authority_.certificate).message(),
              HasSubstr("not signed by a trusted authority"));
}
TEST_F(RevocationTest, HalfAListIsNone) {
  const std::string list = List({ada_.certificate});
  EXPECT_FALSE(ParseRevocationLists(list.substr(0, list.size() / 2)).ok());
  EXPECT_FALSE(ParseRevocationLists(list + list.substr(0, list.size() / 2)).ok());
  EXPECT_FALSE(ParseRevocationLists("").ok());
  EXPECT_FALSE(ParseRevocationLists(list + "-----BEGI").ok());
  EXPECT_TRUE(ParseRevocationLists(list + "\n").ok());
}
TEST_F(RevocationTest, AnAuthorityRevokesItsOwnOnly) {
  const Issued eve = *IssueFor({Kind::kUser, "eve"}, other_authority_, kHour, now_);
  EXPECT_THAT(Revoke(authority_, "", {eve.certificate}, now_).status().message(),
              HasSubstr("has not issued"));
}
TEST_F(RevocationTest, AFileOfListsIsCheckedWhenAProgramStarts) {
  TlsFiles files = Keep("ada", ada_);
  files.revoked = Path("revoked.pem");
  EXPECT_THAT(LoadTlsFiles(files, Purpose::kClient, now_).status().message(),
              HasSubstr("revoked: open " + files.revoked));
  Write("revoked.pem", authority_.certificate);
  EXPECT_THAT(LoadTlsFiles(files, Purpose::kClient, now_).status().message(),
              HasSubstr("revoked " + files.revoked + ": expected"));
  Write("revoked.pem", List({ada_.certificate}));
  EXPECT_THAT(LoadTlsFiles(files, Purpose::kClient, now_).status().message(),
              HasSubstr("it has been revoked"));
}

class RevocationsTest : public RevocationTest {
 protected:
  Revocations revocations_{Path("revoked.pem")};
};

TEST_F(RevocationsTest, AreReadAgainWhenTheFileChanges) {
  Write("revoked.pem", List({}));
  EXPECT_TRUE(revocations_.Check(ada_.certificate).ok());
  const int64_t before = revocations_.Version();
  EXPECT_EQ(revocations_.Version(), before);
  Write("revoked.pem", List({ada_.certificate}));
  EXPECT_NE(revocations_.Version(), before);
  EXPECT_EQ(revocations_.Check(ada_.certificate).message(), "its certificate has been revoked");
  EXPECT_TRUE(revocations_.Check(bob_.certificate).ok());
}
TEST_F(RevocationsTest, WithoutTheFileNobodyIsGood) {
  EXPECT_THAT(revocations_.Check(ada_.certificate).message(), HasSubstr(Path("revoked.pem")));
  Write("revoked.pem", List({}));
  EXPECT_TRUE(revocations_.Check(ada_.certificate).ok());
}
TEST_F(RevocationsTest, WhereNoneAreKeptAllAre) { EXPECT_TRUE(Revocations("").Check(ada_.certificate).ok()); }

}  // namespace
}  // namespace siding
