// HttpServer by libmicrohttpd.
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/limited_log.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"
#include "page/server/http.h"
#include "page/server/loopback.h"
#include "page/server/tls.h"

namespace siding::page {
namespace {

constexpr size_t kMemory = 16 << 10;  // of a connection, with its request's headers
constexpr size_t kAtOnce = 16 << 10;  // of a stream's bytes
constexpr int kBacklog = 128;
constexpr Duration kLastAnswers = std::chrono::seconds(5);

// Where to listen.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  bool loopback = false;  // of this machine alone
};
absl::StatusOr<Endpoint> ParseAddress(const std::string& text) {
  const absl::Status problem =
      absl::InvalidArgumentError(absl::StrCat("'", text,
                                              "'; expected 127.0.0.1:PORT or [::1]:PORT, or with TLS any "
                                              "other IP address of this machine, such as 0.0.0.0:PORT"));
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 ||
      port > 65535 || !absl::ascii_isdigit(text[colon + 1]))
    return problem;
  const std::string host = text.substr(0, colon);
  Endpoint endpoint;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto& address = reinterpret_cast<sockaddr_in6&>(endpoint.address);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    endpoint.size = sizeof(address);
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address.sin6_addr) != 1) return problem;
    endpoint.loopback = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
    return endpoint;
  }
  auto& address = reinterpret_cast<sockaddr_in&>(endpoint.address);
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  endpoint.size = sizeof(address);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return problem;
  endpoint.loopback = LoopbackOf(host).has_value();
  return endpoint;
}
absl::StatusOr<Endpoint> ParseAddress(const std::string& text, bool tls) {
  SIDING_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseAddress(text));
  if (tls || endpoint.loopback) return endpoint;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "'; expected 127.0.0.1:PORT or [::1]:PORT, or tls.ca, tls.certificate and tls.key with it: nothing "
      "goes over a network without TLS"));
}

absl::StatusOr<UniqueFd> ListenAt(const std::string& text, bool tls) {
  SIDING_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseAddress(text, tls));
  const bool six = endpoint.address.ss_family == AF_INET6;
  UniqueFd socket(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  if (!socket.valid() || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      (six && setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) != 0 ||
      listen(socket.get(), kBacklog) != 0)
    return ErrnoError(errno, absl::StrCat("listen on ", text));
  return socket;
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string AddressOf(MHD_Connection* connection) {
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (info->client_addr->sa_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(*info->client_addr);
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    return text;
  }
  const auto& address = reinterpret_cast<const sockaddr_in6&>(*info->client_addr);
  // One of IPv4 that came to a socket of both is its last four bytes.
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr))
    inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text, sizeof(text));
  else
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
  return text;
}

// nullptr: it is without TLS.
gnutls_session_t SessionOf(MHD_Connection* connection) {
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return info == nullptr ? nullptr : static_cast<gnutls_session_t>(info->tls_session);
}

HttpPeer PeerOf(MHD_Connection* connection) {
  HttpPeer peer{.address = AddressOf(connection)};
  if (gnutls_session_t session = SessionOf(connection); session != nullptr) {
    peer.tls = true;
    peer.certificate = UrisShown(session);
  }
  return peer;
}

HttpFields FieldsOf(MHD_Connection* connection, MHD_ValueKind kind) {
  HttpFields fields;
  MHD_get_connection_values_n(
      connection, kind,
      [](void* to, MHD_ValueKind, const char* name, size_t name_size, const char* value, size_t value_size) {
        static_cast<HttpFields*>(to)->emplace_back(std::string(name, name_size),
                                                   value == nullptr ? "" : std::string(value, value_size));
        return MHD_YES;
      },
      &fields);
  return fields;
}

// The sockets that are open, what each of them is at, and since when.
//
// A request that is refused by libmicrohttpd itself (0.9.75) while its daemon stops ends the process: the
// refusal is not queued any more, and written nevertheless. So connections are at their end before it stops.
class Connections {
 public:
  // `held` lives as long as the connection.
  void Open(int socket, std::shared_ptr<void> held) {
    MutexLock lock(mutex_);
    open_[socket] = {.held = std::move(held)};
    if (cut_) shutdown(socket, SHUT_RDWR);
  }
  // Before a socket is closed: its number may be another one's afterwards.
  void Close(int socket) {
    MutexLock lock(mutex_);
    open_.erase(socket);
    closed_.NotifyAll();
  }
  // What has come is answered, if that takes no longer than a moment; nothing more comes.
  void CutAll() {
    MutexLock lock(mutex_);
    cut_ = true;
    for (const auto& [socket, connection] : open_) shutdown(socket, SHUT_RDWR);
    closed_.WaitFor(mutex_, kLastAnswers,
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_.empty(); });
  }
  // -1: there is none.
  static int SocketOf(MHD_Connection* connection) {
    const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? -1 : info->connect_fd;
  }
  void BeginAnswer(int socket) { Set(socket, At::kAnswer); }
  void BeginStream(int socket) { Set(socket, At::kStream); }
  void End(int socket) { Set(socket, At::kQuestion); }
  void CutSlow(Time now, Duration question, Duration answer) {
    MutexLock lock(mutex_);
    for (auto& [socket, connection] : open_) {
      if (connection.at == At::kStream) continue;
      if (!connection.since) connection.since = now;
      if (now - *connection.since >= (connection.at == At::kAnswer ? answer : question))
        shutdown(socket, SHUT_RDWR);
    }
  }

 private:
  // A question: until it has come whole; the first one's begins with the handshake.
  enum class At { kQuestion, kAnswer, kStream };
  struct Connection {
    std::shared_ptr<void> held;
    At at = At::kQuestion;
    std::optional<Time> since;  // that was seen
  };

  void Set(int socket, At at) {
    MutexLock lock(mutex_);
    const auto found = open_.find(socket);
    if (found == open_.end()) return;
    found->second.at = at;
    found->second.since.reset();
  }

  Mutex mutex_;
  CondVar closed_;
  std::map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
};

class MicrohttpdServer;

// A response's body, and the socket by which it is taken.
struct Given {
  Connections& connections;
  const int socket;
  const std::shared_ptr<const std::string> body;
};

// A response's stream, and the connection that takes it.
struct Taker {
  MicrohttpdServer& server;
  MHD_Connection* const connection;
  const int socket;
  const std::shared_ptr<ByteStream> stream;
};

class MicrohttpdServer final : public HttpServer {
 public:
  explicit MicrohttpdServer(HttpHandler handler) : handler_(std::move(handler)) {}
  ~MicrohttpdServer() override {
    if (daemon_ == nullptr) return;
    const UniqueFd listening(MHD_quiesce_daemon(daemon_));
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      for (const auto& stream : streams_) stream->End();
    }
    connections_.CutAll();
    MHD_stop_daemon(daemon_);
  }

  absl::Status Start(const HttpOptions& options) {
    if (options.tls) {
      SIDING_ASSIGN_OR_RETURN(tls_,
                              ServerTls::Open(*options.tls, options.ask_for_certificates, SystemClock()));
    }
    SIDING_ASSIGN_OR_RETURN(UniqueFd socket, ListenAt(options.address, tls_ != nullptr));
    port_ = PortOf(socket.get());
    longest_answer_ = options.longest_answer;
    longest_body_ = options.longest_body;
    longest_question_ = options.longest_question;
    std::vector<MHD_OptionItem> tls;
    if (tls_ != nullptr) {
      const auto text = [](const char* value) { return const_cast<char*>(value); };
      // It wants these to begin with; each connection has its own.
      tls = {{MHD_OPTION_HTTPS_MEM_CERT, 0, text(tls_->first().certificate.c_str())},
             {MHD_OPTION_HTTPS_MEM_KEY, 0, text(tls_->first().key.c_str())},
             {MHD_OPTION_HTTPS_PRIORITIES, 0, text(ServerTls::kVersions)}};
    }
    tls.push_back({MHD_OPTION_END, 0, nullptr});
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (tls_ == nullptr ? 0u : static_cast<unsigned>(MHD_USE_TLS)),
        0, nullptr, nullptr, &Handle, this, MHD_OPTION_EXTERNAL_LOGGER, &Log,
        this,                                    // the first, so that it has the others' complaints
        MHD_OPTION_LISTEN_SOCKET, socket.get(),  //
        MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(options.connections),                  //
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, static_cast<unsigned>(options.connections_per_host),  //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMemory,                                              //
        MHD_OPTION_CONNECTION_TIMEOUT,
        static_cast<unsigned>(std::chrono::duration_cast<std::chrono::seconds>(options.patience).count()),
        MHD_OPTION_NOTIFY_CONNECTION, &Note, this, MHD_OPTION_STRICT_FOR_CLIENT, 1,  //
        MHD_OPTION_NOTIFY_COMPLETED, &Forgotten, nullptr,                            //
        MHD_OPTION_ARRAY, tls.data(),
        // Escapes are read by whoever knows what was expected.
        MHD_OPTION_UNESCAPE_CALLBACK, &LeaveEscapes, nullptr, MHD_OPTION_END);
    if (daemon_ == nullptr)
      return absl::InternalError(
          absl::StrCat("listen on ", options.address, ": libmicrohttpd does not start"));
    socket.Release();  // it is the daemon's
    return absl::OkStatus();
  }
  void CutSlow(Time now) override { connections_.CutSlow(now, longest_question_, longest_answer_); }
  int port() const override { return port_; }

 private:
  static void Note(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<MicrohttpdServer*>(self);
    const int socket = Connections::SocketOf(connection);
    if (socket < 0) return;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) return server.connections_.Close(socket);
    gnutls_session_t session = SessionOf(connection);
    server.connections_.Open(socket, session == nullptr ? nullptr : server.tls_->Begin(session));
  }

  static size_t LeaveEscapes(void*, MHD_Connection*, char* text) { return strlen(text); }

  static void Log(void* self, const char* format, va_list arguments) {
    char line[512];
    vsnprintf(line, sizeof(line), format, arguments);
    const std::string said = absl::StrCat("page: ", absl::StripTrailingAsciiWhitespace(line));
    // That a client goes in the middle of an answer is nothing to warn of.
    if (absl::StrContains(said, "connection limit"))
      static_cast<MicrohttpdServer*>(self)->log_.Warn("the page's connections", said);
    else
      spdlog::debug("{}", said);
  }

  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                           const char*, const char* bytes, size_t* size, void** seen) {
    auto* const server = static_cast<MicrohttpdServer*>(self);
    auto* const body = static_cast<std::string*>(*seen);
    // The first call comes with the headers. An answer to it closes the connection, so that only what has a
    // body that nobody wants to read is answered then.
    if (body == nullptr) {
      *seen = new std::string;
      if (!HasBody(connection)) return MHD_YES;
      if (!server->Reads(connection, method)) return server->Answer(connection, url, method, true, "");
      // It has as much time as an answer.
      server->connections_.BeginAnswer(Connections::SocketOf(connection));
      return MHD_YES;
    }
    if (*size == 0) {
      // It has come whole. An answer without a body neither begins nor ends: the next question's time is from
      // here on.
      server->connections_.End(Connections::SocketOf(connection));
      return server->Answer(connection, url, method, false, std::move(*body));
    }
    if (body->size() + *size > server->longest_body_) return MHD_NO;
    body->append(bytes, std::exchange(*size, 0));
    return MHD_YES;
  }
  static void Forgotten(void*, MHD_Connection*, void** seen, MHD_RequestTerminationCode) {
    delete static_cast<std::string*>(std::exchange(*seen, nullptr));
  }

  // Whether its body is read.
  bool Reads(MHD_Connection* connection, const char* method) const {
    const char* const length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    size_t size = 0;
    return strcmp(method, MHD_HTTP_METHOD_POST) == 0 && length != nullptr &&
           absl::SimpleAtoi(length, &size) && size <= longest_body_ &&
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) ==
               nullptr;
  }

  static bool HasBody(MHD_Connection* connection) {
    const char* const length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length != nullptr && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) !=
               nullptr;
  }

  MHD_Result Answer(MHD_Connection* connection, const char* url, const char* method, bool has_body,
                    std::string body) {
    HttpRequest request{.method = method,
                        .path = url,
                        .query = FieldsOf(connection, MHD_GET_ARGUMENT_KIND),
                        .headers = FieldsOf(connection, MHD_HEADER_KIND),
                        .body = std::move(body),
                        .has_body = has_body,
                        .peer = PeerOf(connection)};
    HttpResponse response = handler_(request);
    MHD_Response* const raw =
        response.stream != nullptr ? Streamed(connection, response.stream) : Whole(connection, response.body);
    if (raw == nullptr) return MHD_NO;
    MHD_add_response_header(raw, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
    for (const auto& [name, value] : response.headers)
      MHD_add_response_header(raw, name.c_str(), value.c_str());
    if (has_body) MHD_add_response_header(raw, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(response.status), raw);
    MHD_destroy_response(raw);
    return queued;
  }

  MHD_Response* Whole(MHD_Connection* connection, const std::shared_ptr<const std::string>& body) {
    if (body == nullptr) return MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
    auto given = std::make_unique<Given>(Given{connections_, Connections::SocketOf(connection), body});
    MHD_Response* const raw = MHD_create_response_from_buffer_with_free_callback_cls(
        body->size(), const_cast<char*>(body->data()),
        [](void* gone) {
          const std::unique_ptr<Given> owned(static_cast<Given*>(gone));
          owned->connections.End(owned->socket);
        },
        given.get());
    if (raw == nullptr) return nullptr;
    connections_.BeginAnswer(given->socket);
    (void)given.release();  // the response has it
    return raw;
  }

  MHD_Response* Streamed(MHD_Connection* connection, std::shared_ptr<ByteStream> stream) {
    auto taker = std::make_unique<Taker>(Taker{*this, connection, Connections::SocketOf(connection), stream});
    MHD_Response* const raw =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kAtOnce, &Take, taker.get(), [](void* gone) {
          const std::unique_ptr<Taker> owned(static_cast<Taker*>(gone));
          owned->server.connections_.End(owned->socket);
          owned->server.Forget(owned->stream);
        });
    if (raw == nullptr) {
      stream->End();
      return nullptr;
    }
    connections_.BeginStream(taker->socket);
    (void)taker.release();  // the response has it
    MutexLock lock(mutex_);
    if (stopping_) stream->End();
    streams_.insert(std::move(stream));
    return raw;
  }

  static ssize_t Take(void* to, uint64_t, char* bytes, size_t most) {
    MHD_Connection* const connection = static_cast<Taker*>(to)->connection;
    const ssize_t taken = static_cast<Taker*>(to)->stream->Read(
        bytes, most, [connection] { MHD_suspend_connection(connection); },
        [connection] { MHD_resume_connection(connection); });
    return taken == ByteStream::kEnd ? MHD_CONTENT_READER_END_WITH_ERROR : taken;
  }

  void Forget(const std::shared_ptr<ByteStream>& stream) {
    stream->End();
    MutexLock lock(mutex_);
    streams_.erase(stream);
  }

  const HttpHandler handler_;
  LimitedLog log_;
  std::unique_ptr<ServerTls> tls_;  // nullptr: without
  Connections connections_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
  Duration longest_answer_{}, longest_question_{};
  size_t longest_body_ = 0;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<ByteStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpOptions& options,
                                                               HttpHandler handler) {
  auto server = std::make_unique<MicrohttpdServer>(std::move(handler));
  SIDING_RETURN_IF_ERROR(server->Start(options));
  return server;
}

std::string ProblemOfAddress(const std::string& address, bool tls) {
  return std::string(ParseAddress(address, tls).status().message());
}
bool IsLoopback(const std::string& address) {
  const auto endpoint = ParseAddress(address);
  return endpoint.ok() && endpoint->loopback;
}

std::string AddressForBrowsers(const std::string& address) {
  return address.empty() || absl::EndsWith(address, ":0") ? "" : absl::StrCat("http://", address);
}

}  // namespace siding::page
