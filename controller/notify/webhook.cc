#include "controller/notify/webhook.h"

#include <curl/curl.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <chrono>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/units.h"

namespace siding {
namespace {

constexpr long kConnectMs = 5'000;
constexpr long kCallMs = 30'000;
constexpr char kTimestamp[] = "Siding-Timestamp";
constexpr char kSignature[] = "Siding-Signature";

absl::StatusOr<std::string> ToJson(const std::vector<v1::Event>& events) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::vector<std::string> all;
  for (const v1::Event& event : events) {
    const auto made = google::protobuf::util::MessageToJsonString(event, &all.emplace_back(), options);
    if (!made.ok())
      return absl::InternalError(absl::StrCat("event ", event.seq(), " cannot be written as JSON"));
  }
  return absl::StrCat("[", absl::StrJoin(all, ","), "]");
}

class Webhook final : public Receiver {
 public:
  Webhook(HttpPost post, std::string secret, std::string cluster, const Clock& clock)
      : post_(std::move(post)), secret_(std::move(secret)), cluster_(std::move(cluster)), clock_(clock) {}

  Told Tell(const std::vector<v1::Event>& events, std::stop_token stop) override {
    const absl::Status told = TellAll(events, std::move(stop));
    return {told.ok() ? events.size() : 0, told};
  }

 private:
  absl::Status TellAll(const std::vector<v1::Event>& events, std::stop_token stop) {
    SIDING_ASSIGN_OR_RETURN(const std::string listed, ToJson(events));
    HttpCall call;
    call.body = absl::StrCat("{\"cluster\":\"", cluster_, "\",\"events\":", listed, "}");
    const int64_t now = ToMicros(clock_.Now()) / 1'000'000;
    call.headers = {{"Content-Type", "application/json"},
                    {kTimestamp, absl::StrCat(now)},
                    {kSignature, "sha256=" + Sign(secret_, now, call.body)}};
    SIDING_ASSIGN_OR_RETURN(const int code, post_(call, stop));
    if (code >= 200 && code < 300) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("it answered ", code));
  }

  const HttpPost post_;
  const std::string secret_;
  const std::string cluster_;
  const Clock& clock_;
};

// libcurl's handle, which keeps the connection for the next call.
class CurlPost {
 public:
  CurlPost(std::string url, std::string authority)
      : url_(std::move(url)), authority_(std::move(authority)), easy_(curl_easy_init()) {}
  ~CurlPost() {
    if (easy_ != nullptr) curl_easy_cleanup(easy_);
  }
  CurlPost(const CurlPost&) = delete;
  CurlPost& operator=(const CurlPost&) = delete;

  absl::StatusOr<int> Post(const HttpCall& call, std::stop_token stop) {
    if (easy_ == nullptr) return absl::ResourceExhaustedError("libcurl has no memory");
    curl_easy_reset(easy_);  // keeps the connection
    curl_slist* headers = curl_slist_append(nullptr, "Expect:");
    for (const auto& [name, value] : call.headers)
      headers = curl_slist_append(headers, absl::StrCat(name, ": ", value).c_str());
    Prepare(call, headers);
    curl_easy_setopt(easy_, CURLOPT_XFERINFOFUNCTION, &IsStopped);
    curl_easy_setopt(easy_, CURLOPT_XFERINFODATA, &stop);
    const CURLcode done = curl_easy_perform(easy_);
    curl_slist_free_all(headers);
    if (done != CURLE_OK) return absl::UnavailableError(curl_easy_strerror(done));
    long code = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }

 private:
  static int IsStopped(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<std::stop_token*>(stop)->stop_requested() ? 1 : 0;
  }
  // Nobody reads the answer.
  static size_t Discard(char*, size_t size, size_t count, void*) { return size * count; }

  void Prepare(const HttpCall& call, curl_slist* headers) const {
    curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);  // does not wait for a name server that is silent
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_NETRC, CURL_NETRC_IGNORED);
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
    curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, kCallMs);
    curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, call.body.data());
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &Discard);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy_, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (authority_.empty()) return;
    // The machine's folder of authorities would be believed beside this one.
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
    const curl_blob authority{const_cast<char*>(authority_.data()), authority_.size(), CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy_, CURLOPT_CAINFO_BLOB, &authority);
  }

  const std::string url_;
  const std::string authority_;
  CURL* const easy_;
};

}  // namespace

absl::StatusOr<HttpPost> NewHttpPost(const std::string& url, const std::string& authority) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return absl::FailedPreconditionError("libcurl does not work here");
  auto post = std::make_shared<CurlPost>(url, authority);
  return [post](const HttpCall& call, std::stop_token stop) { return post->Post(call, std::move(stop)); };
}

std::string Sign(absl::string_view secret, int64_t timestamp, absl::string_view body) {
  const std::string text = absl::StrCat(timestamp, ".", body);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  return absl::BytesToHexString({reinterpret_cast<const char*>(mac), size});
}

std::unique_ptr<Receiver> NewWebhook(HttpPost post, std::string secret, const std::string& cluster,
                                     const Clock& clock) {
  return std::make_unique<Webhook>(std::move(post), std::move(secret), cluster, clock);
}

}  // namespace siding
