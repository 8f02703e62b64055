#include "controller/platform/kubernetes/webhook.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <utility>

#include "common/patience_for_test.h"
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
    return (*NewCurlTransport(settings, {.connect = kPatience}))->Send(request, {});
  }
  // The first line of the answer to a request of this body, its fields after "POST / HTTP/1.1". All of it is
  // one record of TLS: the server has taken all of it from its connection when it answers, and what it closes
  // then ends with the answer. A client that is still sending would see a broken connection instead.
  std::string FirstLineFor(const std::string& fields, const std::string& body) const {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                    &SSL_CTX_free);
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(BIO_new_ssl_connect(context.get()),
                                                                   &BIO_free_all);
    BIO_set_conn_hostname(connection.get(), absl::StrCat("127.0.0.1:", webhook_->port()).c_str());
    const std::string request = absl::StrCat("POST / HTTP/1.1\r\nHost: a\r\n", fields, "\r\n", body);
    const int size = static_cast<int>(request.size());
    EXPECT_EQ(BIO_write(connection.get(), request.data(), size), size);
    std::string line;
    for (char c = 0; BIO_read(connection.get(), &c, 1) == 1 && c != '\r';) line += c;
    return line;
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
// In each of the following the body is "hi".
TEST_F(WebhookTest, WhatIsNeitherOfTheseIsRead) {
  Serve([](const std::string& body) { return body; });
  EXPECT_THAT(FirstLineFor("Content-Length: 2\r\n", "hi"), HasSubstr(" 200 "));
}
TEST_F(WebhookTest, WhatIsCompressedIsNotRead) {
  Serve([](const std::string& body) { return body; });
  using namespace std::string_literals;
  const std::string body = "\x1f\x8b\x08\0\0\0\0\0\x02\x03\xcb\xc8\x04\0\xac*\x93\xd8\x02\0\0\0"s;
  const std::string fields = absl::StrCat("Content-Encoding: gzip\r\nContent-Length: ", body.size(), "\r\n");
  EXPECT_THAT(FirstLineFor(fields, body), HasSubstr(" 400 "));
}
TEST_F(WebhookTest, WhatHasNoLengthIsNotRead) {
  Serve([](const std::string& body) { return body; });
  EXPECT_THAT(FirstLineFor("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"), HasSubstr(" 400 "));
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
