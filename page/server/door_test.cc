#include "page/server/door.h"

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::page {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHost[] = "127.0.0.1:7480";
constexpr char kCookie[] = "siding-page-7480=the-session";

HttpRequest Ask(const std::string& path, const std::string& token = "", HttpFields headers = {},
                const std::string& host = kHost) {
  headers.emplace_back("Host", host);
  HttpRequest request{.method = "GET", .path = path, .headers = std::move(headers)};
  if (!token.empty()) request.query = {{"token", token}};
  return request;
}
HttpRequest With(const std::string& cookies, const std::string& path = "/api/v1/jobs",
                 const std::string& host = kHost) {
  return Ask(path, "", {{"Cookie", cookies}}, host);
}
std::string HeaderOf(const std::optional<HttpResponse>& response, const std::string& name) {
  for (const auto& [other, value] : response->headers) {
    if (other == name) return value;
  }
  return "";
}

class DoorTest : public testing::Test {
 protected:
  // 0: comes in.
  int Status(const HttpRequest& request) {
    const auto stopped = door_.Stop(request);
    return stopped ? stopped->status : 0;
  }

  Door door_{"the-token", "the-session"};
};

TEST_F(DoorTest, WithoutTokenAndCookieNothingIsSeen) {
  for (const char* path : {"/", "/page.js", "/licences.txt", "/api/v1/jobs", "/api/v1/events", "/none"}) {
    EXPECT_EQ(Status(Ask(path)), 401) << path;
    HttpRequest post = Ask(path);
    post.method = "POST";
    EXPECT_EQ(Status(post), 401) << path;
  }
}
TEST_F(DoorTest, PeopleAreToldWhatToDoAndScriptsInJson) {
  const auto page = door_.Stop(Ask("/")), json = door_.Stop(Ask("/api/v1/jobs"));
  EXPECT_THAT(page->content_type, HasSubstr("text/html"));
  EXPECT_THAT(*page->body, HasSubstr("<code>sidingctl page</code> prints an address"));
  EXPECT_EQ(json->content_type, "application/json");
  EXPECT_THAT(*json->body, HasSubstr("'sidingctl page' prints an address"));
  for (const auto& each : {page, json})
    EXPECT_THAT(HeaderOf(each, "Content-Security-Policy"), HasSubstr("'none'"));
}
TEST_F(DoorTest, TheTokenIsExchangedForACookieAndIsNotInTheAddressAnyMore) {
  const auto opened = door_.Stop(Ask("/", "the-token"));
  EXPECT_EQ(opened->status, 303);
  EXPECT_EQ(HeaderOf(opened, "Location"), "/");
  EXPECT_EQ(HeaderOf(opened, "Cache-Control"), "no-store");
  EXPECT_EQ(HeaderOf(opened, "Set-Cookie"),
            "siding-page-7480=the-session; HttpOnly; SameSite=Strict; Path=/");
}
TEST_F(DoorTest, TheCookieOpensEveryPath) {
  for (const char* path : {"/", "/page.js", "/api/v1/jobs", "/api/v1/events"})
    EXPECT_EQ(Status(With(kCookie, path)), 0) << path;
  EXPECT_EQ(Status(With("a=b; siding-page-7480=the-session;c")), 0);
}
TEST_F(DoorTest, AnothersCookieDoesNot) {
  for (const char* cookies : {"", "siding-page-7480", "siding-page-7480=", "siding-page-7480=the-sessioN",
                              "siding-page-7480=the-session-", "siding-page-7481=the-session", "the-session"})
    EXPECT_EQ(Status(With(cookies)), 401) << cookies;
}
// As of two tunnels from one machine: its browser sends both cookies to both.
TEST_F(DoorTest, ItsNameIsByThePortThatTheBrowserSees) {
  EXPECT_EQ(HeaderOf(door_.Stop(Ask("/", "the-token", {}, "localhost:8080")), "Set-Cookie").substr(0, 29),
            "siding-page-8080=the-session;");
  EXPECT_EQ(Status(With("siding-page-7480=anothers; siding-page-8080=the-session", "/", "localhost:8080")),
            0);
  EXPECT_EQ(Status(With("siding-page-80=the-session", "/", "localhost")), 0);
}
TEST_F(DoorTest, TheTokenOpensOnce) {
  EXPECT_EQ(Status(Ask("/", "the-token")), 303);
  const auto again = door_.Stop(Ask("/", "the-token"));
  ASSERT_EQ(again->status, 401);
  EXPECT_EQ(HeaderOf(again, "Set-Cookie"), "");
  EXPECT_THAT(*again->body, HasSubstr("has been used"));
  EXPECT_THAT(*again->body, HasSubstr("<code>sidingctl page</code>"));
}
TEST_F(DoorTest, WhoHasOpenedItIsLedToThePageAgain) {
  EXPECT_EQ(Status(Ask("/", "the-token")), 303);
  const auto again = door_.Stop(Ask("/", "the-token", {{"Cookie", kCookie}}));
  EXPECT_EQ(again->status, 303);
  EXPECT_EQ(HeaderOf(again, "Set-Cookie"), "");
}
TEST_F(DoorTest, AnotherTokenUsesNothingUp) {
  const auto wrong = door_.Stop(Ask("/", "<b>another"));
  ASSERT_EQ(wrong->status, 401);
  EXPECT_THAT(*wrong->body, Not(HasSubstr("<b>")));
  EXPECT_EQ(Status(Ask("/api/v1/jobs", "the-token")), 401);
  EXPECT_EQ(Status(Ask("/", "the-token")), 303);
}
// As sent by what shows a preview of an address.
TEST_F(DoorTest, AHeadUsesNothingUp) {
  HttpRequest head = Ask("/", "the-token");
  head.method = "HEAD";
  EXPECT_EQ(Status(head), 401);
  EXPECT_EQ(Status(Ask("/", "the-token")), 303);
}
TEST_F(DoorTest, AnotherSitesPageIsRefusedWithTheCookieAndTheTokenToo) {
  EXPECT_EQ(Status(With(kCookie, "/", "evil.example:7480")), 421);
  EXPECT_EQ(Status(Ask("/api/v1/jobs", "", {{"Cookie", kCookie}, {"Origin", "http://evil.example"}})), 403);
  EXPECT_EQ(Status(Ask("/", "the-token", {{"Origin", "http://evil.example"}})), 403);
  EXPECT_EQ(Status(Ask("/", "the-token")), 303);
}
TEST_F(DoorTest, EachHasSecretsOfItsOwn) {
  const std::string secret = DrawSecret();
  EXPECT_NE(secret, DrawSecret());
  EXPECT_GE(secret.size(), 43u);
  EXPECT_EQ(secret.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
            std::string::npos);
  EXPECT_NE(Door().Key(), Door().Key());
  EXPECT_EQ(door_.Key(), "/?token=the-token");
}

}  // namespace
}  // namespace siding::page
