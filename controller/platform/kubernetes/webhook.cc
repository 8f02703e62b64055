#include "controller/platform/kubernetes/webhook.h"

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::kubernetes {
namespace {

constexpr size_t kLargestBody = size_t{8}
                                << 20;  // an object and the one before it, of 1.5 MiB each, and more
// A connection has a thread while it is open. Servers keep theirs open, and are asked to come again.
constexpr size_t kThreads = 32;
constexpr time_t kPatience = 5;  // seconds, of a connection that says nothing

// The files of one identity, shown in each handshake as they are then.
class Identity {
 public:
  explicit Identity(const WebhookOptions& options) : certificate_(options.certificate), key_(options.key) {}

  // What is wrong with them now.
  absl::Status Check() const {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                    &SSL_CTX_free);
    if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) != 1)
      return absl::InvalidArgumentError(absl::StrCat(certificate_, ": expected a certificate (PEM)"));
    if (SSL_CTX_use_PrivateKey_file(context.get(), key_.c_str(), SSL_FILETYPE_PEM) != 1)
      return absl::InvalidArgumentError(absl::StrCat(key_, ": expected the key of ", certificate_, " (PEM)"));
    return absl::OkStatus();
  }
  void ShowIn(SSL_CTX& context) const {
    SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
    // OpenSSL does not change what it is given.
    SSL_CTX_set_cert_cb(&context, &Identity::Show, const_cast<Identity*>(this));
  }

 private:
  static int Show(SSL* connection, void* self) {
    const auto* identity = static_cast<const Identity*>(self);
    return SSL_use_certificate_chain_file(connection, identity->certificate_.c_str()) == 1 &&
           SSL_use_PrivateKey_file(connection, identity->key_.c_str(), SSL_FILETYPE_PEM) == 1;
  }

  const std::string certificate_;
  const std::string key_;
};

class HttpsWebhook final : public Webhook {
 public:
  HttpsWebhook(const WebhookOptions& options, Answerer answer)
      : identity_(options), answer_(std::move(answer)), server_([this](SSL_CTX& context) {
          identity_.ShowIn(context);
          return true;
        }) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // Without SO_REUSEPORT, so that nobody else has the port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_payload_max_length(kLargestBody);
    server_.set_read_timeout(kPatience);
    server_.set_write_timeout(kPatience);
    server_.set_keep_alive_timeout(kPatience);
    // Before a body is read: the library reads one without a length, or one that is compressed, however large
    // it becomes. The API server sends none like that.
    server_.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      const bool plain = request.method == "POST" && request.path == "/" &&
                         request.has_header("Content-Length") && !request.has_header("Transfer-Encoding") &&
                         !request.has_header("Content-Encoding");
      if (plain) return httplib::Server::HandlerResponse::Unhandled;
      response.status = 400;
      response.set_header("Connection", "close");
      return httplib::Server::HandlerResponse::Handled;
    });
    server_.Post("/", [this](const httplib::Request& request, httplib::Response& response) {
      const absl::StatusOr<std::string> answer = answer_(request.body);
      response.status = answer.ok() ? 200 : 400;
      response.set_content(answer.ok() ? *answer : std::string(answer.status().message()),
                           answer.ok() ? "application/json" : "text/plain");
    });
  }
  ~HttpsWebhook() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const WebhookOptions& options) {
    SIDING_RETURN_IF_ERROR(identity_.Check());
    port_ = options.port;
    if (options.port == 0) port_ = server_.bind_to_any_port(options.address);
    if (port_ < 0 || (options.port != 0 && !server_.bind_to_port(options.address, options.port)))
      return absl::UnavailableError(absl::StrCat("cannot listen at ", options.address, ":", options.port));
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    // A stop before that would not be heard.
    while (!server_.is_running() && !ended_) std::this_thread::yield();
    return absl::OkStatus();
  }
  int port() const override { return port_; }

 private:
  const Identity identity_;
  const Answerer answer_;
  httplib::SSLServer server_;
  int port_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Webhook>> Webhook::Start(const WebhookOptions& options, Answerer answer) {
  auto webhook = std::make_unique<HttpsWebhook>(options, std::move(answer));
  SIDING_RETURN_IF_ERROR(webhook->Listen(options));
  return webhook;
}

}  // namespace siding::kubernetes
