#include "controller/platform/kubernetes/client/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/line_splitter.h"
#include "controller/platform/kubernetes/client/token.h"

namespace siding::kubernetes {
namespace {

// One connection at a time, kept for the next call by the multi handle.
struct Channel {
  Channel() : multi(curl_multi_init()), easy(curl_easy_init()) {}
  ~Channel() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    if (multi != nullptr) curl_multi_cleanup(multi);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  CURLM* const multi;
  CURL* const easy;
};

class Headers {
 public:
  ~Headers() { curl_slist_free_all(list_); }
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void Add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// One answer while it comes.
struct Incoming {
  const CurlLimits& limits;
  LineSplitter* lines = nullptr;  // of a stream
  HttpResponse response;
  absl::Status refused;  // why we wanted no more
  std::chrono::steady_clock::time_point heard = limits.now();
};

size_t OnHeader(char* data, size_t size, size_t count, void* to) {
  Incoming& incoming = *static_cast<Incoming*>(to);
  const absl::string_view line(data, size * count);
  incoming.heard = incoming.limits.now();
  if (absl::StartsWith(line, "HTTP/")) {
    incoming.response.headers.clear();  // of a "100 Continue" before
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos && incoming.response.headers.size() < 100) {
    incoming.response.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return line.size();
}

struct Receiver {
  Incoming& incoming;
  CURL* easy;
};

size_t OnBody(char* data, size_t size, size_t count, void* to) {
  const Receiver& receiver = *static_cast<Receiver*>(to);
  Incoming& incoming = receiver.incoming;
  const absl::string_view piece(data, size * count);
  incoming.heard = incoming.limits.now();
  long code = 0;
  curl_easy_getinfo(receiver.easy, CURLINFO_RESPONSE_CODE, &code);
  if (incoming.lines != nullptr && code == 200) {
    incoming.refused = incoming.lines->Add(piece);
  } else if (incoming.response.body.size() + piece.size() > incoming.limits.answer) {
    incoming.refused = absl::ResourceExhaustedError(
        absl::StrCat("the answer is longer than ", incoming.limits.answer, " bytes"));
  } else {
    incoming.response.body.append(piece.data(), piece.size());
  }
  return incoming.refused.ok() ? piece.size() : 0;
}

curl_blob BlobOf(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

absl::Status StatusOf(CURLcode code) {
  const char* words = curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(words);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_INITFAILED:
      return absl::FailedPreconditionError(words);
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(words);
    default:
      return absl::UnavailableError(words);
  }
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(ServerSettings settings, CurlLimits limits)
      : settings_(std::move(settings)), limits_(std::move(limits)), token_(settings_.token) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    return WithToken(request, nullptr, stop);
  }
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                      std::stop_token stop) override {
    return WithToken(request, &reader, stop);
  }

 private:
  absl::StatusOr<HttpResponse> WithToken(const HttpRequest& request, const LineReader* reader,
                                         const std::stop_token& stop) {
    SIDING_ASSIGN_OR_RETURN(std::string token, token_.Get());
    absl::StatusOr<HttpResponse> response = Once(request, token, reader, stop);
    if (response.ok() && response->code == 401 && token_.Renew(token)) {
      SIDING_ASSIGN_OR_RETURN(token, token_.Get());
      response = Once(request, token, reader, stop);
    }
    return response;
  }

  absl::StatusOr<HttpResponse> Once(const HttpRequest& request, const std::string& token,
                                    const LineReader* reader, const std::stop_token& stop) {
    std::unique_ptr<Channel> channel = Take();
    if (channel->easy == nullptr || channel->multi == nullptr) {
      return absl::ResourceExhaustedError("libcurl has no memory");
    }
    std::optional<LineSplitter> lines;
    if (reader != nullptr) lines.emplace(*reader, limits_.line);
    Incoming incoming{.limits = limits_, .lines = lines ? &*lines : nullptr};
    Receiver receiver{incoming, channel->easy};
    Headers headers;
    headers.Add("Accept: application/json");
    headers.Add("Expect:");  // no "100-continue": bodies are small
    if (!request.content_type.empty()) headers.Add("Content-Type: " + request.content_type);
    if (!token.empty()) headers.Add("Authorization: Bearer " + token);
    Prepare(request, headers, receiver);
    const absl::Status done = Perform(*channel, request, incoming, reader != nullptr, stop);
    long code = 0;
    curl_easy_getinfo(channel->easy, CURLINFO_RESPONSE_CODE, &code);
    Give(std::move(channel));
    if (!done.ok()) return Annotate(done, absl::StrCat(ToString(request.method), " ", request.path));
    incoming.response.code = static_cast<int>(code);
    return std::move(incoming.response);
  }

  void Prepare(const HttpRequest& request, const Headers& headers, Receiver& receiver) const {
    CURL* easy = receiver.easy;
    curl_easy_reset(easy);  // keeps connections
    curl_easy_setopt(easy, CURLOPT_URL, (settings_.url + TargetOf(request)).c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    const auto connect = std::chrono::ceil<std::chrono::milliseconds>(limits_.connect);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count()));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, std::string(ToString(request.method)).c_str());
    if (!request.body.empty()) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    }
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &receiver.incoming);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &receiver);
    Trust(easy);
  }

  void Trust(CURL* easy) const {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (!settings_.authority.empty()) {
      // The machine's folder of authorities would be believed beside this one.
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
      const curl_blob authority = BlobOf(settings_.authority);
      curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &authority);
    }
    if (settings_.key.empty()) return;
    const curl_blob certificate = BlobOf(settings_.certificate);
    const curl_blob key = BlobOf(settings_.key);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
  }

  static absl::Status Perform(Channel& channel, const HttpRequest& request, Incoming& incoming, bool stream,
                              const std::stop_token& stop) {
    if (curl_multi_add_handle(channel.multi, channel.easy) != CURLM_OK) {
      return absl::UnavailableError("libcurl cannot begin");
    }
    absl::Status status;
    {
      // Gone before the channel is another call's.
      std::stop_callback waker(stop, [&] { curl_multi_wakeup(channel.multi); });
      status = Drive(channel, request, incoming, stream, stop);
    }
    curl_multi_remove_handle(channel.multi, channel.easy);
    // The reader has what it wanted.
    return stream && absl::IsCancelled(incoming.refused) ? absl::OkStatus() : status;
  }

  static absl::Status Drive(Channel& channel, const HttpRequest& request, Incoming& incoming, bool stream,
                            const std::stop_token& stop) {
    const auto end = incoming.limits.now() + request.limit;
    for (;;) {
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      int running = 0;
      if (curl_multi_perform(channel.multi, &running) != CURLM_OK) {
        return absl::UnavailableError("libcurl cannot go on");
      }
      if (!incoming.refused.ok()) return incoming.refused;
      if (running == 0) {
        int left = 0;
        const CURLMsg* message = curl_multi_info_read(channel.multi, &left);
        return StatusOf(message != nullptr ? message->data.result : CURLE_FAILED_INIT);
      }
      const auto now = incoming.limits.now();
      const auto until = stream ? std::min(end, incoming.heard + request.silence) : end;
      if (now >= until) {
        return absl::DeadlineExceededError(until == end ? "no whole answer in time" : "the stream is silent");
      }
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - now);
      const auto wait = std::min(rest, std::chrono::milliseconds(1000));
      curl_multi_poll(channel.multi, nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
  }

  std::unique_ptr<Channel> Take() {
    MutexLock lock(mutex_);
    if (idle_.empty()) return std::make_unique<Channel>();
    std::unique_ptr<Channel> channel = std::move(idle_.back());
    idle_.pop_back();
    return channel;
  }
  void Give(std::unique_ptr<Channel> channel) {
    curl_easy_reset(channel->easy);  // nothing of this call stays, its token least of all
    MutexLock lock(mutex_);
    if (idle_.size() < 8) idle_.push_back(std::move(channel));
  }

  const ServerSettings settings_;
  const CurlLimits limits_;
  TokenSource token_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Channel>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> NewCurlTransport(ServerSettings settings, CurlLimits limits) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return absl::FailedPreconditionError("libcurl does not work here");
  if (!absl::StartsWith(settings.url, "https://")) {
    return absl::InvalidArgumentError("the API server's address: expected https://HOST:PORT");
  }
  return std::make_unique<CurlTransport>(std::move(settings), std::move(limits));
}

}  // namespace siding::kubernetes
