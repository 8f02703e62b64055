// Who reads, by what his requests say and by what the server knows of them.
#include "page/server/service_sessions.h"

#include <deque>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "controller/api/calls_fixture.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "page/server/pages.h"
#include "page/server/service_source.h"

namespace siding::page {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

PageProxy Proxy() { return {{"10.0.0.5"}, "X-Forwarded-User", kSecret}; }
std::optional<std::vector<std::string>> Uris(std::initializer_list<const char*> uris) {
  return std::vector<std::string>(uris.begin(), uris.end());
}
HttpRequest From(const std::string& address, HttpFields headers = {},
                 std::optional<std::vector<std::string>> certificate = std::nullopt) {
  headers.emplace_back("Host", "localhost");
  HttpRequest request{.method = "GET", .path = "/api/v1/site", .headers = std::move(headers)};
  request.peer = {address, true, std::move(certificate)};
  return request;
}
// "uid 1, orders", "uid 1" who reads alone, "a stranger", or why he is refused.
std::string Who(const HttpRequest& request, const PageProxy& proxy = Proxy(), bool certificates = true) {
  const FakeClock clock;
  KnownUsers known(clock);
  const auto reader = ReaderOf(request, proxy, certificates, known);
  if (!reader.ok()) return std::string(reader.status().message());
  return *reader ? absl::StrCat("uid ", (*reader)->user.uid, (*reader)->may_order ? ", orders" : "")
                 : "a stranger";
}

TEST(ReaderTest, WhoSaysNothingIsAStranger) {
  EXPECT_EQ(Who(From("10.0.0.7")), "a stranger");
  EXPECT_EQ(Who(From("10.0.0.5")), "a stranger") << "others of the proxy's machine";
}
TEST(ReaderTest, TheProxyIsBelieved) {
  const HttpFields said{{"Siding-Proxy-Secret", kSecret}, {"X-Forwarded-User", "daemon"}};
  EXPECT_EQ(Who(From("10.0.0.5", said)), "uid 1");
  EXPECT_EQ(Who(From("10.0.0.5", {{"siding-proxy-secret", kSecret}, {"x-forwarded-user", "daemon"}})),
            "uid 1");
  EXPECT_EQ(Who(From("10.0.0.5", said, Uris({"siding://user/root"}))), "uid 1")
      << "the certificate is the proxy's own";
}
TEST(ReaderTest, WhomTheProxyNamesOrdersWhereThatIsConfigured) {
  PageProxy proxy = Proxy();
  const HttpFields said{{"Siding-Proxy-Secret", kSecret}, {"X-Forwarded-User", "daemon"}};
  EXPECT_EQ(Who(From("10.0.0.5", said), proxy), "uid 1");
  proxy.orders = true;
  EXPECT_EQ(Who(From("10.0.0.5", said), proxy), "uid 1, orders");
}
TEST(ReaderTest, TheProxysCertificateIsNobodys) {
  PageProxy proxy = Proxy();
  proxy.orders = true;
  EXPECT_EQ(Who(From("10.0.0.5", {}, Uris({"siding://user/daemon"})), proxy), "a stranger")
      << "it has forgotten its headers";
  EXPECT_EQ(Who(From("10.0.0.7", {}, Uris({"siding://user/daemon"})), proxy), "uid 1, orders");
}
TEST(ReaderTest, WithoutAProxyItsHeadersMeanNothing) {
  const HttpFields said{{"Siding-Proxy-Secret", ""}, {"X-Forwarded-User", "root"}};
  EXPECT_EQ(Who(From("10.0.0.5", said), PageProxy()), "a stranger");
  EXPECT_EQ(Who(From("", said), PageProxy()), "a stranger");
  EXPECT_EQ(Who(From("10.0.0.5", said, Uris({"siding://user/daemon"})), PageProxy()), "uid 1, orders");
}
TEST(ReaderTest, NobodyElseSpeaksForOthers) {
  const std::string secret = kSecret;
  struct {
    const char* what;
    std::string address;
    HttpFields headers;
    const char* refusal;
  } const cases[] = {
      {"a direct client", "10.0.0.7", {{"X-Forwarded-User", "daemon"}}, "10.0.0.7 is none of its addresses"},
      {"one who knows the secret",
       "10.0.0.7",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon"}},
       "10.0.0.7 is none of its addresses"},
      {"one who says that he is the proxy",
       "10.0.0.7",
       {{"X-Forwarded-For", "10.0.0.5"},
        {"X-Real-IP", "10.0.0.5"},
        {"Forwarded", "for=10.0.0.5"},
        {"Siding-Proxy-Secret", secret},
        {"X-Forwarded-User", "daemon"}},
       "10.0.0.7 is none of its addresses"},
      {"small letters", "10.0.0.7", {{"x-forwarded-user", "daemon"}}, "is none of its addresses"},
      {"another spelling of the address",
       "10.0.0.50",
       {{"X-Forwarded-User", "daemon"}},
       "none of its addresses"},
      {"another user of the proxy's machine",
       "10.0.0.5",
       {{"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"one who guesses",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", "x"}, {"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"a beginning of it",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret.substr(0, 31)}, {"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"more than it",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret + "0"}, {"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"none",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", ""}, {"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"two secrets",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"siding-proxy-secret", secret}, {"X-Forwarded-User", "daemon"}},
       "Siding-Proxy-Secret is not what"},
      {"two users",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon"}, {"x-forwarded-user", "nobody"}},
       "names several users"},
      {"the same user twice",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon"}, {"X-Forwarded-User", "daemon"}},
       "names several users"},
      {"two in one",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon, root"}},
       "the name 'daemon, root'"},
      {"nobody", "10.0.0.5", {{"Siding-Proxy-Secret", secret}}, "names no user"},
      {"an empty one",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", ""}},
       "names no user"},
      {"no account",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "no-such-user"}},
       "no account on the controller's machine"},
      {"root",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "root"}},
       "root is not known by a proxy's word"},
      {"an address of mail",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon@example.org"}},
       "the name 'daemon@"},
      {"blanks",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", "daemon "}},
       "the name 'daemon '"},
      {"a NUL",
       "10.0.0.5",
       {{"Siding-Proxy-Secret", secret}, {"X-Forwarded-User", std::string("daemon\0x", 8)}},
       "the name 'daemon"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(Who(From(one.address, one.headers)), HasSubstr(one.refusal)) << one.what;
    // Nor with a certificate of one's own, by which he would be let in.
    EXPECT_THAT(Who(From(one.address, one.headers, Uris({"siding://user/daemon"}))), HasSubstr(one.refusal))
        << one.what;
  }
}
TEST(ReaderTest, OnlyTheHeaderThatIsConfiguredIsRead) {
  PageProxy proxy = Proxy();
  proxy.user_header = "Remote-User";
  const HttpFields other{{"X-Forwarded-User", "nobody"}};
  HttpFields both = other;
  both.insert(both.end(), {{"remote-user", "daemon"}, {"Siding-Proxy-Secret", kSecret}});
  EXPECT_EQ(Who(From("10.0.0.5", both), proxy), "uid 1");
  EXPECT_EQ(Who(From("10.0.0.7", other), proxy), "a stranger");
}
TEST(ReaderTest, ACertificateSaysWhoOneIsUnlessMungeDoes) {
  EXPECT_EQ(Who(From("10.0.0.7", {}, Uris({"siding://user/daemon"}))), "uid 1, orders");
  EXPECT_EQ(Who(From("10.0.0.7", {}, Uris({"siding://user/daemon"})), Proxy(), false), "a stranger");
  EXPECT_THAT(Who(From("10.0.0.7", {}, Uris({}))), HasSubstr("says neither siding://node"));
  EXPECT_THAT(Who(From("10.0.0.7", {}, Uris({"siding://user/daemon", "siding://user/root"}))),
              HasSubstr("has two names"));
}

TEST(KnownUsersTest, AnAccountIsLookedUpOnceInAWhileAndAnErrorAgain) {
  FakeClock clock;
  KnownUsers known(clock);
  int looked = 0;
  absl::StatusOr<UserIdentity> account = UserIdentity{7, 7, "ada"};
  const auto uid = [&](const std::string& key) -> int64_t {
    const auto user = known.Of(key, [&] {
      ++looked;
      return account;
    });
    return user.ok() ? int64_t{user->uid} : -1;
  };
  EXPECT_EQ(uid("ada"), 7);
  account = absl::PermissionDeniedError("no account");
  clock.Advance(KnownUsers::kGoodFor - std::chrono::seconds(1));
  EXPECT_EQ(uid("ada"), 7);
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(uid("bob"), -1);
  EXPECT_EQ(uid("bob"), -1);
  EXPECT_EQ(looked, 3);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(uid("ada"), -1) << "who has no account any more";
}

// The page, for those whom their certificates name: ada, of the policy, is no account of any machine.
class ReadersTest : public CallsTest {
 protected:
  ReadersTest() { engine_.SetPolicy(Policy{.operators = {"daemon"}}); }
  int64_t SubmitAs(const std::string& user, uint32_t uid) {
    JobSpec spec;
    spec.command = {"work-of-" + user};
    spec.uid = uid;
    spec.user = user;
    spec.methods = {Method::kKill};
    spec.per_node.slots = 1;
    const auto submitted = engine_.Submit(Caller{uid, user, false}, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    clock_.Advance(std::chrono::seconds(1));
    return submitted.ok() ? submitted->id.value() : 0;
  }
  HttpResponse Get(const std::string& user, const std::string& path, HttpFields headers = {}) {
    HttpRequest request = From("10.0.0.7", std::move(headers));
    if (!user.empty()) request.peer.certificate = std::vector<std::string>{"siding://user/" + user};
    request.path = path;
    return pages_.Answer(request);
  }
  HttpResponse Post(const std::string& user, const std::string& path, const std::string& body,
                    const std::string& token) {
    HttpRequest request = From("10.0.0.7", {{"Content-Type", "application/json"}, {"Siding-Token", token}});
    if (!user.empty()) request.peer.certificate = std::vector<std::string>{"siding://user/" + user};
    request.method = "POST";
    request.path = path;
    request.body = body;
    return pages_.Answer(request);
  }
  std::string TokenOf(const std::string& user) {
    return json::parse(*Get(user, "/api/v1/session").body)["order_token"].get<std::string>();
  }
  std::string Hold(int64_t job, const std::string& key) {
    return absl::StrCat(R"({"action": {"verb": "hold", "job": )", job, R"(}, "if_unchanged": )",
                        service_.NewestEvent() + 1, R"(, "key": ")", key, R"("})");
  }
  size_t JobsSeenBy(const std::string& user) {
    return json::parse(*Get(user, "/api/v1/jobs").body)["jobs"].size();
  }

  const ServiceLimits limits_{.waiting_calls_per_user = 2};
  ServiceSource strangers_{service_};
  ServiceSessions sessions_{service_, limits_, Proxy(), true, clock_};
  Pages pages_{strangers_,
               std::make_shared<PageFrame>(PageFrame{clock_, StaticFiles(std::vector<File>()), {}}),
               Readers::kAll, &sessions_};
};

TEST_F(ReadersTest, EachSeesWhatHeMaySeeAndAStrangerNothing) {
  const int64_t theirs = SubmitAs("bin", 2), own = SubmitAs("nobody", 65534);
  for (int i = 0; i < 2; ++i) {  // the second time from what was kept
    EXPECT_EQ(JobsSeenBy("daemon"), 2u) << "an operator";
    EXPECT_EQ(JobsSeenBy("nobody"), 1u);
    EXPECT_EQ(JobsSeenBy(""), 0u);
    EXPECT_EQ(JobsSeenBy("bin"), 1u);
  }
  EXPECT_EQ(Get("nobody", absl::StrCat("/api/v1/jobs/", own)).status, 200);
  EXPECT_EQ(Get("nobody", absl::StrCat("/api/v1/jobs/", theirs)).status, 404);
  EXPECT_EQ(Get("nobody", absl::StrCat("/api/v1/jobs/", theirs, "/plans")).status, 404);
  EXPECT_EQ(json::parse(*Get("nobody", "/api/v1/site").body)["user"], "nobody");
  EXPECT_EQ(json::parse(*Get("daemon", "/api/v1/site").body)["is_operator"], true);
  EXPECT_EQ(json::parse(*Get("", "/api/v1/site").body)["user"], "");
}
TEST_F(ReadersTest, EachOrdersWhatHeMayOrder) {
  const int64_t own = SubmitAs("nobody", 65534), theirs = SubmitAs("bin", 2);
  const std::string nobodys = TokenOf("nobody"), daemons = TokenOf("daemon");
  EXPECT_EQ(Post("nobody", "/api/v1/orders", Hold(theirs, "a"), nobodys).status, 404);
  EXPECT_EQ(Post("nobody", "/api/v1/orders", Hold(own, "b"), nobodys).status, 200);
  EXPECT_EQ(Post("daemon", "/api/v1/orders", Hold(theirs, "c"), daemons).status, 200);
  clock_.Advance(std::chrono::seconds(1));
  std::vector<std::string> held_by;
  const json told = json::parse(*Get("daemon", "/api/v1/jobs").body);
  for (const json& job : told["jobs"]) held_by.push_back(job["held_by"]);
  EXPECT_THAT(held_by, testing::ElementsAre("user", "operator"));
  const std::string kill = absl::StrCat(R"({"verb": "kill", "job": )", own, "}");
  EXPECT_EQ(Post("nobody", "/api/v1/plans", kill, nobodys).status, 200);
}
TEST_F(ReadersTest, ATokenIsOfOneReader) {
  const int64_t job = SubmitAs("bin", 2);
  EXPECT_EQ(TokenOf("daemon"), TokenOf("daemon"));
  EXPECT_NE(TokenOf("daemon"), TokenOf("bin"));
  for (const std::string& token : {TokenOf("bin"), std::string()}) {
    const auto refused = Post("daemon", "/api/v1/orders", Hold(job, "k"), token);
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(*refused.body, HasSubstr("Siding-Token: it is not this session's"));
  }
}
// The same one by his certificate orders.
TEST_F(ReadersTest, WhomTheProxyNamesOrdersNothingUnlessThatIsConfigured) {
  const int64_t job = SubmitAs("bin", 2);
  HttpRequest request = From("10.0.0.5", {{"Siding-Proxy-Secret", kSecret},
                                          {"X-Forwarded-User", "bin"},
                                          {"Content-Type", "application/json"},
                                          {"Siding-Token", TokenOf("bin")}});
  request.path = "/api/v1/session";
  EXPECT_EQ(pages_.Answer(request).status, 404);
  request.method = "POST";
  request.path = "/api/v1/orders";
  request.body = Hold(job, "k");
  EXPECT_EQ(pages_.Answer(request).status, 405);
  EXPECT_EQ(pages_.readers(), 2u);
  EXPECT_EQ(Post("bin", "/api/v1/orders", Hold(job, "k"), TokenOf("bin")).status, 200);
}
TEST_F(ReadersTest, StrangersOrderNothing) {
  const int64_t job = SubmitAs("bin", 2);
  EXPECT_EQ(Get("", "/api/v1/session").status, 404);
  EXPECT_EQ(Post("", "/api/v1/orders", Hold(job, "k"), TokenOf("bin")).status, 405);
}
TEST_F(ReadersTest, AnOrderOfAKeyIsGivenOnce) {
  const int64_t job = SubmitAs("nobody", 65534);
  const std::string token = TokenOf("nobody"), order = Hold(job, "k");
  EXPECT_EQ(Post("nobody", "/api/v1/orders", order, token).status, 200);
  const auto newest = service_.NewestEvent();
  EXPECT_EQ(Post("nobody", "/api/v1/orders", order, token).status, 200);
  EXPECT_EQ(service_.NewestEvent(), newest);
}
TEST_F(ReadersTest, WhoIsNoOperatorAnyMoreIsNoneOnThePage) {
  SubmitAs("bin", 2);
  EXPECT_EQ(JobsSeenBy("daemon"), 1u);
  engine_.SetPolicy(Policy{});
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(JobsSeenBy("daemon"), 0u);
}
TEST_F(ReadersTest, AnswersToOneAreInNoBrowsersCache) {
  const auto cache = [](const HttpResponse& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Cache-Control") return value;
    }
    return std::string();
  };
  EXPECT_EQ(cache(Get("nobody", "/api/v1/jobs")), "no-store");
  EXPECT_EQ(cache(Get("", "/api/v1/jobs")), "no-cache");
}
TEST_F(ReadersTest, EventsAreToldToWhomTheyAreFor) {
  const auto operators = Get("daemon", "/api/v1/events"), own = Get("nobody", "/api/v1/events"),
             others = Get("bin", "/api/v1/events"), strangers = Get("", "/api/v1/events");
  SubmitAs("nobody", 65534);
  EXPECT_TRUE(pages_.Turn(Duration(0)).ok());
  const auto told = [](const HttpResponse& response) {
    std::string text(10'000, '\0');
    const auto size = response.stream->Read(
        text.data(), text.size(), [] {}, [] {});
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return absl::StrContains(text, "data:");
  };
  EXPECT_TRUE(told(operators));
  EXPECT_TRUE(told(own));
  EXPECT_FALSE(told(others));
  EXPECT_FALSE(told(strangers));
}
TEST_F(ReadersTest, OneReaderHasSoManyStreamsAsByGrpc) {
  const auto first = Get("nobody", "/api/v1/events"), second = Get("nobody", "/api/v1/events");
  EXPECT_EQ(second.status, 200);
  const auto third = Get("nobody", "/api/v1/events");
  EXPECT_EQ(third.status, 429);
  EXPECT_THAT(*third.body, HasSubstr("limits.waiting_calls_per_user is 2"));
  EXPECT_EQ(Get("bin", "/api/v1/events").status, 200) << "another one's are his own";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Get("", "/api/v1/events").status, 200) << "strangers are many";
  first.stream->End();
  EXPECT_EQ(Get("nobody", "/api/v1/events").status, 200);
}
TEST_F(ReadersTest, CallsUnderWayCountWhicheverWayTheyCame) {
  std::deque<CallSlots::Slot> by_grpc;
  for (int i = 0; i < limits_.calls_per_user; ++i) by_grpc.emplace_back(service_.calls(), 65534u);
  const auto refused = Get("nobody", "/api/v1/jobs");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(*refused.body, HasSubstr("limits.calls_per_user is 64"));
  EXPECT_EQ(Get("bin", "/api/v1/jobs").status, 200);
  EXPECT_EQ(Get("", "/api/v1/jobs").status, 200);
}
TEST_F(ReadersTest, WhoIsNobodyHereReadsNothing) {
  const auto refused = Get("no-such-user", "/api/v1/nodes");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(*refused.body, HasSubstr("no account"));
  EXPECT_EQ(Get("no-such-user", "/").status, 403);
}
TEST_F(ReadersTest, AnotherSitesPageIsRefusedBeforeItIsAskedWhoReads) {
  HttpRequest request =
      From("10.0.0.7", {{"Origin", "https://evil.example"}}, Uris({"siding://user/daemon"}));
  EXPECT_EQ(pages_.Answer(request).status, 403);
  request.headers = {{"Host", "evil.example"}};
  EXPECT_EQ(pages_.Answer(request).status, 421);
  EXPECT_EQ(pages_.readers(), 0u);
}
TEST_F(ReadersTest, WhoReadsNothingIsForgottenUnlessHeFollows) {
  Get("nobody", "/api/v1/site");
  const auto stream = Get("daemon", "/api/v1/events").stream;
  EXPECT_EQ(pages_.readers(), 2u);
  clock_.Advance(Pages::kForgetAfter);
  EXPECT_TRUE(pages_.Turn(Duration(0)).ok());
  EXPECT_EQ(pages_.readers(), 1u);
  EXPECT_FALSE(stream->HasEnded());
  stream->End();
  EXPECT_TRUE(pages_.Turn(Duration(0)).ok());
  EXPECT_EQ(pages_.readers(), 0u);
}
// By a request, and a stream is one.
TEST_F(ReadersTest, WhoFollowsForLongIsAskedAgainWhoHeIs) {
  const auto own = Get("nobody", "/api/v1/events").stream, strangers = Get("", "/api/v1/events").stream;
  clock_.Advance(Pages::kLongestStream - std::chrono::seconds(1));
  EXPECT_TRUE(pages_.Turn(Duration(0)).ok());
  EXPECT_FALSE(own->HasEnded());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(pages_.Turn(Duration(0)).ok());
  EXPECT_TRUE(own->HasEnded());
  EXPECT_FALSE(strangers->HasEnded()) << "they are nobody anyway";
}
TEST_F(ReadersTest, WhenThePageEndsAllStreamsDo) {
  const auto own = Get("nobody", "/api/v1/events").stream, strangers = Get("", "/api/v1/events").stream;
  pages_.End();
  EXPECT_TRUE(own->HasEnded());
  EXPECT_TRUE(strangers->HasEnded());
  EXPECT_EQ(Get("bin", "/api/v1/site").status, 502);
}

}  // namespace
}  // namespace siding::page
