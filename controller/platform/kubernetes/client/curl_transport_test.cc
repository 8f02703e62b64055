#include "controller/platform/kubernetes/client/curl_transport.h"

#include <optional>
#include <thread>

#include "common/clock.h"
#include "common/patience_for_test.h"
#include "common/tls/tls_fixture.h"
#include "controller/platform/kubernetes/client/https_server_for_test.h"
#include "controller/platform/kubernetes/client/line_splitter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Connection = HttpsServer::Connection;

// The clock of a request's limits stands still unless a test moves it.
class CurlTransportTest : public TlsTest {
 protected:
  void Serve(HttpsServer::Answerer answer, const std::string& clients_from = "") {
    Keep("server", IssueServer());
    server_.emplace(Path("server.pem"), Path("server.key"), std::move(answer),
                    clients_from.empty() ? "" : Path(clients_from));
    settings_.url = server_->url();
    settings_.authority = *ReadFile(Path("ca.pem"));
  }
  std::unique_ptr<Transport> Open() const { return *NewCurlTransport(settings_, limits_); }
  absl::StatusOr<HttpResponse> Send(HttpRequest request = {.path = "/x"}) const {
    return Open()->Send(request, {});
  }
  // Reads all lines.
  absl::StatusOr<HttpResponse> Stream(HttpRequest request = {.path = "/x"}) {
    const LineReader read = [this](absl::string_view line) {
      lines_.emplace_back(line);
      clock_.Advance(after_each_line_);
      return lines_.size() < enough_;
    };
    return Open()->Stream(request, read, stop_.get_token());
  }

  ServerSettings settings_;
  FakeClock clock_;
  CurlLimits limits_{.connect = kPatience, .now = [this] {
                       return std::chrono::steady_clock::time_point(clock_.Now().time_since_epoch());
                     }};
  std::stop_source stop_;
  std::vector<std::string> lines_;
  size_t enough_ = 1000;
  Duration after_each_line_{0};
  std::optional<HttpsServer> server_;  // ends first
};

TEST_F(CurlTransportTest, AnAnswerHasCodeHeadersAndBody) {
  Serve(
      [](const Connection& c) { c.Send("HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nhi"); });
  const auto response = Send();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->code, 429);
  EXPECT_EQ(response->headers.at("retry-after"), "7");
  EXPECT_EQ(response->body, "hi");
}
TEST_F(CurlTransportTest, SendsWhatWasAsked) {
  Serve([](const Connection& c) { c.Answer(200, c.request); });
  settings_.token.text = "the-token";
  const auto response = Send({.method = HttpMethod::kPatch,
                              .path = "/api/v1/pods/a",
                              .query = {{"limit", "a b&c"}},
                              .content_type = "application/merge-patch+json",
                              .body = "{}"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->body, HasSubstr("PATCH /api/v1/pods/a?limit=a%20b%26c HTTP/1.1\r\n"));
  EXPECT_THAT(response->body, HasSubstr("Authorization: Bearer the-token\r\n"));
  EXPECT_THAT(response->body, HasSubstr("Content-Type: application/merge-patch+json\r\n"));
  EXPECT_THAT(response->body, HasSubstr("\r\n\r\n{}"));
}
TEST_F(CurlTransportTest, AServerOfAnotherAuthorityIsNotTrusted) {
  Serve([](const Connection& c) { c.Answer(200, ""); });
  settings_.authority = *ReadFile(Path("other.pem"));
  settings_.token.text = "the-token";
  const absl::Status status = Send().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), Not(HasSubstr("the-token")));
}
TEST_F(CurlTransportTest, AServerOfAnotherNameIsNotTrusted) {
  Serve([](const Connection& c) { c.Answer(200, ""); });
  Keep("server", IssueServer("example.test"));
  server_.emplace(Path("server.pem"), Path("server.key"), [](const Connection& c) { c.Answer(200, ""); });
  settings_.url = server_->url();
  EXPECT_TRUE(absl::IsFailedPrecondition(Send().status()));
}
TEST_F(CurlTransportTest, AClientShowsItsCertificate) {
  Serve([](const Connection& c) { c.Answer(200, "in"); }, "ca.pem");
  EXPECT_FALSE(Send().ok());
  const auto client = Issue(Kind::kUser, "alice");
  settings_.certificate = client->certificate;
  settings_.key = client->key;
  const auto response = Send();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "in");
}
TEST_F(CurlTransportTest, NoServerIsUnavailable) {
  Serve([](const Connection&) {});
  server_.reset();
  EXPECT_TRUE(absl::IsUnavailable(Send().status()));
}
TEST_F(CurlTransportTest, AConnectionThatBreaksIsUnavailable) {
  Serve([](const Connection& c) { c.Send("HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhi"); });
  EXPECT_TRUE(absl::IsUnavailable(Send().status()));
}
TEST_F(CurlTransportTest, GarbageIsUnavailable) {
  Serve([](const Connection& c) { c.Send("\x01\x02garbage\r\n\r\n"); });
  EXPECT_TRUE(absl::IsUnavailable(Send().status()));
}
TEST_F(CurlTransportTest, AServerThatStallsIsGivenUp) {
  Serve([this](const Connection& c) {
    clock_.Advance(seconds(31));
    c.Stall();
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(Send({.path = "/x", .limit = seconds(30)}).status()));
}
TEST_F(CurlTransportTest, TooMuchIsRefused) {
  Serve([](const Connection& c) { c.Answer(200, std::string(1001, 'x')); });
  limits_.answer = 1000;
  EXPECT_TRUE(absl::IsResourceExhausted(Send().status()));
}
TEST_F(CurlTransportTest, ARedirectionIsNotFollowed) {
  Serve([](const Connection& c) {
    c.Send("HTTP/1.1 302 X\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  });
  EXPECT_EQ(Send()->code, 302);
}
TEST_F(CurlTransportTest, ATokenThatWasReplacedIsReadAgainOnceItIsRefused) {
  Serve([this](const Connection& c) {
    const bool is_new = absl::StrContains(c.request, "Bearer new");
    if (!is_new) Write("token", "new");
    c.Answer(is_new ? 200 : 401, "");
  });
  Write("token", "old");
  settings_.token.path = Path("token");
  EXPECT_EQ(Send()->code, 200);
}
TEST_F(CurlTransportTest, ATokenThatStaysRefusedIsRefused) {
  Serve([](const Connection& c) { c.Answer(401, ""); });
  Write("token", "old");
  settings_.token.path = Path("token");
  EXPECT_EQ(Send()->code, 401);
}
TEST_F(CurlTransportTest, NothingIsSentInTheClear) {
  EXPECT_TRUE(absl::IsInvalidArgument(NewCurlTransport({.url = "http://127.0.0.1"}).status()));
}

TEST_F(CurlTransportTest, AStreamIsReadAsItComes) {
  Serve([](const Connection& c) {
    c.BeginChunks();
    c.Chunk("{\"a\":");
    c.Chunk("1}\n{\"b\":2}\n\n");
    c.Chunk("");
  });
  const auto response = Stream();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(lines_, ElementsAre("{\"a\":1}", "{\"b\":2}"));
}
TEST_F(CurlTransportTest, AReaderMayHaveEnough) {
  Serve([](const Connection& c) {
    c.BeginChunks();
    c.Chunk("1\n2\n3\n");
    c.Stall();
  });
  enough_ = 2;
  EXPECT_TRUE(Stream().ok());
  EXPECT_THAT(lines_, ElementsAre("1", "2"));
}
TEST_F(CurlTransportTest, ARefusedStreamHasNoLines) {
  Serve([](const Connection& c) { c.Answer(410, "gone\n"); });
  const auto response = Stream();
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "gone\n");
  EXPECT_THAT(lines_, ElementsAre());
}
TEST_F(CurlTransportTest, AStreamThatIsSilentIsBroken) {
  Serve([](const Connection& c) {
    c.BeginChunks();
    c.Chunk("1\n");
    c.Stall();
  });
  after_each_line_ = seconds(91);
  const absl::Status status =
      Stream({.path = "/x", .limit = std::chrono::hours(1), .silence = seconds(90)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(lines_, ElementsAre("1"));
}
TEST_F(CurlTransportTest, AStopFromAnotherThreadEndsAStream) {
  Serve([this](const Connection& c) {
    c.BeginChunks();
    c.Chunk("1\n");
    stop_.request_stop();
    c.Stall();
  });
  EXPECT_TRUE(absl::IsCancelled(Stream().status()));
}
TEST_F(CurlTransportTest, ALineThatIsTooLongIsRefused) {
  Serve([](const Connection& c) {
    c.BeginChunks();
    for (int i = 0; i < 11; ++i) c.Chunk(std::string(100, 'x'));
    c.Stall();
  });
  limits_.line = 1000;
  EXPECT_TRUE(absl::IsResourceExhausted(Stream().status()));
}
TEST_F(CurlTransportTest, AWatchIsInNobodysWay) {
  Serve([](const Connection& c) {
    if (absl::StrContains(c.request, "GET /watch")) {
      c.BeginChunks();
      c.Chunk("1\n");
      c.Stall();
    }
    c.Answer(200, "other");
  });
  const auto transport = Open();
  std::string body;
  const LineReader read = [&](absl::string_view) {
    body = transport->Send({.path = "/x"}, {})->body;
    return false;
  };
  EXPECT_TRUE(transport->Stream({.path = "/watch"}, read, {}).ok());
  EXPECT_EQ(body, "other");
}

TEST(LineSplitter, ALineOfTheLongestLengthIsTaken) {
  std::vector<std::string> lines;
  const LineReader read = [&](absl::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  LineSplitter splitter(read, 3);
  EXPECT_TRUE(splitter.Add("abc\nd").ok());
  EXPECT_TRUE(splitter.Add("ef\n").ok());
  EXPECT_THAT(lines, ElementsAre("abc", "def"));
  EXPECT_TRUE(absl::IsResourceExhausted(splitter.Add("abcd")));
}

}  // namespace
}  // namespace siding::kubernetes
