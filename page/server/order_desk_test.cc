#include "page/server/order_desk.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "page/server/planning_time.h"

namespace siding::page {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class FakeOrders final : public Orders {
 public:
  absl::Status PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) override {
    response.set_verb(request.verb());
    response.set_sequence(40);
    return answer;
  }
  absl::Status Order(const v1::PageOrder& order, v1::PageOrdered& response) override {
    given.push_back(order.action().verb());
    if (answer.ok()) response.set_checkpoint("17.1");
    return answer;
  }

  absl::Status answer;
  std::vector<std::string> given;
};

class OrderDeskTest : public testing::Test {
 protected:
  HttpResponse Post(const std::string& path, const std::string& body) {
    return desk_.Answer(
        {.method = "POST",
         .path = path,
         .headers = {{"Host", "localhost"}, {"Siding-Token", "token"}, {"Content-Type", "application/json"}},
         .body = body});
  }
  HttpResponse Order(const std::string& verb, const std::string& key) {
    return Post("/api/v1/orders",
                absl::StrCat(R"({"action": {"verb": ")", verb,
                             R"(", "job": 17}, "if_unchanged": 40, "key": ")", key, R"("})"));
  }
  static std::string Why(const HttpResponse& response) {
    return json::parse(*response.body)["error"]["message"].get<std::string>();
  }
  static std::string HeaderOf(const HttpResponse& response, const std::string& name) {
    for (const auto& [other, value] : response.headers) {
      if (other == name) return value;
    }
    return "";
  }

  FakeOrders orders_;
  FakeClock clock_;
  PlanningBudget planning_{clock_, std::make_shared<PlanningTime>(clock_, PlanningTime::kOfAll)};
  OrderDesk desk_{orders_, "token", planning_};
};

TEST_F(OrderDeskTest, ThePageIsToldTheTokenOfItsSessionAndNoBrowserKeepsIt) {
  const HttpResponse response =
      desk_.Answer({.method = "GET", .path = "/api/v1/session", .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(json::parse(*response.body), json::parse(R"({"order_token": "token"})"));
  EXPECT_EQ(HeaderOf(response, "Cache-Control"), "no-store");
  EXPECT_THAT(HeaderOf(response, "Content-Security-Policy"), HasSubstr("'none'"));
}
TEST_F(OrderDeskTest, APlanIsToldAndNothingIsDone) {
  const HttpResponse response = Post("/api/v1/plans", R"({"verb": "kill", "job": 17})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(*response.body)["sequence"], "40");
  EXPECT_EQ(HeaderOf(response, "Cache-Control"), "no-store");
  EXPECT_TRUE(orders_.given.empty());
}
TEST_F(OrderDeskTest, AnOrderIsGivenOnceHoweverOftenItIsSent) {
  for (int i = 0; i < 3; ++i) {
    const HttpResponse response = Order("checkpoint", "k");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(json::parse(*response.body)["checkpoint"], "17.1");
  }
  EXPECT_EQ(orders_.given, std::vector<std::string>{"checkpoint"});
  Order("checkpoint", "k2");
  EXPECT_EQ(orders_.given.size(), 2u);
}
TEST_F(OrderDeskTest, AKeyIsOfOneOrder) {
  Order("checkpoint", "k");
  const HttpResponse other = Order("kill", "k");
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(Why(other), "key: it is that of another order; nothing was done");
  EXPECT_EQ(orders_.given.size(), 1u);
}
// Of that nothing was done.
TEST_F(OrderDeskTest, WhatWasRefusedMayBeTriedAgain) {
  const std::pair<absl::Status, int> refusals[] = {{absl::FailedPreconditionError("changed"), 409},
                                                   {absl::NotFoundError("no such job"), 404},
                                                   {absl::PermissionDeniedError("not yours"), 403},
                                                   {absl::ResourceExhaustedError("limits.calls is 1"), 429},
                                                   {absl::InvalidArgumentError("no"), 400},
                                                   {absl::UnauthenticatedError("who"), 401},
                                                   {absl::UnavailableError("none is active"), 503}};
  for (const auto& [refusal, status] : refusals) {
    orders_.answer = refusal;
    const HttpResponse response = Order("kill", "k");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(Why(response), refusal.message());
  }
  orders_.answer = absl::OkStatus();
  EXPECT_EQ(Order("kill", "k").status, 200);
  EXPECT_EQ(orders_.given.size(), 8u);
}
TEST_F(OrderDeskTest, WhatMayHaveBeenDoneIsNotDoneAgain) {
  int number = 0;
  for (const absl::Status& open :
       {absl::UnknownError("it went away"), absl::AbortedError("it went away"),
        absl::DeadlineExceededError("it went away"), absl::CancelledError("it went away"),
        absl::InternalError("it went away")}) {
    const std::string key = absl::StrCat("k", ++number);
    orders_.answer = open;
    for (int i = 0; i < 2; ++i) {
      const HttpResponse response = Order("kill", key);
      EXPECT_EQ(response.status, absl::IsDeadlineExceeded(open) ? 504 : 502);
      EXPECT_EQ(Why(response), "it is not known whether this was carried out: it went away");
      orders_.answer = absl::OkStatus();
    }
  }
  EXPECT_EQ(orders_.given.size(), 5u);
}
TEST_F(OrderDeskTest, OfManyKeysTheOldestAreForgotten) {
  for (int i = 0; i <= 1000; ++i) Order("kill", absl::StrCat(i));
  Order("kill", "1");
  EXPECT_EQ(orders_.given.size(), 1001u);
  Order("kill", "0");
  EXPECT_EQ(orders_.given.size(), 1002u);
}
TEST_F(OrderDeskTest, ARefusalSaysWhichMethodThereIs) {
  const HttpResponse response =
      desk_.Answer({.method = "GET", .path = "/api/v1/orders", .headers = {{"Host", "localhost"}}});
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response, "Allow"), "POST");
}

}  // namespace
}  // namespace siding::page
