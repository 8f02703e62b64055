// The real server, over sockets.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "page/server/http.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(const std::string& text) { send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  void Get(const std::string& address) {
    Send(absl::StrCat("GET ", address, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  // What has come since, up to and with `end`; or all, if the connection is closed before.
  std::string ReadTo(const std::string& end) {
    while (read_.find(end) == std::string::npos && ReadSome()) {
    }
    const size_t found = read_.find(end);
    const size_t size = found == std::string::npos ? read_.size() : found + end.size();
    const std::string text = read_.substr(0, size);
    read_.erase(0, size);
    return text;
  }
  void Drop(size_t size) {
    while (read_.size() < size && ReadSome()) {
    }
    read_.erase(0, size);
  }
  std::string ReadAll() {
    while (ReadSome()) {
    }
    return std::exchange(read_, "");
  }

 private:
  bool ReadSome() {
    char bytes[4096];
    const ssize_t size = recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (size > 0) read_.append(bytes, static_cast<size_t>(size));
    return size > 0;
  }

  const UniqueFd socket_;
  std::string read_;
};

size_t Threads() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}

class MicrohttpdServerTest : public testing::Test {
 protected:
  // /stream is one, /same has not changed; all else is answered with "hello".
  void Serve(HttpOptions options = {}) {
    options.address = "127.0.0.1:0";
    auto server = HttpServer::Listen(options, [this](const HttpRequest& request) {
      MutexLock lock(mutex_);
      requests_.push_back(request);
      HttpResponse response;
      response.headers = {{"X-Of", "mine"}};
      if (request.path == "/stream") {
        response.stream = streams_.emplace_back(std::make_shared<ByteStream>(64 << 20));
        response.content_type = "text/event-stream";
      } else if (request.path == "/same") {
        response.status = 304;
      } else {
        response.status = request.path == "/none" ? 404 : 200;
        response.body = request.path == "/large" ? large_ : std::make_shared<const std::string>("hello");
      }
      return response;
    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  HttpRequest Request(size_t number = 0) {
    MutexLock lock(mutex_);
    return number < requests_.size() ? requests_[number] : HttpRequest();
  }
  size_t Requests() {
    MutexLock lock(mutex_);
    return requests_.size();
  }
  std::shared_ptr<ByteStream> Stream(size_t number = 0) {
    EXPECT_TRUE(Eventually([&] {
      MutexLock lock(mutex_);
      return number < streams_.size();
    }));
    MutexLock lock(mutex_);
    return streams_.at(number);
  }

  // More than the kernel takes.
  const std::shared_ptr<const std::string> large_ = std::make_shared<const std::string>(32 << 20, 'x');
  Mutex mutex_;
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ByteStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

TEST_F(MicrohttpdServerTest, ARequestIsAnswered) {
  Serve();
  Client client(server_->port());
  client.Get("/none");
  const std::string answer = client.ReadTo("hello");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Of: mine\r\n"));
}
TEST_F(MicrohttpdServerTest, AConnectionIsKept) {
  Serve();
  Client client(server_->port());
  for (int i = 0; i < 2; ++i) {
    client.Get("/");
    EXPECT_THAT(client.ReadTo("hello"), HasSubstr(" 200 OK\r\n"));
  }
}
TEST_F(MicrohttpdServerTest, TheHandlerHasTheAddressAsItWasWritten) {
  Serve();
  Client client(server_->port());
  client.Get("/a%20b%00?x=%41+b&x=&y");
  client.ReadTo("hello");
  const HttpRequest request = Request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a%20b%00");
  EXPECT_THAT(request.query, ElementsAre(Pair("x", "%41 b"), Pair("x", ""), Pair("y", "")));
  EXPECT_EQ(request.Header("HOST"), "localhost");
  EXPECT_FALSE(request.has_body);
}
TEST_F(MicrohttpdServerTest, OfABodyNothingIsReadAndTheConnectionIsClosed) {
  for (const char* method : {"GET", "POST"}) {
    Serve();
    Client client(server_->port());
    client.Send(absl::StrCat(method, " / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc"));
    const std::string answer = client.ReadAll();
    EXPECT_THAT(answer, HasSubstr("hello")) << method;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(Request(Requests() - 1).has_body);
  }
}
TEST_F(MicrohttpdServerTest, AChunkedBodyLikewise) {
  Serve();
  Client client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("hello"));
  EXPECT_TRUE(Request().has_body);
}
TEST_F(MicrohttpdServerTest, AShortBodyOfAPostIsReadAndTheConnectionIsKept) {
  Serve({.longest_body = 10});
  Client client(server_->port());
  for (const std::string body : {"0123456789", "", "abc"}) {
    client.Send(absl::StrCat("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", body.size(),
                             "\r\n\r\n", body.substr(0, 1)));
    client.Send(body.empty() ? "" : body.substr(1));
    EXPECT_THAT(client.ReadTo("hello"), HasSubstr(" 200 OK\r\n"));
    const HttpRequest request = Request(Requests() - 1);
    EXPECT_EQ(request.body, body);
    EXPECT_FALSE(request.has_body);
  }
}
TEST_F(MicrohttpdServerTest, ABodyThatIsTooLongOrOfUnknownLengthIsNotRead) {
  Serve({.longest_body = 10});
  for (const char* head :
       {"POST / HTTP/1.1\r\nContent-Length: 11\r\n", "PUT / HTTP/1.1\r\nContent-Length: 3\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 3\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"}) {
    Client client(server_->port());
    client.Send(absl::StrCat(head, "Host: localhost\r\n\r\nabc"));
    EXPECT_THAT(client.ReadAll(), HasSubstr("Connection: close\r\n")) << head;
    EXPECT_TRUE(Request(Requests() - 1).has_body) << head;
    EXPECT_EQ(Request(Requests() - 1).body, "");
  }
}
TEST_F(MicrohttpdServerTest, ABodyThatDoesNotComeWholeIsNoRequest) {
  Serve({.longest_body = 10});
  {
    Client client(server_->port());
    client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc");
  }
  Client client(server_->port());
  client.Get("/");
  client.ReadTo("hello");
  EXPECT_EQ(Requests(), 1u);
}
TEST_F(MicrohttpdServerTest, ABodyThatComesForTooLongIsCut) {
  Serve({.longest_body = 10, .longest_answer = std::chrono::minutes(5)});
  Client client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  client.ReadTo("100 Continue\r\n\r\n");  // its headers have been read
  const Time now{std::chrono::hours(1)};
  server_->CutSlow(now);
  server_->CutSlow(now + std::chrono::minutes(5));
  EXPECT_EQ(client.ReadAll(), "");
  EXPECT_EQ(Requests(), 0u);
}
TEST_F(MicrohttpdServerTest, WhatIsNoHttpIsRefusedAndTheServerLives) {
  Serve();
  for (const std::string& nonsense :
       {std::string("\x16\x03\x01\x02"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/9\r\n\r\n"),
        absl::StrCat("GET /", std::string(100'000, 'x'), " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        absl::StrCat("GET / HTTP/1.1\r\nHost: localhost\r\nX: ", std::string(100'000, 'x'), "\r\n\r\n")}) {
    Client client(server_->port());
    client.Send(nonsense);
  }
  Client client(server_->port());
  client.Get("/");
  EXPECT_THAT(client.ReadTo("hello"), HasSubstr(" 200 OK\r\n"));
}
TEST_F(MicrohttpdServerTest, AServerThatEndsWhileItRefusesLives) {
  for (int i = 0; i < 50; ++i) {
    Serve();
    std::deque<Client> clients;
    for (int j = 0; j < 20; ++j) {
      clients.emplace_back(server_->port()).Get("/");
      clients.back().ReadTo("hello");
    }
    for (Client& client : clients) client.Send(absl::StrCat("GET /", std::string(30'000, 'x')));
    server_.reset();
  }
}
TEST_F(MicrohttpdServerTest, AStreamComesAsItIsWritten) {
  Serve();
  Client client(server_->port());
  client.Get("/stream");
  const auto stream = Stream();
  EXPECT_THAT(client.ReadTo("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream\r\n"));
  for (const char* text : {"first", "second"}) {
    stream->Write(text);
    EXPECT_THAT(client.ReadTo(text), HasSubstr(text));
  }
}
TEST_F(MicrohttpdServerTest, TheEndOfAStreamIsThatOfItsConnection) {
  Serve();
  Client client(server_->port());
  client.Get("/stream");
  Stream()->End();
  EXPECT_THAT(client.ReadAll(), HasSubstr(" 200 OK\r\n"));
}
TEST_F(MicrohttpdServerTest, AStreamWhoseReaderHasGoneEnds) {
  Serve();
  {
    Client client(server_->port());
    client.Get("/stream");
    client.ReadTo("\r\n\r\n");
  }
  const auto stream = Stream();
  EXPECT_TRUE(Eventually([&] { return !stream->Write("."); }));
}
TEST_F(MicrohttpdServerTest, ReadersWhoWaitCostNoThread) {
  Serve();
  const size_t before = Threads();
  std::deque<Client> clients;
  for (size_t i = 0; i < 100; ++i) {
    clients.emplace_back(server_->port()).Get("/stream");
    Stream(i);
  }
  EXPECT_EQ(Threads(), before);
  for (size_t i = 0; i < 100; ++i) {
    Stream(i)->Write("news");
    EXPECT_THAT(clients[i].ReadTo("news"), HasSubstr("news"));
  }
}
TEST_F(MicrohttpdServerTest, AServerThatEndsEndsItsStreams) {
  Serve();
  std::deque<Client> clients;
  for (size_t i = 0; i < 10; ++i) {
    clients.emplace_back(server_->port()).Get("/stream");
    Stream(i);
  }
  server_.reset();
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(Stream(i)->HasEnded());
    clients[i].ReadAll();
  }
}
TEST_F(MicrohttpdServerTest, AnAddressHasSoManyConnections) {
  Serve({.connections_per_host = 2});
  std::deque<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server_->port()).Get("/");
    EXPECT_THAT(clients.back().ReadTo("hello"), HasSubstr("hello"));
  }
  Client third(server_->port());
  third.Get("/");
  EXPECT_EQ(third.ReadAll(), "");
  clients.pop_front();
  EXPECT_TRUE(Eventually([&] {
    Client next(server_->port());
    next.Get("/");
    return next.ReadTo("hello") != "";
  }));
}
TEST_F(MicrohttpdServerTest, WhereAllConnectionsAreOpenTheNextOneWaits) {
  Serve({.connections = 2, .connections_per_host = 2});
  std::deque<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server_->port()).Get("/");
    EXPECT_THAT(clients.back().ReadTo("hello"), HasSubstr("hello"));
  }
  Client third(server_->port());
  third.Get("/");
  clients.pop_front();
  EXPECT_THAT(third.ReadTo("hello"), HasSubstr("hello"));
}
TEST_F(MicrohttpdServerTest, ThousandConnectionsOfOneAddressHarmNobody) {
  Serve({.connections_per_host = 8});
  {
    std::deque<Client> clients;
    for (int i = 0; i < 1000; ++i) clients.emplace_back(server_->port()).Get("/");
  }
  EXPECT_TRUE(Eventually([&] {
    Client next(server_->port());
    next.Get("/");
    return next.ReadTo("hello") != "";
  }));
}
TEST_F(MicrohttpdServerTest, AClientThatSaysNothingIsCut) {
  Serve({.patience = std::chrono::seconds(1)});
  Client client(server_->port());
  client.Send("GET / HT");
  EXPECT_THAT(client.ReadAll(), Not(HasSubstr("hello")));
}
TEST_F(MicrohttpdServerTest, AReaderThatDoesNotReadIsCut) {
  Serve({.patience = std::chrono::seconds(1)});
  Client client(server_->port());
  client.Get("/stream");
  const auto stream = Stream();
  stream->Write(std::string(32 << 20, 'x'));  // more than the kernel takes
  EXPECT_TRUE(Eventually([&] { return stream->HasEnded(); }));
}
TEST_F(MicrohttpdServerTest, AnAnswerThatIsTakenForTooLongIsCut) {
  Serve({.patience = std::chrono::hours(1), .longest_answer = std::chrono::minutes(5)});
  Client client(server_->port());
  client.Get("/large");
  client.ReadTo("xxx");  // it has come so far
  Time now{};
  server_->CutSlow(now);
  server_->CutSlow(now += std::chrono::seconds(299));
  EXPECT_EQ(large_.use_count(), 2);
  server_->CutSlow(now += std::chrono::seconds(1));
  ASSERT_TRUE(Eventually([&] { return large_.use_count() == 1; }));
  EXPECT_LT(client.ReadAll().size(), large_->size());
}
TEST_F(MicrohttpdServerTest, AConnectionHasThatTimeForEachAnswer) {
  Serve();
  Client client(server_->port());
  Time now{};
  for (int i = 0; i < 3; ++i) {
    client.Get("/large");
    client.ReadTo("xxx");
    server_->CutSlow(now);
    server_->CutSlow(now += std::chrono::seconds(299));
    client.Drop(large_->size() - 3);
    client.Get("/");
    EXPECT_THAT(client.ReadTo("hello"), HasSubstr(" 200 OK\r\n"));
  }
}
TEST_F(MicrohttpdServerTest, AConnectionHasItsTimeForEachQuestionWhereAnswersHaveNoBody) {
  Serve();
  Client client(server_->port());
  Time now{};
  for (int i = 0; i < 4; ++i) {
    client.Get("/same");
    EXPECT_THAT(client.ReadTo("\r\n\r\n"), HasSubstr(" 304 ")) << i;
    server_->CutSlow(now);
    server_->CutSlow(now += std::chrono::seconds(40));
  }
}
TEST_F(MicrohttpdServerTest, AStreamIsNotCutHoweverLongItIsTaken) {
  Serve();
  Client client(server_->port());
  client.Get("/stream");
  const auto stream = Stream();
  for (int i = 0; i < 3; ++i) server_->CutSlow(Time{} + i * std::chrono::hours(1));
  stream->Write("news");
  EXPECT_THAT(client.ReadTo("news"), HasSubstr("news"));
}

TEST_F(MicrohttpdServerTest, WhoAsksTooSlowlyIsCut) {
  Serve();
  Client silent(server_->port()), slow(server_->port()), after(server_->port());
  slow.Send("GET / HTTP/1.1\r\nHost: loc");
  after.Get("/");
  after.ReadTo("hello");
  EXPECT_TRUE(Eventually([&] { return Requests() == 1; }));
  server_->CutSlow(Time{});
  slow.Send("alhost\r\nX-More: 1");
  server_->CutSlow(Time{} + std::chrono::seconds(60));
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(slow.ReadAll(), "");
}

TEST(HttpServerTest, OnlyTheLoopbacksAddressesAreServedWithoutTls) {
  for (const char* good : {"127.0.0.1:7480", "127.0.0.2:1", "[::1]:7480", "127.0.0.1:0"}) {
    EXPECT_EQ(ProblemOfAddress(good, false), "") << good;
    EXPECT_TRUE(IsLoopback(good)) << good;
  }
  for (const char* bad : {"0.0.0.0:7480", "10.0.0.1:7480", "[::]:7480", "[::ffff:10.0.0.1]:7480"}) {
    EXPECT_THAT(ProblemOfAddress(bad, false), HasSubstr("nothing goes over a network without TLS")) << bad;
    EXPECT_EQ(ProblemOfAddress(bad, true), "") << bad;
    EXPECT_FALSE(IsLoopback(bad)) << bad;
  }
  for (const char* bad :
       {"", "7480", ":7480", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:+1", "127.0.0.1: 1", "::1:7480", "[]:7480", "[::1:7480", "localhost:7480"}) {
    for (const bool tls : {false, true})
      EXPECT_THAT(ProblemOfAddress(bad, tls), HasSubstr("expected 127.0.0.1:PORT or [::1]:PORT")) << bad;
    EXPECT_FALSE(IsLoopback(bad)) << bad;
  }
}
TEST(HttpServerTest, APortThatIsTakenIsSaid) {
  const HttpHandler none = [](const HttpRequest&) { return HttpResponse(); };
  const auto first = HttpServer::Listen({.address = "127.0.0.1:0"}, none);
  ASSERT_TRUE(first.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(HttpServer::Listen({.address = address}, none).status().message(),
              HasSubstr(absl::StrCat("listen on ", address)));
}

}  // namespace
}  // namespace siding::page
