#include "page/server/door.h"

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "page/server/answers.h"
#include "page/server/question.h"

namespace siding::page {
namespace {

constexpr char kTokenField[] = "token";
constexpr char kAnother[] = "'sidingctl page' prints an address that opens the page, once";

// Cookies do not know ports: those of the pages that one browser shows, by tunnels to several machines, each
// have a name of their own. It is by the port that the browser sees.
std::string CookieName(const HttpRequest& request) { return absl::StrCat("siding-page-", PortOf(request)); }

bool HasCookie(const HttpRequest& request, const std::string& value) {
  const std::string name = CookieName(request);
  bool found = false;
  for (const auto& [header, text] : request.headers) {
    if (!absl::EqualsIgnoreCase(header, "Cookie")) continue;
    for (const absl::string_view pair : absl::StrSplit(text, ';')) {
      const std::pair<std::string, std::string> cookie =
          absl::StrSplit(absl::StripAsciiWhitespace(pair), absl::MaxSplits('=', 1));
      found |= cookie.first == name && SameSecret(cookie.second, value);
    }
  }
  return found;
}

std::optional<std::string> TokenOf(const HttpRequest& request) {
  for (const auto& [name, value] : request.query) {
    if (name == kTokenField) return value;
  }
  return std::nullopt;
}

HttpResponse ToThePage() {
  HttpResponse response = Bare(303);
  response.headers.emplace_back("Location", "/");
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

// For people, unless the path is the API's. What a request says is not repeated.
HttpResponse Closed(const HttpRequest& request, const std::string& why) {
  if (absl::StartsWith(request.path, "/api/")) return Refuse(401, absl::StrCat(why, ": ", kAnother));
  HttpResponse response = Bare(401);
  response.content_type = "text/html; charset=utf-8";
  response.body = std::make_shared<const std::string>(absl::StrCat(
      "<!doctype html><html lang=\"en\"><title>siding: not open</title><main><h1>This page is not open to "
      "you</h1><p>",
      why,
      ".</p><p><code>sidingctl page</code> prints an address that opens the page, once, in one browser.</p>"
      "<p>If this browser has opened it already: <a href=\"/\">go on to the page</a>.</p></main></html>\n"));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

std::string Door::Key() const { return absl::StrCat("/?", kTokenField, "=", token_); }

std::optional<HttpResponse> Door::Stop(const HttpRequest& request) {
  if (const auto foreign = RefuseForeign(request)) return Refuse(foreign->status, foreign->why);
  const bool is_known = HasCookie(request, session_);
  const auto token = request.path == "/" ? TokenOf(request) : std::nullopt;
  // Browsers may ask twice for an address that somebody types: the second time it has led there already.
  if (token) return is_known ? ToThePage() : Exchange(request, *token);
  if (is_known) return std::nullopt;
  return Closed(request, "It is open to the browser with which the address was opened");
}

HttpResponse Door::Exchange(const HttpRequest& request, const std::string& token) {
  if (!SameSecret(token, token_))
    return Closed(request, "The token in this address is not this page's, or that of an earlier one");
  if (request.method != "GET") return Closed(request, "The token in this address is for GET");
  {
    MutexLock lock(mutex_);
    if (used_) return Closed(request, "The token in this address has been used: it opens the page once");
    used_ = true;
  }
  HttpResponse response = ToThePage();
  response.headers.emplace_back(
      "Set-Cookie", absl::StrCat(CookieName(request), "=", session_, "; HttpOnly; SameSite=Strict; Path=/"));
  return response;
}

}  // namespace siding::page
