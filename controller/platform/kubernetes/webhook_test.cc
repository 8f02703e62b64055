#include "controller/platform/kubernetes/webhook.h"

#include <httplib.h>

#include <utility>

#include "common/tls/tls_fixture.h"
#include "controller/platform/kubernetes/client/curl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

class WebhookTest : public TlsTest {
 protected:
  WebhookTest() { Keep("server", IssueServer()); }

  absl::StatusOr<std::unique_ptr<Webhook>> Start(Webhook::Answerer answer) const {
    return Webhook::Start({"127.0.0.1", 0, Path("server.pem"), Path("server.key")}, std::move(answer));
  }
  void Serve(Webhook::Answerer answer) {
    auto webhook = Start(std::move(answer));
    ASSERT_TRUE(webhook.ok()) << webhook.status();
    webhook_ = *std::move(webhook);
  }
  absl::StatusOr<HttpResponse> Ask(const std::string& body, const std::string& ca = "ca.pem") const {
    ServerSettings settings;
    settings.url = absl::StrCat("https://127.0.0.1:", webhook_->port());
    settings.authority = *ReadFile(Path(ca));
    HttpRequest request{.method = HttpMethod::kPost, .path = "/", .body = body};
    return (*NewCurlTransport(settings, {}))->Send(request, {});
  }

  std::unique_ptr<Webhook> webhook_;
};

TEST_F(WebhookTest, ABodyIsAnswered) {
  Serve([](const std::string& body) { return "<" + body + ">"; });
  const auto answer = Ask("hi");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 200);
  EXPECT_EQ(answer->body, "<hi>");
}
TEST_F(WebhookTest, WhatCannotBeAnsweredIsTold) {
  Serve([](const std::string&) { return absl::InvalidArgumentError("expected a review"); });
  const auto answer = Ask("hi");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 400);
  EXPECT_EQ(answer->body, "expected a review");
}
TEST_F(WebhookTest, WhatIsCompressedIsNotRead) {
  Serve([](const std::string& body) { return body; });
  httplib::SSLClient client("127.0.0.1", webhook_->port());
  client.enable_server_certificate_verification(false);
  client.set_compress(true);
  const auto answer = client.Post("/", std::string(1000, 'x'), "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
}
TEST_F(WebhookTest, WhatHasNoLengthIsNotRead) {
  Serve([](const std::string& body) { return body; });
  httplib::SSLClient client("127.0.0.1", webhook_->port());
  client.enable_server_certificate_verification(false);
  bool asked = false;
  const auto answer = client.Post(
      "/",
      [&](size_t, httplib::DataSink& sink) {
        sink.write("x", 1);
        if (std::exchange(asked, true)) sink.done();
        return true;
      },
      "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
}
TEST_F(WebhookTest, ACertificateThatWasRenewedIsShown) {
  Serve([](const std::string& body) { return body; });
  ASSERT_TRUE(Ask("hi").ok());
  const auto renewed = IssueForHosts({"127.0.0.1"}, other_authority_, kHour, now_);
  ASSERT_TRUE(renewed.ok());
  Write("server.pem", renewed->certificate);
  Write("server.key", renewed->key);
  EXPECT_FALSE(Ask("hi").ok());
  EXPECT_TRUE(Ask("hi", "other.pem").ok());
}
TEST_F(WebhookTest, WithoutItsFilesItIsNotServed) {
  Write("server.key", "nothing");
  const auto webhook = Start([](const std::string& body) { return body; });
  ASSERT_FALSE(webhook.ok());
  EXPECT_THAT(webhook.status().message(), HasSubstr("server.key: expected the key of"));
}
TEST_F(WebhookTest, AnAddressThatIsTakenIsNamed) {
  Serve([](const std::string& body) { return body; });
  const auto second = Webhook::Start({"127.0.0.1", webhook_->port(), Path("server.pem"), Path("server.key")},
                                     [](const std::string& body) { return body; });
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("cannot listen at 127.0.0.1:"));
}

}  // namespace
}  // namespace siding::kubernetes
