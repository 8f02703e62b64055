#include "page/server/question.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HttpRequest Get(const std::string& path, HttpFields query = {}) {
  return {.method = "GET", .path = path, .query = std::move(query), .headers = {{"host", "localhost:7480"}}};
}
// "" if there is none.
std::string WhyRefused(const HttpRequest& request) {
  const auto read = ReadQuestion(request);
  const auto* refusal = std::get_if<Refusal>(&read);
  return refusal == nullptr ? "" : absl::StrCat(refusal->status, " ", refusal->why);
}
template <class What>
What Asked(const HttpRequest& request) {
  const auto read = ReadQuestion(request);
  EXPECT_EQ(WhyRefused(request), "");
  const auto* question = std::get_if<Question>(&read);
  const auto* what = question == nullptr ? nullptr : std::get_if<What>(&question->what);
  EXPECT_NE(what, nullptr);
  return what == nullptr ? What() : *what;
}
std::string KeyOf(const HttpRequest& request) { return std::get<Question>(ReadQuestion(request)).key; }

TEST(QuestionTest, AddressesThatThereAre) {
  Asked<ListJobs>(Get("/api/v1/jobs"));
  Asked<ListNodes>(Get("/api/v1/nodes"));
  Asked<ShowSite>(Get("/api/v1/site"));
  Asked<ListTrends>(Get("/api/v1/trends"));
  Asked<ShowPolicy>(Get("/api/v1/policy"));
  EXPECT_THAT(Asked<ListJobs>(Get("/api/v1/jobs/17")).request.ids(), ElementsAre(17));
  EXPECT_EQ(Asked<ExplainJob>(Get("/api/v1/jobs/17/plans")).request.id(), 17);
  EXPECT_EQ(Asked<ListCheckpoints>(Get("/api/v1/checkpoints", {{"job", "17"}})).request.job(), 17);
}
TEST(QuestionTest, AddressesThatThereAreNot) {
  for (const char* path :
       {"", "/", "*", "/api/v1", "/api/v1/", "/api/v2/jobs", "/api/v1/job", "/api/v1/jobs/1/x",
        "/api/v1/jobs/1/plans/", "/api/v1//jobs", "/api/v1/nodes/n1", "/api/v1/jobs%00"}) {
    EXPECT_THAT(WhyRefused(Get(path)), HasSubstr("' is not known; expected /api/v1/jobs, jobs/ID")) << path;
  }
}
TEST(QuestionTest, JobsThatAreNoNumbers) {
  for (const char* job : {"", "x", "-1", "0", "+1", "1.5", "99999999999999999999", "1%20"})
    EXPECT_THAT(WhyRefused(Get(absl::StrCat("/api/v1/jobs/", job))), HasSubstr("400 job '")) << job;
}
TEST(QuestionTest, AFilterOfJobs) {
  const auto jobs = Asked<ListJobs>(
      Get("/api/v1/jobs", {{"state", "running"}, {"user", "a%64a"}, {"all", "true"}, {"state", "done"}}));
  EXPECT_THAT(jobs.request.states(), ElementsAre("running", "done"));
  EXPECT_EQ(jobs.request.user(), "ada");
  EXPECT_TRUE(jobs.request.all());
}
TEST(QuestionTest, AListIsBriefWhereThatIsAskedFor) {
  EXPECT_FALSE(Asked<ListJobs>(Get("/api/v1/jobs")).request.brief());
  EXPECT_TRUE(Asked<ListJobs>(Get("/api/v1/jobs", {{"brief", "true"}})).request.brief());
}
TEST(QuestionTest, HowAListHasChangedSinceAVersion) {
  const auto changes = Asked<ListJobChanges>(
      Get("/api/v1/jobs/changes", {{"after", "0a-17"}, {"brief", "true"}, {"state", "running"}}));
  EXPECT_EQ(changes.after, "0a-17");
  EXPECT_TRUE(changes.request.brief());
  EXPECT_THAT(changes.request.states(), ElementsAre("running"));
  EXPECT_EQ(Asked<ListJobChanges>(Get("/api/v1/jobs/changes")).after, "");
}
TEST(QuestionTest, PlansAreComparedWhereThatIsAskedFor) {
  EXPECT_FALSE(Asked<ExplainJob>(Get("/api/v1/jobs/17/plans")).request.compare());
  EXPECT_TRUE(Asked<ExplainJob>(Get("/api/v1/jobs/17/plans", {{"compare", "true"}})).request.compare());
}
TEST(QuestionTest, ARequestThatIsNotSubmitted) {
  const auto plan = Asked<PlanRequest>(Get("/api/v1/plan", {{"nodes", "2"},
                                                            {"slots", "4"},
                                                            {"gpus", "1"},
                                                            {"memory", "1024"},
                                                            {"start_by_us", "9"},
                                                            {"not_before_us", "8"},
                                                            {"walltime_us", "7"},
                                                            {"label", "account=beam=line"},
                                                            {"label", "qos="}}));
  const v1::JobSpec& spec = plan.request.spec();
  EXPECT_TRUE(spec.on_demand());
  EXPECT_EQ(spec.nodes(), 2);
  EXPECT_EQ(spec.per_node().slots(), 4);
  EXPECT_EQ(spec.per_node().gpus(), 1);
  EXPECT_EQ(spec.per_node().memory(), 1024);
  EXPECT_EQ(spec.start_by_us(), 9);
  EXPECT_FALSE(spec.start_by_earliest());
  EXPECT_EQ(spec.not_before_us(), 8);
  EXPECT_EQ(spec.walltime_us(), 7);
  EXPECT_EQ(spec.labels().at("account"), "beam=line");
  EXPECT_EQ(spec.labels().at("qos"), "");
  const auto earliest = Asked<PlanRequest>(Get("/api/v1/plan", {{"start_by_us", "earliest"}}));
  EXPECT_TRUE(earliest.request.spec().start_by_earliest());
  EXPECT_EQ(earliest.request.spec().nodes(), 1);
}
TEST(QuestionTest, ARequestThatCannotBeRead) {
  const auto why = [](const std::string& name, const std::string& value) {
    HttpFields fields{{name, value}};
    if (name != "start_by_us") fields.emplace_back("start_by_us", "9");
    return WhyRefused(Get("/api/v1/plan", fields));
  };
  for (const char* number : {"", "x", "-1", "1.5", "2147483648", "99999999999999999999"}) {
    EXPECT_EQ(why("nodes", number), "400 nodes: expected one whole number from 0 to 2147483647") << number;
  }
  EXPECT_EQ(why("memory", "1G"), "400 memory: expected one whole number from 0 to 9223372036854775807");
  const char* const kTime =
      "400 start_by_us: expected earliest, or one number, of microseconds since 1970 UTC";
  EXPECT_EQ(why("start_by_us", "+20s"), kTime);
  EXPECT_EQ(WhyRefused(Get("/api/v1/plan")), kTime);
  EXPECT_EQ(why("label", "account"), "400 label 'account': expected NAME=VALUE");
  EXPECT_EQ(why("label", "=x"), "400 label '=x': expected NAME=VALUE");
  EXPECT_THAT(why("command", "rm"), HasSubstr("400 'command': expected gpus, label"));
}
TEST(QuestionTest, WhatCannotBeReadNamesWhatWasExpected) {
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"all", "yes"}})), "400 all: expected true or false");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"brief", ""}})), "400 brief: expected true or false");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs/1/plans", {{"compare", ""}})),
            "400 compare: expected true or false");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"user", "a"}, {"user", "b"}})), "400 user: expected one name");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"stat", "done"}})),
            "400 'stat': expected all, brief, state, user");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs/changes", {{"all", "yes"}})), "400 all: expected true or false");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs/changes", {{"after", "a"}, {"after", "b"}})),
            "400 after: expected one version");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"after", "a"}})),
            "400 'after': expected all, brief, state, user");
  EXPECT_EQ(WhyRefused(Get("/api/v1/nodes", {{"x", ""}})), "400 'x': expected nothing after ?");
  EXPECT_EQ(WhyRefused(Get("/api/v1/jobs", {{"user", "%4"}})), "400 'user=%4': expected %XX after %");
  EXPECT_EQ(WhyRefused(Get("/api/v1/j%obs")), "400 '/api/v1/j%obs': expected %XX after %");
  EXPECT_EQ(WhyRefused(Get("/api/v1/checkpoints", {{"job", "all"}})), "400 job: expected the number of one");
  EXPECT_EQ(WhyRefused(Get("/api/v1/events", {{"after", "now"}})), "400 after: expected an event's number");
}
TEST(QuestionTest, FollowersSayWhereTheyWere) {
  EXPECT_EQ(Asked<FollowEvents>(Get("/api/v1/events")).after, std::nullopt);
  HttpRequest request = Get("/api/v1/events", {{"after", "5"}});
  EXPECT_EQ(Asked<FollowEvents>(request).after, 5);
  request.headers.emplace_back("last-event-id", "7");  // that of one who comes back to the same address
  EXPECT_EQ(Asked<FollowEvents>(request).after, 7);
  request.headers.back().second = "-7";
  EXPECT_EQ(WhyRefused(request), "400 Last-Event-ID: '-7'; expected an event's number");
}
TEST(QuestionTest, OnlyReadingIsAllowed) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get", "BREW"}) {
    HttpRequest request = Get("/api/v1/jobs");
    request.method = method;
    EXPECT_THAT(WhyRefused(request), HasSubstr("405 ")) << method;
  }
  HttpRequest head = Get("/api/v1/jobs");
  head.method = "HEAD";
  Asked<ListJobs>(head);
}
TEST(QuestionTest, ABodyIsTooMuch) {
  HttpRequest request = Get("/api/v1/jobs");
  request.has_body = true;
  EXPECT_EQ(WhyRefused(request), "413 expected a request without a body");
}
// A name that its owner lets point at this machine is not the machine's: his page would read what is here.
TEST(QuestionTest, OnlyTheLoopbacksNamesAreThisServers) {
  HttpRequest request = Get("/api/v1/nodes");
  for (const char* host :
       {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7480", "127.9.9.9", "[::1]", "[::1]:80"}) {
    request.headers = {{"Host", host}};
    EXPECT_EQ(WhyRefused(request), "") << host;
  }
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "::1",
        "[::1]x", "[::2]", "localhost:", "localhost:x", "localhost:99999", "localhost:80:80", " localhost"}) {
    request.headers = {{"Host", host}};
    EXPECT_THAT(WhyRefused(request), HasSubstr("421 host: '")) << host;
  }
  request.headers = {};
  EXPECT_THAT(WhyRefused(request), HasSubstr("421 host: ''"));
  request.headers = {{"Host", "localhost"}, {"host", "localhost"}};
  EXPECT_THAT(WhyRefused(request), HasSubstr("421 "));
}
TEST(QuestionTest, OtherSitesPagesAreRefused) {
  HttpRequest request = Get("/api/v1/nodes");
  request.headers.emplace_back("Origin", "http://localhost:7480");
  EXPECT_EQ(WhyRefused(request), "");
  for (const char* origin : {"null", "", "https://localhost:7480", "http://localhost",
                             "http://localhost:7481", "http://evil.example"}) {
    request.headers.back().second = origin;
    EXPECT_THAT(WhyRefused(request), HasSubstr("403 origin: '")) << origin;
  }
  request.headers.back().second = "http://localhost:7480";
  request.headers.emplace_back("Origin", "http://localhost:7480");
  EXPECT_THAT(WhyRefused(request), HasSubstr("403 "));
}
// It cannot read what its picture brings, but that is asked for in the reader's name.
TEST(QuestionTest, WhatAnotherSitesPageLoadsIsRefused) {
  const auto why = [](const std::string& path, const std::string& site) {
    HttpRequest request{.method = "GET", .path = path, .headers = {{"Host", "localhost"}}};
    request.headers.emplace_back("sec-fetch-site", site);
    const auto refusal = RefuseForeign(request);
    return refusal ? absl::StrCat(refusal->status, " ", refusal->why) : "";
  };
  for (const char* path : {"/api/v1/plan", "/%61pi/v1/plan"}) {
    for (const char* site : {"same-origin", "none"}) EXPECT_EQ(why(path, site), "") << path;
    for (const char* site : {"cross-site", "same-site", ""})
      EXPECT_THAT(why(path, site), HasSubstr("403 sec-fetch-site: '")) << path;
  }
  EXPECT_EQ(why("/", "cross-site"), "") << "a link to the page";
}
TEST(QuestionTest, TheSameQuestionHasTheSameKeyAndNoOther) {
  EXPECT_EQ(KeyOf(Get("/api/v1/jobs", {{"user", "a"}, {"all", "true"}})),
            KeyOf(Get("/api/v1/%6aobs", {{"all", "true"}, {"user", "%61"}})));
  EXPECT_NE(KeyOf(Get("/api/v1/jobs", {{"user", "a&3all=4:true"}})),
            KeyOf(Get("/api/v1/jobs", {{"user", "a"}, {"all", "true"}})));
  EXPECT_NE(KeyOf(Get("/api/v1/jobs/1")), KeyOf(Get("/api/v1/jobs/1/plans")));
}
TEST(QuestionTest, ALongAddressIsNotRepeated) {
  EXPECT_LT(WhyRefused(Get(std::string(10'000, 'x'))).size(), 500u);
}

// "" if it is for this server.
std::string WhyForeign(const std::string& host, const std::string& origin, bool tls,
                       const HostNames& names = {"siding.example.org", "[fd00::1]"}) {
  HttpRequest request{.method = "GET", .path = "/", .headers = {{"Host", host}}};
  request.peer.tls = tls;
  if (!origin.empty()) request.headers.emplace_back("Origin", origin);
  const auto refusal = RefuseForeign(request, names);
  return refusal ? absl::StrCat(refusal->status, " ", refusal->why) : "";
}
TEST(QuestionTest, TheNamesOfThePageAreItsOwn) {
  for (const bool tls : {false, true}) {
    for (const char* host :
         {"siding.example.org", "Siding.Example.Org:8443", "[fd00::1]:1", "localhost:7480"})
      EXPECT_EQ(WhyForeign(host, "", tls), "") << host;
    for (const char* host :
         {"siding.example.org.evil.example", "evil.siding.example.org", "example.org", "10.0.0.1",
          "siding.example.org.", "siding.example.org:x", "siding.example.org@evil.example", "fd00::1",
          "siding.example.org, localhost", ""})
      EXPECT_THAT(WhyForeign(host, "", tls), HasSubstr("421 host: '")) << host;
  }
  EXPECT_THAT(WhyForeign("evil.example", "", true), HasSubstr("[fd00::1], siding.example.org (page_names)"));
  EXPECT_THAT(WhyForeign("siding.example.org", "", true, {}), HasSubstr("421 host: '"));
}
TEST(QuestionTest, AnOriginIsTheAddressUnderWhichItIsKnown) {
  const std::string name = "siding.example.org";
  EXPECT_EQ(WhyForeign(name, "https://siding.example.org", true), "");
  EXPECT_EQ(WhyForeign(name, "https://siding.example.org", false), "") << "by a proxy, which has TLS";
  EXPECT_EQ(WhyForeign("localhost:7480", "http://localhost:7480", false), "");
  EXPECT_EQ(WhyForeign("localhost:7480", "https://localhost:7480", true), "");
  for (const bool tls : {false, true}) {
    for (const char* origin :
         {"http://siding.example.org", "https://siding.example.org:8443", "https://evil.example",
          "https://siding.example.org.evil.example", "null", "https://localhost"})
      EXPECT_THAT(WhyForeign(name, origin, tls), HasSubstr("403 origin: '")) << origin;
  }
  EXPECT_THAT(WhyForeign("localhost:7480", "http://localhost:7480", true), HasSubstr("403 origin: '"));
}

}  // namespace
}  // namespace siding::page
