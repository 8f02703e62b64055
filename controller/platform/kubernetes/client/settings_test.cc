#include "controller/platform/kubernetes/client/settings.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "controller/platform/kubernetes/client/token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kPem[] = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() : folder_(mkdtemp(name_)) {}
  ~SettingsTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/" + name, text).ok());
    return folder_ + "/" + name;
  }

  char name_[32] = "/tmp/siding-kube-XXXXXX";
  const std::string folder_;
};

// With one place changed.
std::string Config(const std::string& from = "", const std::string& to = "") {
  const std::string text = R"(apiVersion: v1
kind: Config
preferences: {}
current-context: one
contexts:
- name: other
  context: {cluster: none, user: none}
- name: one
  context: {cluster: c, user: u, namespace: batch}
clusters:
- name: c
  cluster: {server: "https://h:6443/", certificate-authority-data: PEM}
users:
- name: u
  user: {token: secret-token}
)";
  const std::string changed = from.empty() ? text : absl::StrReplaceAll(text, {{from, to}});
  return absl::StrReplaceAll(changed, {{"PEM", absl::Base64Escape(kPem)}});
}
std::string ErrorOf(const std::string& text) {
  const absl::Status status = ParseKubeconfig(text, "kc").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), Not(HasSubstr("secret")));
  return std::string(status.message());
}

TEST(Kubeconfig, TheCurrentContextIsTaken) {
  const auto settings = ParseKubeconfig(Config(), "kc");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->url, "https://h:6443");
  EXPECT_EQ(settings->authority, kPem);
  EXPECT_EQ(settings->token.text, "secret-token");
  EXPECT_EQ(settings->space, "batch");
}
TEST(Kubeconfig, AnErrorNamesFileFieldAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf(Config("https://h", "http://h")), "kc: cluster.server: expected https://HOST:PORT");
}
TEST(Kubeconfig, AContextThatIsMissingIsNamed) {
  EXPECT_THAT(ErrorOf(Config("current-context: one", "current-context: two")),
              HasSubstr("contexts: expected one that is named \"two\""));
}
TEST(Kubeconfig, ProgramsThatMakeCredentialsAreRefused) {
  EXPECT_THAT(ErrorOf(Config("token: secret-token", "exec: {command: secret}")), HasSubstr("user.exec"));
}
TEST(Kubeconfig, AServerThatNobodyVouchesForIsRefused) {
  EXPECT_THAT(ErrorOf(Config("certificate-authority-data: PEM", "insecure-skip-tls-verify: true")),
              HasSubstr("cluster.insecure-skip-tls-verify"));
}
TEST(Kubeconfig, ACertificateNeedsItsKey) {
  EXPECT_THAT(ErrorOf(Config("token: secret-token", "client-certificate-data: PEM")),
              HasSubstr("user.client-key"));
}
TEST(Kubeconfig, WhatIsNoPemIsRefused) {
  EXPECT_THAT(ErrorOf(Config("authority-data: PEM", "authority-data: c2VjcmV0")),
              HasSubstr("cluster.certificate-authority-data: expected PEM in base64"));
}
TEST(Kubeconfig, WhatIsNoYamlIsRefusedWithItsLine) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [secret"), HasSubstr("kc:"));
  EXPECT_THAT(ErrorOf("- secret"), HasSubstr("expected a map"));
  EXPECT_THAT(ErrorOf(Config("name: other", "name: [secret]")),
              HasSubstr("contexts[].name: expected a text"));
}
TEST_F(SettingsTest, FilesInAKubeconfigAreBesideIt) {
  Write("ca.pem", kPem);
  const std::string path =
      Write("config", Config("certificate-authority-data: PEM", "certificate-authority: ca.pem"));
  const auto settings = FromKubeconfig(path);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->authority, kPem);
}

TEST(Kubeconfig, AFileWithoutEndIsRefused) {
  EXPECT_THAT(ErrorOf(Config("certificate-authority-data: PEM", "certificate-authority: /dev/zero")),
              HasSubstr("cluster.certificate-authority: /dev/zero: expected a file of at most 1 MiB"));
}

TEST_F(SettingsTest, APodHasAServiceAccount) {
  Write("ca.crt", kPem);
  Write("token", "t");
  Write("namespace", "siding\n");
  const auto settings = FromServiceAccount(folder_, "fd00::1", "443");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->url, "https://[fd00::1]:443");
  EXPECT_EQ(settings->space, "siding");
}
TEST_F(SettingsTest, WhatIsNoPodIsTold) {
  EXPECT_THAT(FromServiceAccount(folder_, "", "443").status().message(),
              HasSubstr("KUBERNETES_SERVICE_HOST"));
  EXPECT_THAT(FromServiceAccount(folder_, "h", "x").status().message(), HasSubstr("KUBERNETES_SERVICE_PORT"));
  EXPECT_THAT(FromServiceAccount(folder_, "h", "443").status().message(), HasSubstr("ca.crt"));
}

TEST_F(SettingsTest, ATokenIsReadAgainWhenItsFileIsReplaced) {
  TokenSource token({.path = Write("token", "one\n")});
  EXPECT_EQ(*token.Get(), "one");
  Write("token", "two\n");
  EXPECT_EQ(*token.Get(), "two");
}
TEST_F(SettingsTest, ARefusedTokenIsRenewedOnlyByAnother) {
  TokenSource token({.path = Write("token", "one")});
  EXPECT_FALSE(token.Renew("one"));
  EXPECT_TRUE(token.Renew("zero"));
}
TEST_F(SettingsTest, ATokenThatWouldBreakTheHeaderIsRefused) {
  const auto token = TokenSource({.path = Write("token", "secret\r\nX: y")}).Get();
  EXPECT_TRUE(absl::IsFailedPrecondition(token.status()));
  EXPECT_THAT(token.status().message(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace siding::kubernetes
