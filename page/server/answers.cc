#include "page/server/answers.h"

#include <memory>

#include "nlohmann/json.hpp"

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

HttpResponse Bare(int status) {
  HttpResponse response;
  response.status = status;
  response.headers = Protections();
  return response;
}

HttpResponse Refuse(int status, const std::string& why) {
  HttpResponse response = Error(status, {{"status", status}, {"message", why}});
  if (status == 405) response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

HttpResponse RefuseStandingBy(const std::string& why, const std::string& active) {
  constexpr int kUnavailable = 503;
  return Error(kUnavailable,
               {{"status", kUnavailable}, {"message", why}, {"active", nlohmann::json::parse(active)}});
}

}  // namespace siding::page
