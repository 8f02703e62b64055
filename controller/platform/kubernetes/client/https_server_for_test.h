// A tiny HTTPS server on loopback, for tests of what speaks HTTP: it answers as a function says, which may
// send anything, and anything slowly.
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/mutex.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {

class HttpsServer {
 public:
  // One request's connection. It is closed after the function.
  class Connection {
   public:
    Connection(SSL* ssl, std::string request, std::function<void()> stall)
        : request(std::move(request)), Stall(std::move(stall)), ssl_(ssl) {}
    void Send(const std::string& text) const { SSL_write(ssl_, text.data(), static_cast<int>(text.size())); }
    void Answer(int code, const std::string& body) const {
      Send(absl::StrCat("HTTP/1.1 ", code, " X\r\nContent-Length: ", body.size(),
                        "\r\nConnection: close\r\n\r\n", body));
    }
    void BeginChunks() const { Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
    void Chunk(const std::string& text) const {
      Send(absl::StrCat(absl::Hex(text.size()), "\r\n", text, "\r\n"));
    }

    const std::string request;          // head and body
    const std::function<void()> Stall;  // returns when the server is about to end

   private:
    SSL* const ssl_;
  };
  using Answerer = std::function<void(const Connection&)>;

  // With the server's certificate and key, in PEM. `authority`: whom clients' certificates must be from.
  HttpsServer(const std::string& certificate, const std::string& key, Answerer answer,
              const std::string& authority = "")
      : answer_(std::move(answer)), context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    signal(SIGPIPE, SIG_IGN);  // clients go away as they like
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM), 1);
    if (!authority.empty()) {
      EXPECT_EQ(SSL_CTX_load_verify_locations(context_.get(), authority.c_str(), nullptr), 1);
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~HttpsServer() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    stop_.NotifyAll();
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
  }
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  std::string url() const { return absl::StrCat("https://127.0.0.1:", port_); }

 private:
  void Accept() {
    for (;;) {
      UniqueFd fd(accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      {
        MutexLock lock(mutex_);
        if (stopping_) return;
        open_.push_back(fd.get());
      }
      threads_.emplace_back([this, fd = fd.Release()] { Serve(fd); });
    }
  }
  void Serve(int fd) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
    SSL_set_fd(ssl.get(), fd);
    if (SSL_accept(ssl.get()) == 1) {
      const std::string request = Read(ssl.get());
      if (!request.empty()) {
        answer_(Connection(ssl.get(), request, [this] {
          MutexLock lock(mutex_);
          stop_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
        }));
        SSL_shutdown(ssl.get());
      }
    }
    MutexLock lock(mutex_);
    std::erase(open_, fd);
    close(fd);
  }
  static std::string Read(SSL* ssl) {
    std::string request;
    char piece[4096];
    for (;;) {
      const size_t head = request.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t field = request.find("Content-Length: ");
        size_t body = 0;
        if (field != std::string::npos) {
          const size_t value = field + 16;
          EXPECT_TRUE(absl::SimpleAtoi(request.substr(value, request.find('\r', value) - value), &body));
        }
        if (request.size() >= head + 4 + body) return request;
      }
      const int got = SSL_read(ssl, piece, sizeof piece);
      if (got <= 0) return "";
      request.append(piece, static_cast<size_t>(got));
    }
  }

  const Answerer answer_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  const UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // of the acceptor
  Mutex mutex_;
  CondVar stop_;
  std::vector<int> open_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding::kubernetes
