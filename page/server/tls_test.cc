// The real server with TLS, over sockets.
#include "page/server/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>

#include <deque>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "common/tls/openssl.h"
#include "controller/identity/certificate_cases.h"
#include "gmock/gmock.h"
#include "page/server/http.h"
#include "page/server/service_sessions.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

constexpr char kQuestion[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

UniqueFd ConnectTo(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// One that believes every server, and shows the certificate it is given, whatever it is worth.
class TlsClient {
 public:
  explicit TlsClient(int port, const TlsFiles& files = {}, int newest = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())), fd_(ConnectTo(port)) {
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    SSL_CTX_set_security_level(context_.get(), 0);
    if (!files.certificate.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str()), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), fd_.get());
    connected = SSL_connect(session_.get()) == 1;
  }
  ~TlsClient() { ForgetOpensslErrors(); }
  // What is answered up to `end`; all, if there is none.
  std::string Ask(const std::string& question, const std::string& end) {
    if (!connected || SSL_write(session_.get(), question.data(), static_cast<int>(question.size())) <= 0)
      return "";
    std::string text;
    char bytes[4096];
    while (text.find(end) == std::string::npos) {
      const int size = SSL_read(session_.get(), bytes, sizeof(bytes));
      if (size <= 0) break;
      text.append(bytes, static_cast<size_t>(size));
    }
    return text;
  }
  // Of the server's certificate.
  std::string Serial() const {
    const X509Ptr shown(SSL_get1_peer_certificate(session_.get()));
    const OpensslPtr<BIGNUM, BN_free> number(
        ASN1_INTEGER_to_BN(X509_get0_serialNumber(shown.get()), nullptr));
    char* const text = BN_bn2hex(number.get());
    std::string serial = text;
    OPENSSL_free(text);
    return serial;
  }
  bool connected = false;

 private:
  OpensslPtr<SSL_CTX, SSL_CTX_free> context_;
  const UniqueFd fd_;
  OpensslPtr<SSL, SSL_free> session_;
};

class TlsPageTest : public CertificateCases {
 protected:
  TlsPageTest() { signal(SIGPIPE, SIG_IGN); }  // a client writes to one that has gone
  void Serve(bool ask = true) {
    auto server = HttpServer::Listen(
        {.address = "127.0.0.1:0", .tls = Keep("controller", IssueServer()), .ask_for_certificates = ask},
        [this](const HttpRequest& request) {
          const auto reader = ReaderOf(request, {}, true, known_);
          HttpResponse response;
          response.status = reader.ok() ? 200 : 403;
          response.body = std::make_shared<const std::string>(
              absl::StrCat(!reader.ok() ? reader.status().message()
                           : *reader    ? absl::StrCat("uid ", (*reader)->user.uid)
                                        : "a stranger",
                           "!"));
          MutexLock lock(mutex_);
          peers_.push_back(request.peer);
          return response;
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string AskWith(const TlsFiles& files, int newest = TLS1_3_VERSION) {
    return TlsClient(server_->port(), files, newest).Ask(kQuestion, "!");
  }
  HttpPeer Peer() {
    MutexLock lock(mutex_);
    return peers_.empty() ? HttpPeer() : peers_.back();
  }

  Mutex mutex_;
  std::deque<HttpPeer> peers_ ABSL_GUARDED_BY(mutex_);
  const FakeClock clock_;
  KnownUsers known_{clock_};
  std::unique_ptr<HttpServer> server_;
};

// As by gRPC: controller/identity/certificate_identity_test.cc.
TEST_F(TlsPageTest, EachIsWhoHisCertificateSays) {
  Serve();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const CertificateCase& one : Cases()) {
      const std::string answer = AskWith(one.files, version);
      if (one.uid)
        EXPECT_THAT(answer, HasSubstr(absl::StrCat("uid ", *one.uid, "!"))) << one.what;
      else if (!one.refusal.empty())
        EXPECT_THAT(answer, HasSubstr(one.refusal)) << one.what;
      else
        EXPECT_EQ(answer, "") << one.what;
    }
  }
}
TEST_F(TlsPageTest, WhoIsRefusedInTheHandshakeIsInTheLog) {
  Serve();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  AskWith(Keep("other", IssueFor({Kind::kUser, "root"}, other_authority_, kHour, now_)));
  EXPECT_THAT(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(),
              HasSubstr("a client is refused: siding://user/root: it was not issued by a trusted authority"));
}
TEST_F(TlsPageTest, WhoShowsNoneIsAStranger) {
  Serve();
  EXPECT_THAT(AskWith({}), HasSubstr("a stranger!"));
  EXPECT_EQ(Peer().address, "127.0.0.1");
  EXPECT_TRUE(Peer().tls);
  EXPECT_EQ(Peer().certificate, std::nullopt);
}
TEST_F(TlsPageTest, TheHandlerHasTheCertificatesUris) {
  Serve();
  AskWith(Keep("user", Issue(Kind::kUser, "daemon")));
  EXPECT_THAT(Peer().certificate, Optional(ElementsAre("siding://user/daemon")));
}
// With MUNGE users' certificates are not theirs to be known by.
TEST_F(TlsPageTest, WhereNobodyIsAskedForACertificateNoneIsShown) {
  Serve(false);
  EXPECT_THAT(AskWith(Keep("user", Issue(Kind::kUser, "daemon"))), HasSubstr("a stranger!"));
}
TEST_F(TlsPageTest, OldVersionsOfTlsAreRefused) {
  Serve();
  EXPECT_FALSE(TlsClient(server_->port(), {}, TLS1_1_VERSION).connected);
  EXPECT_TRUE(TlsClient(server_->port(), {}, TLS1_2_VERSION).connected);
}
TEST_F(TlsPageTest, ACertificateThatIsRenewedIsUsedAndABrokenOneIsNot) {
  Serve();
  const std::string before = TlsClient(server_->port()).Serial();
  Keep("controller", IssueServer());
  EXPECT_TRUE(Eventually([&] { return TlsClient(server_->port()).Serial() != before; }));
  const std::string renewed = TlsClient(server_->port()).Serial();
  Write("controller.pem", "not one");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string said;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_EQ(TlsClient(server_->port()).Serial(), renewed);
    said += testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    return absl::StrContains(said, "the certificate before is used on");
  }));
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
}
TEST_F(TlsPageTest, AnAuthorityThatIsExchangedIsBelieved) {
  Serve();
  const TlsFiles files = Keep("other", IssueFor({Kind::kUser, "daemon"}, other_authority_, kHour, now_));
  EXPECT_EQ(AskWith(files), "");
  Write("ca.pem", authority_.certificate + other_authority_.certificate);
  EXPECT_THAT(AskWith(files), HasSubstr("uid 1!"));
}
TEST_F(TlsPageTest, WhoSaysNothingOrTooLittleIsCutAndKeepsNobodyWaiting) {
  Serve();
  const UniqueFd silent = ConnectTo(server_->port()), slow = ConnectTo(server_->port());
  const char hello[] = "\x16\x03\x01\x02\x00\x01";  // the beginning of one
  ASSERT_EQ(send(slow.get(), hello, sizeof(hello) - 1, 0), static_cast<ssize_t>(sizeof(hello) - 1));
  EXPECT_THAT(AskWith({}), HasSubstr("a stranger!"));
  server_->CutSlow(Time{});
  server_->CutSlow(Time{} + std::chrono::seconds(59));
  char byte = 0;
  for (const UniqueFd* one : {&silent, &slow})
    EXPECT_EQ(recv(one->get(), &byte, 1, MSG_DONTWAIT), -1) << "it is there still";
  server_->CutSlow(Time{} + std::chrono::seconds(60));
  for (const UniqueFd* one : {&silent, &slow}) {
    while (recv(one->get(), &byte, 1, 0) > 0) {  // an alert may come before the end
    }
  }
  EXPECT_THAT(AskWith({}), HasSubstr("a stranger!"));
}
TEST_F(TlsPageTest, WhoSpeaksPlainHttpIsNotAnswered) {
  Serve();
  const UniqueFd plain = ConnectTo(server_->port());
  ASSERT_GT(send(plain.get(), kQuestion, sizeof(kQuestion) - 1, 0), 0);
  char bytes[256];
  std::string text;
  for (ssize_t size = 0; (size = recv(plain.get(), bytes, sizeof(bytes), 0)) > 0;)
    text.append(bytes, static_cast<size_t>(size));
  EXPECT_EQ(text.find("HTTP"), std::string::npos);
}
TEST_F(TlsPageTest, AServersFilesAreCheckedWhenItBegins) {
  const auto listen = [](const TlsFiles& files) {
    return std::string(HttpServer::Listen({.address = "127.0.0.1:0", .tls = files},
                                          [](const HttpRequest&) { return HttpResponse(); })
                           .status()
                           .message());
  };
  EXPECT_THAT(listen({Path("ca.pem"), "", ""}), HasSubstr("a server needs a certificate"));
  EXPECT_THAT(listen({Path("ca.pem"), Path("gone.pem"), Path("gone.key")}), HasSubstr("gone.pem"));
  EXPECT_THAT(listen(Keep("user", Issue(Kind::kUser, "root"))), HasSubstr("it is not for this purpose"));
}

}  // namespace
}  // namespace siding::page
