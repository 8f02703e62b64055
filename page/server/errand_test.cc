#include "page/server/errand.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "page/server/secret.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kToken[] = "the-token";
constexpr char kOrder[] =
    R"({"action": {"verb": "vacate", "job": "17", "tier": "LOCAL"}, "if_unchanged": "40", "key": "k-1"})";

HttpRequest Post(const std::string& path, const std::string& body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"Host", "localhost"}, {"siding-token", kToken}, {"Content-Type", "application/json"}},
          .body = body};
}
void Set(HttpRequest& request, const std::string& name, const std::string& value) {
  std::erase_if(request.headers, [&](const auto& header) { return header.first == name; });
  if (!value.empty()) request.headers.emplace_back(name, value);
}
// "403 ..."; empty: it is taken.
std::string WhyRefused(const HttpRequest& request) {
  const Errand errand = ReadErrand(request, kToken);
  const auto* refusal = std::get_if<Refusal>(&errand);
  return refusal == nullptr ? "" : absl::StrCat(refusal->status, " ", refusal->why);
}
std::string WhyNoOrder(const std::string& body) { return WhyRefused(Post("/api/v1/orders", body)); }
std::string WhyNoPlan(const std::string& body) { return WhyRefused(Post("/api/v1/plans", body)); }
// An order with this action.
std::string Of(const std::string& action) {
  return absl::StrCat(R"({"action": )", action, R"(, "if_unchanged": 1, "key": "k"})");
}

TEST(ErrandTest, AnOrderIsRead) {
  const Errand errand = ReadErrand(Post("/api/v1/orders", kOrder), kToken);
  ASSERT_TRUE(std::holds_alternative<GiveOrder>(errand)) << WhyNoOrder(kOrder);
  const v1::PageOrder& order = std::get<GiveOrder>(errand).order;
  EXPECT_EQ(order.action().verb(), "vacate");
  EXPECT_EQ(order.action().job(), 17);
  EXPECT_EQ(order.action().tier(), v1::LOCAL);
  EXPECT_EQ(order.if_unchanged(), 40);
  EXPECT_EQ(order.key(), "k-1");
}
TEST(ErrandTest, AQuestionForAPlanIsRead) {
  const Errand errand =
      ReadErrand(Post("/api/v1/plans", R"({"verb": "migrate", "job": 3, "nodes": ["n1", "n2"]})"), kToken);
  ASSERT_TRUE(std::holds_alternative<AskPlan>(errand));
  EXPECT_THAT(std::get<AskPlan>(errand).action.nodes(), ElementsAre("n1", "n2"));
}
TEST(ErrandTest, TheTokenIsToldToWhoHasTheSession) {
  HttpRequest get{.method = "GET", .path = "/api/v1/session", .headers = {{"Host", "localhost"}}};
  EXPECT_TRUE(std::holds_alternative<AskToken>(ReadErrand(get, kToken)));
  get.method = "POST";
  EXPECT_EQ(WhyRefused(get), "405 expected GET");
}
TEST(ErrandTest, AllOtherAddressesAreForQuestions) {
  for (const char* path : {"/", "/api/v1/orders/", "/api/v1/order", "/api/v1/jobs", "/api/v1/orders%20"})
    EXPECT_FALSE(IsErrand({.method = "POST", .path = path})) << path;
}
TEST(ErrandTest, OtherMethodsAreToldWhichThereIs) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"}) {
    HttpRequest request = Post("/api/v1/orders", kOrder);
    request.method = method;
    const Errand errand = ReadErrand(request, kToken);
    EXPECT_EQ(std::get<Refusal>(errand).status, 405) << method;
    EXPECT_EQ(std::get<Refusal>(errand).allow, "POST");
  }
}
TEST(ErrandTest, WithoutItsSessionsTokenNothingIsTaken) {
  HttpRequest request = Post("/api/v1/orders", kOrder);
  for (const char* token : {"", "the-tokem", "the-token-", "the-toke"}) {
    Set(request, "siding-token", token);
    EXPECT_THAT(WhyRefused(request), HasSubstr("403 Siding-Token: it is not this session's")) << token;
  }
  Set(request, "siding-token", kToken);
  request.headers.emplace_back("Siding-Token", kToken);
  EXPECT_THAT(WhyRefused(request), HasSubstr("403 ")) << "twice";
  // Nothing is as good as no token where there is none.
  Set(request, "Siding-Token", "");
  Set(request, "siding-token", "");
  EXPECT_EQ(std::get<Refusal>(ReadErrand(request, "")).status, 403);
}
// What other sites' forms can send without being asked for it is no order.
TEST(ErrandTest, OnlyJsonIsTaken) {
  HttpRequest request = Post("/api/v1/orders", kOrder);
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "application/json2"}) {
    Set(request, "Content-Type", type);
    EXPECT_EQ(WhyRefused(request), "415 Content-Type: expected application/json") << type;
  }
  Set(request, "Content-Type", "Application/JSON ; charset=utf-8");
  EXPECT_EQ(WhyRefused(request), "");
}
TEST(ErrandTest, ABodyThatWasNotReadIsTooLong) {
  HttpRequest request = Post("/api/v1/orders", "");
  request.has_body = true;
  EXPECT_EQ(WhyRefused(request), "413 expected a body of at most 16384 bytes, and its Content-Length");
  EXPECT_THAT(WhyNoOrder(std::string(kLongestErrand + 1, ' ')), HasSubstr("413 "));
}
TEST(ErrandTest, WhatIsNoOrderIsRefusedInWords) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("17"), std::string("\xff"),
        std::string(R"({"action": 5})"), std::string(R"({"acton": {}})"),
        std::string(R"({"action": {"job": "x"}})"), std::string(1, '\0'), std::string(kLongestErrand, '[')}) {
    const std::string why = WhyNoOrder(body);
    EXPECT_THAT(why, HasSubstr("400 the body is no JSON of an order")) << body;
    EXPECT_LT(why.size(), 500u);
  }
}
TEST(ErrandTest, AnActionSaysWhatItIsOf) {
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "hop", "job": 1})")),
            "400 verb: expected suspend, checkpoint, vacate, migrate, kill, cordon, resume, hold, release, "
            "uncordon");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "kill"})")), "400 job: expected the number of one");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "kill", "job": -1})")), "400 job: expected the number of one");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "kill", "job": 1, "node": "n1"})")),
            "400 node: expected none for kill");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "kill", "job": 1, "tier": "LOCAL"})")),
            "400 tier: expected none for kill");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "vacate", "job": 1, "nodes": ["n1"]})")),
            "400 nodes: expected none for vacate");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "uncordon", "job": 1, "node": "n1"})")),
            "400 job: expected none for uncordon");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "cordon"})")), "400 node: expected its name");
  EXPECT_EQ(WhyNoOrder(Of(R"({"verb": "cordon", "node": "a\u0000b"})")), "400 node: expected its name");
}
TEST(ErrandTest, OfSomeVerbsThereIsNoPlan) {
  for (const char* verb : {"resume", "hold", "release"}) {
    const std::string action = absl::StrCat(R"({"verb": ")", verb, R"(", "job": 1})");
    EXPECT_EQ(WhyNoOrder(Of(action)), "");
    EXPECT_EQ(WhyNoPlan(action), "400 verb: expected suspend, checkpoint, vacate, migrate, kill, cordon");
  }
}
// An order that rests on nothing could act twice.
TEST(ErrandTest, AnOrderRestsOnAPlanAndHasAKey) {
  const std::string action = R"({"action": {"verb": "kill", "job": 1}, )";
  EXPECT_EQ(WhyNoOrder(action + R"("key": "k"})"), "400 if_unchanged: expected the sequence of a plan");
  EXPECT_EQ(WhyNoOrder(action + R"("if_unchanged": -1, "key": "k"})"),
            "400 if_unchanged: expected the sequence of a plan");
  for (const std::string& key :
       {std::string(), std::string("a b"), std::string("\\n"), std::string(65, 'k')}) {
    EXPECT_EQ(WhyNoOrder(absl::StrCat(action, R"("if_unchanged": 1, "key": ")", key, R"("})")),
              "400 key: expected up to 64 letters, digits, - and _")
        << key;
  }
}
TEST(SecretTest, WhoHasADerivedOneHasNotTheFirst) {
  const std::string secret = DrawSecret(), derived = DeriveSecret(secret, "orders");
  EXPECT_EQ(derived, DeriveSecret(secret, "orders"));
  EXPECT_NE(derived, DeriveSecret(secret, "other"));
  EXPECT_NE(derived, DeriveSecret(DrawSecret(), "orders"));
  EXPECT_EQ(derived.size(), secret.size());
  EXPECT_EQ(derived.find(secret), std::string::npos);
  EXPECT_FALSE(SameSecret("", ""));
}

}  // namespace
}  // namespace siding::page
