// Events by HTTP: one call for several of them, signed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "controller/notify/receiver.h"
#include "controller/notify/settings.h"

namespace siding {

struct HttpCall {
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// Makes the call and returns the answer's code. Errors name nothing of the URL, which may be secret. Used by
// one thread.
using HttpPost = std::function<absl::StatusOr<int>(const HttpCall& call, std::stop_token stop)>;

// By libcurl; redirections and the environment's proxies are not followed. `authority`: certificates, PEM;
// empty: those that the machine believes.
absl::StatusOr<HttpPost> NewHttpPost(const std::string& url, const std::string& authority);

// Of `timestamp.body`: HMAC-SHA-256, 64 hex digits.
std::string Sign(absl::string_view secret, int64_t timestamp, absl::string_view body);

// `cluster` is the journal's name. `clock` must outlive it.
std::unique_ptr<Receiver> NewWebhook(HttpPost post, std::string secret, const std::string& cluster,
                                     const Clock& clock);

}  // namespace siding
