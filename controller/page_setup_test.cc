#include "controller/page_setup.h"

#include "common/tls/tls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;

class PageSetupTest : public TlsTest {
 protected:
  // "" if all is well.
  std::string ProblemOf(const std::string& yaml) const {
    const auto config = ParseControllerConfig(yaml, "c.yaml");
    if (!config.ok()) return std::string(config.status().message());
    absl::Status status = CheckListening(*config);
    status.Update(CheckPage(*config));
    return std::string(status.message());
  }
  std::string Tls() const {
    const TlsFiles files = Keep("controller", IssueServer());
    return absl::StrCat("tls: {ca: ", files.ca, ", certificate: ", files.certificate, ", key: ", files.key,
                        "}\n");
  }
  std::string ProxyWith(const std::string& secret, int mode = 0600) const {
    Write("secret", secret, mode);
    return absl::StrCat("page_proxy: {addresses: [127.0.0.1], secret: ", Path("secret"), "}\n");
  }
};

TEST_F(PageSetupTest, BeyondTheLoopbackItIsServedWithTlsAlone) {
  EXPECT_EQ(ProblemOf("page: 127.0.0.1:7480"), "");
  EXPECT_THAT(ProblemOf("page: 0.0.0.0:7480"),
              HasSubstr("page: '0.0.0.0:7480'; expected 127.0.0.1:PORT or "
                        "[::1]:PORT, or tls.ca, tls.certificate and tls.key"));
  EXPECT_EQ(ProblemOf("page: 0.0.0.0:7480\npage_names: [head1]\n" + Tls()), "");
  EXPECT_THAT(ProblemOf("page: 0.0.0.0:7480\n" + Tls()), HasSubstr("page_names: expected the names"));
  EXPECT_THAT(ProblemOf(absl::StrCat("page: 0.0.0.0:7480\npage_names: [a]\ntls: {ca: ", Path("ca.pem"),
                                     ", certificate: ", Path("gone"), ", key: ", Path("gone"), "}\n")),
              HasSubstr("gone"));
}
TEST_F(PageSetupTest, TlsIsForSomething) {
  EXPECT_THAT(ProblemOf(Tls()), HasSubstr("tls is given, but listen is not"));
  EXPECT_THAT(ProblemOf("page: 127.0.0.1:7480\n" + Tls()), HasSubstr("the page is on the loopback"));
  EXPECT_EQ(ProblemOf("listen: 0.0.0.0:7433\npage: 127.0.0.1:7480\n" + Tls()), "");
}
TEST_F(PageSetupTest, NamesAndProxiesAreThePages) {
  EXPECT_THAT(ProblemOf("page_names: [a]"), HasSubstr("page_names or page_proxy is given, but page is not"));
  for (const char* bad : {"'a:1'", "https://a", "'a b'", "'*'", "a/b", "'::1'"})
    EXPECT_THAT(ProblemOf(absl::StrCat("page: 127.0.0.1:7480\npage_names: [", bad, "]\n")),
                HasSubstr("expected names of hosts without a port"))
        << bad;
  const auto config =
      ParseControllerConfig("page_names: [Siding.Example.ORG, '[fd00::1]', 10.0.0.1]", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->page_names, testing::ElementsAre("10.0.0.1", "[fd00::1]", "siding.example.org"));
}
TEST_F(PageSetupTest, BrowsersAreGivenANameRatherThanAnAddress) {
  const auto given = [&](const std::string& names) {
    const auto config =
        ParseControllerConfig(absl::StrCat("page: 0.0.0.0:7480\npage_names: ", names, "\n", Tls()), "c.yaml");
    return config.ok() ? PageForBrowsers(*config) : std::string(config.status().message());
  };
  EXPECT_EQ(given("[10.0.0.1, '[fd00::1]', siding.example.org]"), "https://siding.example.org:7480");
  EXPECT_EQ(given("['[fd00::1]', 10.0.0.1]"), "https://10.0.0.1:7480");
}
TEST_F(PageSetupTest, AProxyHasAddressesAndASecret) {
  const std::string page = "page: 127.0.0.1:7480\n", secret(32, 'x');
  EXPECT_EQ(ProblemOf(page + ProxyWith(secret + "\n")), "");
  EXPECT_THAT(ProblemOf(page + "page_proxy: {addresses: [127.0.0.1]}"),
              HasSubstr("addresses and secret together"));
  EXPECT_THAT(ProblemOf(page + "page_proxy: {secret: /x}"), HasSubstr("addresses and secret together"));
  EXPECT_THAT(ProblemOf(page + "page_proxy: {addresses: [proxy1], secret: /x}"),
              HasSubstr("expected IP addresses"));
  EXPECT_THAT(ProblemOf(page + "page_proxy: {addresses: ['::1'], secret: /none/x}"), HasSubstr("/none/x"));
  EXPECT_THAT(ProblemOf(page + ProxyWith(secret, 0644)), HasSubstr("has mode 0644"));
  for (const std::string& bad : {std::string("short"), std::string(31, 'x'), secret + " x", std::string()})
    EXPECT_THAT(ProblemOf(page + ProxyWith(bad)), HasSubstr("expected one word of 32 characters or more"));
  EXPECT_THAT(ProblemOf(page + "page_proxy: {addresses: ['::1'], user_header: 'X User', secret: /x}"),
              HasSubstr("expected the name of a header"));
}
TEST_F(PageSetupTest, AnAddressIsReadAsTheServerWritesIt) {
  const auto config = ParseControllerConfig(
      "page_proxy: {addresses: ['FD00:0::5', 10.0.0.5], secret: /x, user_header: Remote-User}", "c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->page_proxy.addresses, testing::ElementsAre("10.0.0.5", "fd00::5"));
  EXPECT_EQ(config->page_proxy.user_header, "Remote-User");
}
TEST_F(PageSetupTest, AProxysWordIsGoodForOrdersWhereItIsSaid) {
  const std::string proxy = "page_proxy: {addresses: ['::1'], secret: /x";
  EXPECT_FALSE(ParseControllerConfig(proxy + "}", "c.yaml")->page_proxy.orders);
  EXPECT_TRUE(ParseControllerConfig(proxy + ", orders: true}", "c.yaml")->page_proxy.orders);
  EXPECT_THAT(ProblemOf("page_proxy: {orders: true}"), HasSubstr("page_proxy.orders: expected addresses"));
}

TEST(ActivePageTest, WhoHasTakenOverActsWithoutItAndTriesAgain) {
  FakeClock clock;
  absl::Status status = absl::AlreadyExistsError("its address is in use");
  int tried = 0;
  ActivePage page(
      [&]() -> absl::StatusOr<std::unique_ptr<ServedPage>> {
        ++tried;
        if (!status.ok()) return status;
        return nullptr;
      },
      clock);
  EXPECT_EQ(page.Start(false), status) << "at the start it is an error";
  EXPECT_TRUE(page.Start(true).ok());
  page.Look();
  EXPECT_EQ(tried, 2);
  for (int i = 1; i <= 2; ++i) {
    clock.Advance(ActivePage::kBetweenTries);
    page.Look();
    page.Look();
    EXPECT_EQ(tried, 2 + i);
    status = absl::OkStatus();
  }
  clock.Advance(ActivePage::kBetweenTries);
  page.Look();
  EXPECT_EQ(tried, 4) << "it is served";
}

}  // namespace
}  // namespace siding
