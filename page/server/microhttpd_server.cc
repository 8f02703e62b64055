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

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/limited_log.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"
#include "page/server/http.h"
#include "page/server/loopback.h"

namespace siding::page {
namespace {

constexpr size_t kMemory = 16 << 10;  // of a connection, with its request's headers
constexpr size_t kAtOnce = 16 << 10;  // of a stream's bytes
constexpr int kBacklog = 128;
constexpr Duration kLastAnswers = std::chrono::seconds(5);

// An address and a port of this machine alone.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};
absl::StatusOr<Endpoint> ParseLoopback(const std::string& text) {
  const absl::Status problem = absl::InvalidArgumentError(absl::StrCat(
      "'", text, "'; expected 127.0.0.1:PORT or [::1]:PORT: nothing goes over a network without TLS"));
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 ||
      port > 65535 || !absl::ascii_isdigit(text[colon + 1]))
    return problem;
  const std::string host = text.substr(0, colon);
  Endpoint endpoint;
  if (host == "[::1]") {
    auto& address = reinterpret_cast<sockaddr_in6&>(endpoint.address);
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    endpoint.size = sizeof(address);
    return endpoint;
  }
  auto& address = reinterpret_cast<sockaddr_in&>(endpoint.address);
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  endpoint.size = sizeof(address);
  const std::optional<in_addr> own = LoopbackOf(host);
  if (!own) return problem;
  address.sin_addr = *own;
  return endpoint;
}

absl::StatusOr<UniqueFd> ListenAt(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseLoopback(text));
  UniqueFd socket(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket.valid() || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
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

// The sockets that are open, and since when those that are taking an answer do.
//
// A request that is refused by libmicrohttpd itself (0.9.75) while its daemon stops ends the process: the
// refusal is not queued any more, and written nevertheless. So connections are at their end before it stops.
class Connections {
 public:
  static void Note(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    if (const int socket = SocketOf(connection); socket >= 0)
      static_cast<Connections*>(self)->Change(socket, what == MHD_CONNECTION_NOTIFY_STARTED);
  }
  // What has come is answered, if that takes no longer than a moment; nothing more comes.
  void CutAll() {
    MutexLock lock(mutex_);
    cut_ = true;
    for (const auto& [socket, answer] : open_) shutdown(socket, SHUT_RDWR);
    closed_.WaitFor(mutex_, kLastAnswers,
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_.empty(); });
  }
  // -1: there is none.
  static int SocketOf(MHD_Connection* connection) {
    const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? -1 : info->connect_fd;
  }
  void BeginAnswer(int socket) { SetAnswer(socket, {.taken = true}); }
  void EndAnswer(int socket) { SetAnswer(socket, {}); }
  void CutSlow(Time now, Duration longest) {
    MutexLock lock(mutex_);
    for (auto& [socket, answer] : open_) {
      if (!answer.taken) continue;
      if (!answer.since) answer.since = now;
      if (now - *answer.since >= longest) shutdown(socket, SHUT_RDWR);
    }
  }

 private:
  struct Answer {
    bool taken = false;         // there is one that is being taken
    std::optional<Time> since;  // that was seen
  };

  void SetAnswer(int socket, const Answer& answer) {
    MutexLock lock(mutex_);
    if (const auto found = open_.find(socket); found != open_.end()) found->second = answer;
  }
  // Before a socket is closed: its number may be another one's afterwards.
  void Change(int socket, bool opened) {
    MutexLock lock(mutex_);
    if (opened)
      open_[socket] = {};
    else
      open_.erase(socket);
    if (opened && cut_) shutdown(socket, SHUT_RDWR);
    closed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar closed_;
  std::map<int, Answer> open_ ABSL_GUARDED_BY(mutex_);
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
    SIDING_ASSIGN_OR_RETURN(UniqueFd socket, ListenAt(options.address));
    port_ = PortOf(socket.get());
    longest_answer_ = options.longest_answer;
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
        &Handle, this, MHD_OPTION_EXTERNAL_LOGGER, &Log,
        this,                                    // the first, so that it has the others' complaints
        MHD_OPTION_LISTEN_SOCKET, socket.get(),  //
        MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(options.connections),                  //
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, static_cast<unsigned>(options.connections_per_host),  //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMemory,                                              //
        MHD_OPTION_CONNECTION_TIMEOUT,
        static_cast<unsigned>(std::chrono::duration_cast<std::chrono::seconds>(options.patience).count()),
        MHD_OPTION_NOTIFY_CONNECTION, &Connections::Note, &connections_, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        // Escapes are read by whoever knows what was expected.
        MHD_OPTION_UNESCAPE_CALLBACK, &LeaveEscapes, nullptr, MHD_OPTION_END);
    if (daemon_ == nullptr)
      return absl::InternalError(
          absl::StrCat("listen on ", options.address, ": libmicrohttpd does not start"));
    socket.Release();  // it is the daemon's
    return absl::OkStatus();
  }
  void CutSlow(Time now) override { connections_.CutSlow(now, longest_answer_); }
  int port() const override { return port_; }

 private:
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
                           const char*, const char*, size_t* size, void** seen) {
    auto* const server = static_cast<MicrohttpdServer*>(self);
    // The first call comes with the headers. An answer to it closes the connection, so that only what has a
    // body, which nobody wants to read, is answered then.
    if (std::exchange(*seen, self) == nullptr)
      return HasBody(connection) ? server->Answer(connection, url, method, true) : MHD_YES;
    return *size == 0 ? server->Answer(connection, url, method, false) : MHD_NO;
  }

  static bool HasBody(MHD_Connection* connection) {
    const char* const length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length != nullptr && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING) !=
               nullptr;
  }

  MHD_Result Answer(MHD_Connection* connection, const char* url, const char* method, bool has_body) {
    HttpRequest request{.method = method,
                        .path = url,
                        .query = FieldsOf(connection, MHD_GET_ARGUMENT_KIND),
                        .headers = FieldsOf(connection, MHD_HEADER_KIND),
                        .has_body = has_body};
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
          owned->connections.EndAnswer(owned->socket);
        },
        given.get());
    if (raw == nullptr) return nullptr;
    connections_.BeginAnswer(given->socket);
    given.release();
    return raw;
  }

  MHD_Response* Streamed(MHD_Connection* connection, std::shared_ptr<ByteStream> stream) {
    auto taker = std::make_unique<Taker>(Taker{*this, connection, stream});
    MHD_Response* const raw =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kAtOnce, &Take, taker.get(), [](void* gone) {
          const std::unique_ptr<Taker> owned(static_cast<Taker*>(gone));
          owned->server.Forget(owned->stream);
        });
    if (raw == nullptr) {
      stream->End();
      return nullptr;
    }
    taker.release();
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
  Connections connections_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
  Duration longest_answer_{};
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

std::string ProblemOfAddress(const std::string& address) {
  return std::string(ParseLoopback(address).status().message());
}

std::string AddressForBrowsers(const std::string& address) {
  return address.empty() || absl::EndsWith(address, ":0") ? "" : absl::StrCat("http://", address);
}

}  // namespace siding::page
