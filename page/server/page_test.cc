// What is answered, over the API's service, without a server.
#include "page/server/page.h"

#include <deque>
#include <functional>

#include "common/gzip.h"
#include "controller/api/calls_fixture.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "page/server/service_source.h"

namespace siding::page {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class PageTest : public CallsTest {
 protected:
  int64_t Submit(const std::string& user) {
    JobSpec spec;
    spec.command = {"secret-work"};
    spec.name = "heat";
    spec.uid = 1000;
    spec.user = user;
    spec.methods = {Method::kKill};
    spec.per_node.slots = 1;
    const auto submitted = engine_.Submit(Caller{1000, user, false}, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    clock_.Advance(std::chrono::seconds(1));  // what has been shown is over
    return submitted.ok() ? submitted->id.value() : 0;
  }
  void SetPrivate(bool jobs) {
    engine_.SetPolicy(Policy{.private_jobs = jobs});
    clock_.Advance(std::chrono::seconds(1));
  }
  HttpResponse Get(const std::string& path, HttpFields headers = {}) {
    headers.emplace_back("Host", "localhost");
    return page_.Answer({.method = "GET", .path = path, .headers = std::move(headers)});
  }
  json Shown(const std::string& path, HttpFields query = {}) {
    return ShownBy(page_, path, std::move(query));
  }
  static json ShownBy(Page& page, const std::string& path, HttpFields query = {}) {
    const HttpResponse response = page.Answer(
        {.method = "GET", .path = path, .query = std::move(query), .headers = {{"Host", "localhost"}}});
    EXPECT_EQ(response.status, 200) << *response.body;
    return json::parse(*response.body);
  }
  // Since that version.
  json Changes(const json& version) { return Shown("/api/v1/jobs/changes", {{"after", version}}); }
  static std::string HeaderOf(const HttpResponse& response, const std::string& name) {
    for (const auto& [other, value] : response.headers) {
      if (other == name) return value;
    }
    return "";
  }

  const std::vector<File> files_{{"/", "text/html", "<p>"}, {"/page.js", "text/javascript", "1;"}};
  ServiceSource source_{service_};
  Page page_{source_, clock_, files_};
};

TEST_F(PageTest, ThePagesFilesAreThereBesideTheApi) {
  const HttpResponse script = Get("/page.js");
  EXPECT_EQ(script.status, 200);
  EXPECT_EQ(script.content_type, "text/javascript");
  EXPECT_EQ(*script.body, "1;");
  EXPECT_THAT(HeaderOf(script, "Content-Security-Policy"), HasSubstr("script-src 'self'"));
  EXPECT_EQ(*Get("/").body, "<p>");
  EXPECT_EQ(Get("/page.js", {{"If-None-Match", HeaderOf(script, "ETag")}}).status, 304);
  EXPECT_EQ(Get("/other.js").status, 404);
}

TEST_F(PageTest, APagesFileIsRefusedToWhomAllElseIs) {
  const auto status = [&](const std::string& method, const std::string& host) {
    return page_.Answer({.method = method, .path = "/page.js", .headers = {{"Host", host}}}).status;
  };
  EXPECT_EQ(status("GET", "localhost"), 200);
  EXPECT_EQ(status("POST", "localhost"), 405);
  EXPECT_EQ(status("GET", "evil.example"), 421);
}

TEST_F(PageTest, WhereThePageWasNotBuiltThatIsSaid) {
  Page bare(source_, clock_, {});
  const HttpResponse response =
      bare.Answer({.method = "GET", .path = "/", .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(*response.body, HasSubstr("it was built without it (SIDING_PAGE)"));
}

TEST_F(PageTest, TheMessagesOfTheApiAreShownWithTheirFieldsNames) {
  EXPECT_EQ(Shown("/api/v1/site")["cluster_manager"], "");
  EXPECT_EQ(Shown("/api/v1/nodes"), json::parse(R"({"nodes": []})"));
  EXPECT_THAT(Shown("/api/v1/policy")["yaml"].get<std::string>(), HasSubstr("operators: [ada]\n"));
  EXPECT_EQ(Shown("/api/v1/checkpoints"), json::parse(R"({"checkpoints": []})"));
}
TEST_F(PageTest, JobsAreShownWhereThePolicyLetsAllSeeThem) {
  SetPrivate(false);
  const std::string id = std::to_string(Submit("ada"));
  EXPECT_EQ(Shown("/api/v1/jobs")["jobs"][0]["id"], id);
  EXPECT_EQ(Shown("/api/v1/jobs/" + id)["jobs"][0]["state"], "pending");
}
TEST_F(PageTest, WhatTheyRunIsNotShownEvenThen) {
  SetPrivate(false);
  Submit("ada");
  EXPECT_THAT(*Get("/api/v1/jobs").body, Not(HasSubstr("secret-work")));
}
TEST_F(PageTest, PrivateJobsAreNowhere) {
  const std::string id = std::to_string(Submit("ada"));
  const auto events = Get("/api/v1/events", {{"Last-Event-ID", "0"}});
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  EXPECT_EQ(Shown("/api/v1/jobs"), json::parse(R"({"jobs": []})"));
  for (const std::string& path : {"/api/v1/jobs/" + id, "/api/v1/jobs/" + id + "/plans"}) {
    EXPECT_EQ(Get(path).status, 404);
    EXPECT_THAT(*Get(path).body, Not(HasSubstr("ada")));
  }
  std::string text(10'000, '\0');
  text.resize(static_cast<size_t>(events.stream->Read(
      text.data(), text.size(), [] {}, [] {})));
  EXPECT_THAT(text, Not(HasSubstr("data:")));
}
TEST_F(PageTest, WhatIsDifferentInAListIsTold) {
  SetPrivate(false);
  for (int i = 0; i < 3; ++i) Submit("ada");
  const json whole = Changes("");
  EXPECT_EQ(whole["whole"], true);
  EXPECT_EQ(whole["jobs"], Shown("/api/v1/jobs")["jobs"]);
  const std::string id = std::to_string(Submit("ada"));
  const json changes = Changes(whole["version"]);
  EXPECT_EQ(changes["whole"], false);
  ASSERT_EQ(changes["jobs"].size(), 1);
  EXPECT_EQ(changes["jobs"][0]["id"], id);
  const HttpResponse same = Get("/api/v1/jobs/changes");
  EXPECT_EQ(HeaderOf(same, "ETag"), "W/\"" + std::string(changes["version"]) + "\"");
  EXPECT_EQ(Get("/api/v1/jobs/changes", {{"If-None-Match", HeaderOf(same, "ETag")}}).status, 304);
}
// What its reader may not see any more has gone for him.
TEST_F(PageTest, WhatBecomesPrivateIsGoneFromAList) {
  SetPrivate(false);
  const std::string id = std::to_string(Submit("ada"));
  const json before = Changes("");
  SetPrivate(true);
  const json changes = Changes(before["version"]);
  EXPECT_EQ(changes["jobs"], json::array());
  EXPECT_EQ(changes["gone"], json::array({id}));
  EXPECT_EQ(changes["whole"], false);
}
// Another process, or another controller: it knows nothing of what this one has told.
TEST_F(PageTest, AListOfAnotherServerIsToldWhole) {
  SetPrivate(false);
  for (int i = 0; i < 3; ++i) Submit("ada");
  const json known = Changes("");
  Page restarted(source_, clock_, files_);
  for (Page* page : {&restarted, &page_}) {
    const json answer = ShownBy(*page, "/api/v1/jobs/changes", {{"after", known["version"]}});
    EXPECT_EQ(answer["whole"], page == &restarted);
    EXPECT_EQ(answer["jobs"].size(), page == &restarted ? 3 : 0);
  }
}
TEST_F(PageTest, PlansAreForThoseWhoMayActOnTheJob) {
  SetPrivate(false);
  const std::string id = std::to_string(Submit("ada"));
  EXPECT_EQ(Get("/api/v1/jobs/" + id + "/plans").status, 403);
}
// Each open page asks again and again, and nobody is named by it.
TEST_F(PageTest, WhatIsRefusedToStrangersIsNotInTheLog) {
  SetPrivate(false);
  const std::string id = std::to_string(Submit("ada"));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Get("/api/v1/jobs/" + id + "/plans").status, 403);
  EXPECT_EQ(Get("/api/v1/jobs/999").status, 404);
  EXPECT_THAT(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(),
              Not(HasSubstr("refused")));
}
TEST_F(PageTest, ErrorsAreJsonThatSaysWhy) {
  const HttpResponse response = Get("/api/v1/jobs/17");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.content_type, "application/json");
  const json error = json::parse(*response.body)["error"];
  EXPECT_EQ(error["status"], 404);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("17"));
}
TEST_F(PageTest, ErrorsAboutWhatIsNoTextAreJsonAsWell) {
  const HttpResponse response = Get("/\xff\"\n");
  EXPECT_EQ(response.status, 404);
  EXPECT_FALSE(json::parse(*response.body)["error"]["message"].get<std::string>().empty());
}
TEST_F(PageTest, AStateThatThereIsNotIsRefusedWithThoseThereAre) {
  const HttpResponse response = page_.Answer({.method = "GET",
                                              .path = "/api/v1/jobs",
                                              .query = {{"state", "runing"}},
                                              .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(*response.body, HasSubstr("state 'runing': expected pending, "));
}
TEST_F(PageTest, OtherMethodsAreToldWhichThereAre) {
  const HttpResponse response =
      page_.Answer({.method = "POST", .path = "/api/v1/jobs", .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response, "Allow"), "GET, HEAD");
}
TEST_F(PageTest, EveryResponseIsProtected) {
  for (const char* path : {"/api/v1/nodes", "/api/v1/events", "/none"}) {
    const HttpResponse response = Get(path);
    EXPECT_THAT(HeaderOf(response, "Content-Security-Policy"),
                HasSubstr("default-src 'none'; script-src 'self';"))
        << path;
    EXPECT_EQ(HeaderOf(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(HeaderOf(response, "Cross-Origin-Resource-Policy"), "same-origin");
  }
}
TEST_F(PageTest, AllWhoAskAtAMomentHaveTheSameBytes) {
  const HttpResponse first = Get("/api/v1/nodes"), second = Get("/api/v1/nodes");
  EXPECT_EQ(first.body, second.body);
}
TEST_F(PageTest, WhoHasItAlreadyIsNotSentItAgain) {
  const std::string tag = HeaderOf(Get("/api/v1/nodes"), "ETag");
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_EQ(tag.substr(0, 3), "W/\"");
  for (const std::string& tags : {tag, tag.substr(2), "\"x\", " + tag, std::string("*")}) {
    const HttpResponse again = Get("/api/v1/nodes", {{"If-None-Match", tags}});
    EXPECT_EQ(again.status, 304) << tags;
    EXPECT_EQ(again.body, nullptr);
    EXPECT_EQ(HeaderOf(again, "ETag"), tag);
  }
  EXPECT_EQ(Get("/api/v1/nodes", {{"If-None-Match", "\"x\""}}).status, 200);
}
TEST_F(PageTest, WhoTakesItPackedIsSentItPacked) {
  for (int i = 0; i < 5; ++i) Submit("ada");
  SetPrivate(false);
  const HttpResponse plain = Get("/api/v1/jobs"),
                     packed = Get("/api/v1/jobs", {{"Accept-Encoding", "gzip, br"}});
  EXPECT_EQ(HeaderOf(plain, "Content-Encoding"), "");
  EXPECT_EQ(HeaderOf(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(*packed.body, Gzip(*plain.body));
  EXPECT_EQ(HeaderOf(packed, "ETag"), HeaderOf(plain, "ETag"));
  for (const HttpResponse* each : {&plain, &packed}) EXPECT_EQ(HeaderOf(*each, "Vary"), "Accept-Encoding");
}
TEST_F(PageTest, AnAnswerSaysHowOldItIsAndAFileDoesNot) {
  EXPECT_EQ(HeaderOf(Get("/api/v1/nodes"), "Siding-Age"), "0");
  clock_.Advance(std::chrono::microseconds(100'001));
  EXPECT_EQ(HeaderOf(Get("/api/v1/nodes"), "Siding-Age"), "101");
  const std::string tag = HeaderOf(Get("/api/v1/nodes"), "ETag");
  EXPECT_EQ(HeaderOf(Get("/api/v1/nodes", {{"If-None-Match", tag}}), "Siding-Age"), "101");
  EXPECT_EQ(HeaderOf(Get("/page.js"), "Siding-Age"), "");
}
TEST_F(PageTest, WhatOneReaderMaySeeNoBrowserKeeps) {
  Page own(source_, clock_, files_, Readers::kOne);
  const auto kept = [](Page& page, const std::string& path) {
    return HeaderOf(page.Answer({.method = "GET", .path = path, .headers = {{"Host", "localhost"}}}),
                    "Cache-Control");
  };
  EXPECT_EQ(kept(own, "/api/v1/nodes"), "no-store");
  EXPECT_EQ(kept(own, "/page.js"), "no-cache");
  EXPECT_EQ(kept(page_, "/api/v1/nodes"), "no-cache");
}
TEST_F(PageTest, WhatIsShortIsSentPlain) {
  const HttpResponse script = Get("/page.js", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(HeaderOf(script, "Content-Encoding"), "");
  EXPECT_EQ(*script.body, "1;");
}
TEST_F(PageTest, EventsFollowWithTheJournalsSequence) {
  cluster_.Attach(engine_);
  const HttpResponse response = Get("/api/v1/events");
  EXPECT_EQ(response.content_type, "text/event-stream");
  cluster_.AddNode("n1");
  engine_.Tick();
  ASSERT_TRUE(engine_.Cordon(Caller{0, "root", true}, NodeId("n1"), true).ok());
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  std::string text(10'000, '\0');
  text.resize(static_cast<size_t>(response.stream->Read(
      text.data(), text.size(), [] {}, [] {})));
  const size_t data = text.find("\ndata: ");
  ASSERT_NE(data, std::string::npos) << text;
  const size_t begin = data + 7;
  const json event = json::parse(text.substr(begin, text.find('\n', begin) - begin));
  EXPECT_THAT(text, HasSubstr("\nid: " + event["seq"].get<std::string>() + "\ndata: "));
  EXPECT_THAT(event["text"].get<std::string>(), HasSubstr("n1"));
}
// The calls' limits are the service's, whichever way a call comes.
TEST_F(PageTest, ThePagesCallsAreCounted) {
  ApiService limited(engine_, policy_, {.calls = 1});
  ServiceSource source(limited);
  Page page(source, clock_);
  const CallSlots::Slot other(limited.calls(), 1000);
  const HttpResponse response =
      page.Answer({.method = "GET", .path = "/api/v1/nodes", .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(*response.body, HasSubstr("limits.calls is 1"));
}

// Plans name jobs, and cost time.
TEST_F(PageTest, NoPlanIsMadeForAStranger) {
  const HttpResponse response = page_.Answer({.method = "GET",
                                              .path = "/api/v1/plan",
                                              .query = {{"start_by_us", "earliest"}},
                                              .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(*response.body, HasSubstr("plans are made for users"));
}

// Of whom the page is not told whether he is there.
class AwaySource final : public Source {
 public:
  absl::Status ListJobs(const v1::ListJobsRequest&, v1::ListJobsResponse& response) override {
    for (int64_t id = 1; id <= 3; ++id) response.add_jobs()->set_id(id);
    return Answer();
  }
  absl::Status Explain(const v1::ExplainRequest&, v1::ExplainResponse&) override { return Answer(); }
  absl::Status PlanRequest(const v1::SubmitRequest&, v1::Plan&) override {
    planned();
    return Answer();
  }
  absl::Status ListCheckpoints(const v1::ListCheckpointsRequest&, v1::ListCheckpointsResponse&) override {
    return Answer();
  }
  absl::Status ListNodes(const v1::ListNodesRequest&, v1::ListNodesResponse&) override { return Answer(); }
  absl::Status Site(const v1::Empty&, v1::SiteInfo&) override { return Answer(); }
  absl::Status ListTrends(const v1::Empty&, v1::TrendsResponse&) override { return Answer(); }
  absl::Status ShowPolicy(const v1::Empty&, v1::PolicyInForce&) override { return Answer(); }
  absl::StatusOr<int64_t> NewestEvent() override {
    if (!answer.ok()) return answer;
    return 5;
  }
  absl::StatusOr<Part> EventsAfter(int64_t after, Duration) override {
    if (!answer.ok()) return answer;
    if (!events.ok()) return events;
    return Part{.next = after};
  }

  absl::Status answer;
  absl::Status events;
  std::function<void()> planned = [] {};
  int asked = 0;

 private:
  absl::Status Answer() {
    ++asked;
    return answer;
  }
};

class AwayPageTest : public testing::Test {
 protected:
  HttpResponse Get(const std::string& path) {
    clock_.Advance(std::chrono::seconds(1));  // what has been shown is over
    return GetAtOnce(path);
  }
  HttpResponse GetAtOnce(const std::string& path) {
    return page_.Answer({.method = "GET", .path = path, .headers = {{"Host", "localhost"}}});
  }

  AwaySource source_;
  FakeClock clock_;
  Page page_{source_, clock_, {}};
};

TEST_F(AwayPageTest, OneWhoDoesNotAnswerIsNotAskedAgainUntilHeIsBack) {
  const HttpResponse stream = Get("/api/v1/events");
  EXPECT_EQ(Get("/api/v1/nodes").status, 200);
  source_.answer = absl::UnavailableError("no controller is active");
  EXPECT_EQ(Get("/api/v1/nodes").status, 502);
  EXPECT_TRUE(stream.stream->HasEnded());
  EXPECT_EQ(source_.asked, 2);
  for (const char* path : {"/api/v1/nodes", "/api/v1/jobs", "/api/v1/events"}) {
    ASSERT_EQ(Get(path).status, 502) << path;
    EXPECT_THAT(*Get(path).body, HasSubstr("no controller is active"));
  }
  EXPECT_EQ(source_.asked, 2);
  EXPECT_FALSE(page_.Turn(Duration(0)).ok());
  source_.answer = absl::OkStatus();
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  EXPECT_EQ(Get("/api/v1/nodes").status, 200);
  EXPECT_FALSE(Get("/api/v1/events").stream->HasEnded());
}
TEST_F(AwayPageTest, OneWhoAnswersTooLateIsAwayAsWell) {
  source_.answer = absl::DeadlineExceededError("no answer within 10s");
  EXPECT_EQ(Get("/api/v1/jobs").status, 504);
  EXPECT_EQ(Get("/api/v1/jobs").status, 504);
  EXPECT_EQ(source_.asked, 1);
}
// Others wait for theirs, and it is one who compares plans that is answered too late.
TEST_F(AwayPageTest, PlansThatTakeTooLongAreThatQuestionsAlone) {
  const HttpResponse stream = Get("/api/v1/events");
  source_.answer = absl::DeadlineExceededError("no answer within 10s");
  EXPECT_EQ(Get("/api/v1/jobs/1/plans").status, 504);
  EXPECT_FALSE(stream.stream->HasEnded());
  source_.answer = absl::OkStatus();
  EXPECT_EQ(Get("/api/v1/nodes").status, 200);
  source_.answer = absl::UnavailableError("gone");
  EXPECT_EQ(Get("/api/v1/jobs/1/plans").status, 502);
  EXPECT_TRUE(stream.stream->HasEnded());
}
TEST_F(AwayPageTest, PlansTakeAPartOfTheTime) {
  source_.planned = [&] { clock_.Advance(std::chrono::milliseconds(700)); };
  int number = 0;
  const auto plan = [&] {
    return page_.Answer({.method = "GET",
                         .path = "/api/v1/plan",
                         .query = {{"nodes", absl::StrCat(++number)}, {"start_by_us", "9"}},
                         .headers = {{"Host", "localhost"}}});
  };
  int made = 0;
  while (plan().status == 200) ++made;
  EXPECT_EQ(made, 4) << "2 s at once, of which a fifth is paid back meanwhile";
  EXPECT_EQ(plan().status, 429);
  EXPECT_THAT(*plan().body, HasSubstr("try again in "));
  EXPECT_EQ(GetAtOnce("/api/v1/nodes").status, 200) << "all else is answered";
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(plan().status, 200);
}
// They are made on one thread, on which all others wait.
TEST_F(AwayPageTest, PlansOfAllReadersTogetherTakeAPartOfTheTime) {
  source_.planned = [&] { clock_.Advance(std::chrono::milliseconds(700)); };
  const auto frame = std::make_shared<PageFrame>(PageFrame{clock_, StaticFiles(std::vector<File>()), {}});
  std::deque<Page> pages;
  for (int i = 0; i < 20; ++i) pages.emplace_back(source_, frame, Readers::kOne);
  const auto plan = [](Page& page) {
    return page.Answer({.method = "GET",
                        .path = "/api/v1/plan",
                        .query = {{"start_by_us", "9"}},
                        .headers = {{"Host", "localhost"}}});
  };
  int made = 0;
  for (Page& page : pages) made += plan(page).status == 200 ? 1 : 0;
  EXPECT_EQ(made, 11) << "4 s at once, of which half is paid back meanwhile";
  EXPECT_THAT(*plan(pages.back()).body, HasSubstr("may take one part in 2 of the time: try again in "));
  EXPECT_EQ(GetAtOnce("/api/v1/nodes").status, 200);
}
TEST_F(AwayPageTest, APlanThatTakesTooLongIsThatQuestionsAlone) {
  const HttpResponse stream = Get("/api/v1/events");
  source_.answer = absl::DeadlineExceededError("no answer within 10s");
  const HttpResponse plan = page_.Answer({.method = "GET",
                                          .path = "/api/v1/plan",
                                          .query = {{"start_by_us", "9"}},
                                          .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(plan.status, 504);
  EXPECT_FALSE(stream.stream->HasEnded());
}
TEST_F(AwayPageTest, WhereEventsAreRefusedAllElseIsAnswered) {
  source_.events = absl::ResourceExhaustedError("limits.streams is 1");
  EXPECT_FALSE(page_.Turn(Duration(0)).ok());
  EXPECT_EQ(Get("/api/v1/events").status, 429);
  EXPECT_THAT(*Get("/api/v1/events").body, HasSubstr("limits.streams is 1"));
  EXPECT_EQ(Get("/api/v1/nodes").status, 200);
}
TEST_F(AwayPageTest, AListOfOneWhoWasAwaySinceIsToldWhole) {
  const auto whole = [&](const std::string& after) {
    clock_.Advance(std::chrono::seconds(1));
    const HttpResponse response = page_.Answer({.method = "GET",
                                                .path = "/api/v1/jobs/changes",
                                                .query = {{"after", after}},
                                                .headers = {{"Host", "localhost"}}});
    return json::parse(*response.body);
  };
  const json first = whole(""), second = whole(first["version"]);
  EXPECT_EQ(second["whole"], false);
  source_.answer = absl::UnavailableError("gone");
  EXPECT_EQ(Get("/api/v1/jobs/changes").status, 502);
  source_.answer = absl::OkStatus();
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  const json third = whole(second["version"]);
  EXPECT_EQ(third["whole"], true);
  EXPECT_EQ(third["jobs"].size(), 3);
}
// It may be another one, with another journal.
TEST_F(AwayPageTest, WhatOneSaidWhoWasAwaySinceIsNotSaidAgain) {
  EXPECT_EQ(GetAtOnce("/api/v1/nodes").status, 200);
  EXPECT_EQ(GetAtOnce("/api/v1/nodes").status, 200);
  EXPECT_EQ(source_.asked, 1);
  source_.answer = absl::UnavailableError("gone");
  EXPECT_FALSE(page_.Turn(Duration(0)).ok());
  source_.answer = absl::OkStatus();
  EXPECT_TRUE(page_.Turn(Duration(0)).ok());
  EXPECT_EQ(GetAtOnce("/api/v1/nodes").status, 200);
  EXPECT_EQ(source_.asked, 2);
}
TEST_F(AwayPageTest, OneWhoRefusesIsThere) {
  source_.answer = absl::PermissionDeniedError("not yours");
  EXPECT_EQ(Get("/api/v1/jobs").status, 403);
  EXPECT_EQ(Get("/api/v1/jobs").status, 403);
  EXPECT_EQ(source_.asked, 2);
}

// Whoever reads this one may give orders.
class DeskPageTest : public AwayPageTest, public Orders {
 protected:
  absl::Status PlanAction(const v1::ActionRequest&, v1::ActionPlan&) override {
    ++planned_;
    clock_.Advance(takes_);
    return absl::OkStatus();
  }
  absl::Status Order(const v1::PageOrder&, v1::PageOrdered&) override { return absl::OkStatus(); }
  int Status(const std::string& host = "localhost", const std::string& origin = "http://localhost") {
    const HttpResponse response = own_.Answer({.method = "POST",
                                               .path = "/api/v1/plans",
                                               .headers = {{"Host", host},
                                                           {"Origin", origin},
                                                           {"Content-Type", "application/json"},
                                                           {"Siding-Token", "token"}},
                                               .body = R"({"verb": "kill", "job": 1})"});
    return response.status;
  }

  int planned_ = 0;
  Duration takes_{0};
  Page own_{source_, clock_, {}, Readers::kOne, {this, "token"}};
};

TEST_F(DeskPageTest, WhatIsOrderedGoesToTheDeskAndAllElseIsAsked) {
  EXPECT_EQ(Status(), 200);
  EXPECT_EQ(planned_, 1);
  EXPECT_EQ(
      own_.Answer({.method = "GET", .path = "/api/v1/nodes", .headers = {{"Host", "localhost"}}}).status,
      200);
}
TEST_F(DeskPageTest, OtherSitesPagesOrderNothing) {
  EXPECT_EQ(Status("evil.example", "http://evil.example"), 421);
  EXPECT_EQ(Status("localhost", "http://evil.example"), 403);
  EXPECT_EQ(Status("localhost", "null"), 403);
  EXPECT_EQ(planned_, 0);
}
// As those of requests that are not submitted: all readers wait meanwhile.
TEST_F(DeskPageTest, PlansOfOrdersTakeAPartOfTheTime) {
  takes_ = std::chrono::milliseconds(700);
  while (Status() == 200) continue;
  EXPECT_EQ(Status(), 429);
  EXPECT_EQ(planned_, 4);
  const HttpResponse other = own_.Answer({.method = "GET",
                                          .path = "/api/v1/plan",
                                          .query = {{"start_by_us", "9"}},
                                          .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(other.status, 200) << "who tries things out has another part, and leaves this one alone";
}
TEST_F(DeskPageTest, NobodyWhoIsAwayIsAskedForAPlan) {
  source_.answer = absl::UnavailableError("no controller is active");
  EXPECT_FALSE(own_.Turn(Duration(0)).ok());
  EXPECT_EQ(Status(), 502);
  EXPECT_EQ(planned_, 0);
}
// sidingd's own page: nobody has said who reads it.
TEST_F(PageTest, APageForEverybodyTakesNoOrders) {
  for (const char* path : {"/api/v1/orders", "/api/v1/plans", "/api/v1/session"}) {
    EXPECT_EQ(page_.Answer({.method = "POST", .path = path, .headers = {{"Host", "localhost"}}}).status, 405);
    EXPECT_EQ(Get(path).status, 404) << path;
  }
}

TEST_F(PageTest, IsServedUntilItsEnd) {
  auto server = PageServer::Start({.address = "127.0.0.1:0"}, source_, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->port(), 0);
  EXPECT_EQ((*server)->address(), absl::StrCat("http://127.0.0.1:", (*server)->port()));
}

}  // namespace
}  // namespace siding::page
