#include "page/server/answers.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "page/server/standby_source.h"

namespace siding::page {
namespace {

// Nothing but what this server has may be loaded, and nobody else shows it as a part of his.
const HttpFields& Protections() {
  static const HttpFields* const fields =
      new HttpFields{{"Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                      "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
  return *fields;
}

HttpResponse Error(int status, const nlohmann::json& error) {
  HttpResponse response = Bare(status);
  // Of what a client has written some may be no text.
  response.body = std::make_shared<const std::string>(
      nlohmann::json{{"error", error}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:  // as of a gateway: this server is there, whom it asks is not
    case absl::StatusCode::kCancelled:
      return 502;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpResponse Bare(int status) {
  HttpResponse response;
  response.status = status;
  response.headers = Protections();
  return response;
}

HttpResponse Refuse(int status, const std::string& why, const std::string& allow) {
  HttpResponse response = Error(status, {{"status", status}, {"message", why}});
  if (status == 405) response.headers.emplace_back("Allow", allow);
  return response;
}

HttpResponse Refuse(const absl::Status& why) {
  const std::string message(why.message());
  const auto active = ActiveIn(why);
  if (!active) return Refuse(HttpStatusOf(why), message);
  constexpr int kUnavailable = 503;
  return Error(kUnavailable,
               {{"status", kUnavailable}, {"message", message}, {"active", nlohmann::json::parse(*active)}});
}

}  // namespace siding::page
