// Requests to the operators' page: address, fields, headers and body, as its server hands them over. The
// first line is the method and the path, the second the fields after ?, each other one a header; what follows
// on an empty line is the body.
#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/utf8.h"
#include "page/server/door.h"
#include "page/server/errand.h"
#include "page/server/order_desk.h"
#include "page/server/planning_time.h"
#include "page/server/question.h"
#include "tests/fuzz/input.h"

namespace siding {
namespace {

constexpr char kToken[] = "the-token";
const page::HostNames kNames{"siding.example.org", "[fd00::1]"};

page::HttpRequest RequestOf(const std::string& text) {
  page::HttpRequest request;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  // The second line may be empty: there are no fields then.
  if (const auto body = std::find(lines.begin() + std::min<size_t>(2, lines.size()), lines.end(), "");
      body != lines.end()) {
    request.body = absl::StrJoin(body + 1, lines.end(), "\n");
    lines.erase(body, lines.end());
  }
  const std::pair<std::string, std::string> first = absl::StrSplit(lines[0], absl::MaxSplits(' ', 1));
  request.method = first.first;
  request.path = first.second;
  for (size_t i = 1; i < lines.size(); ++i) {
    const char* const between = i == 1 ? "&" : "\r";
    for (const auto field : absl::StrSplit(lines[i], between, absl::SkipEmpty())) {
      (i == 1 ? request.query : request.headers)
          .emplace_back(absl::StrSplit(field, absl::MaxSplits(i == 1 ? '=' : ':', 1)));
    }
  }
  request.peer.tls = text.size() % 2 == 0;
  return request;
}

void CheckRefusal(const page::Refusal& refusal) {
  fuzz::Expect(refusal.status >= 400 && refusal.status < 500, "a refusal is the client's fault");
  fuzz::Expect(!refusal.why.empty() && refusal.why.size() < 2000, "a refusal says why, and is short");
}

// Nobody comes in without the token or the cookie.
void CheckDoor(const page::HttpRequest& request) {
  page::Door door("the-key", "the-session");
  const auto stopped = door.Stop(request);
  if (!stopped) {
    bool has_it = false;
    for (const auto& [name, value] : request.headers) has_it |= absl::StrContains(value, "the-session");
    fuzz::Expect(has_it, "who comes in has the session's cookie");
    fuzz::Expect(!page::RefuseForeign(request), "another site's page does not come in");
    return;
  }
  fuzz::Expect(stopped->status == 303 || (stopped->status >= 400 && stopped->status < 500), "it says why");
  if (stopped->body == nullptr) return;
  // The fuzzer sees what is compared, so in the end it asks with the secret itself, and may get its own words
  // back.
  const auto has_secret = [&](const auto& field) {
    return absl::StrContains(field.second, door.OrderToken());
  };
  const bool knows_it = std::any_of(request.headers.begin(), request.headers.end(), has_secret) ||
                        std::any_of(request.query.begin(), request.query.end(), has_secret) ||
                        absl::StrContains(request.path, door.OrderToken());
  fuzz::Expect(knows_it || !absl::StrContains(*stopped->body, door.OrderToken()), "no secret is told");
}

void CheckQuestion(const page::HttpRequest& request) {
  const auto read = page::ReadQuestion(request, kNames);
  const auto again = page::ReadQuestion(request, kNames);
  fuzz::Expect(read.index() == again.index(), "the same request is read the same way");
  if (const auto* refusal = std::get_if<page::Refusal>(&read)) return CheckRefusal(*refusal);
  const auto& question = std::get<page::Question>(read);
  fuzz::Expect(request.method == "GET" || request.method == "HEAD", "only reading is allowed");
  fuzz::Expect(request.Header("host").has_value(), "there is one host");
  fuzz::Expect(absl::StartsWith(question.key, "/api/v1/"), "the key has the address");
  fuzz::Expect(question.key == std::get<page::Question>(again).key, "the same question has the same key");
  if (const auto* events = std::get_if<page::FollowEvents>(&question.what))
    fuzz::Expect(events->after.value_or(0) >= 0, "sequences are not negative");
}

void CheckAction(const v1::ActionRequest& action) {
  fuzz::Expect(action.job() > 0 ? action.node().empty() : !action.node().empty(), "it is of a job or a node");
  fuzz::Expect(!FindNotUtf8(action.node()), "a node's name is text");
  for (const std::string& node : action.nodes()) fuzz::Expect(!FindNotUtf8(node), "nodes' names are text");
}

// Takes all orders, and notes how many.
class Taking final : public page::Orders {
 public:
  absl::Status PlanAction(const v1::ActionRequest&, v1::ActionPlan&) override { return absl::OkStatus(); }
  absl::Status Order(const v1::PageOrder&, v1::PageOrdered&) override {
    ++given;
    return absl::OkStatus();
  }
  int given = 0;
};

void CheckErrand(const page::HttpRequest& request) {
  const page::Errand errand = page::ReadErrand(request, kToken);
  Taking orders;
  const FakeClock clock;
  page::PlanningBudget planning(clock,
                                std::make_shared<page::PlanningTime>(clock, page::PlanningTime::kOfAll));
  page::OrderDesk desk(orders, kToken, planning);
  const int first = desk.Answer(request).status, second = desk.Answer(request).status;
  fuzz::Expect(first == second, "what is sent again is answered as before");
  fuzz::Expect(orders.given <= 1, "and not done again");
  if (const auto* refusal = std::get_if<page::Refusal>(&errand)) {
    fuzz::Expect(orders.given == 0, "of what is refused nothing is done");
    return CheckRefusal(*refusal);
  }
  if (std::holds_alternative<page::AskToken>(errand)) return;
  fuzz::Expect(request.method == "POST" && request.Header("Siding-Token") == kToken,
               "orders are posts with the session's token");
  if (const auto* plan = std::get_if<page::AskPlan>(&errand)) return CheckAction(plan->action);
  const v1::PageOrder& order = std::get<page::GiveOrder>(errand).order;
  CheckAction(order.action());
  fuzz::Expect(orders.given == 1 && order.if_unchanged() > 0 && !order.key().empty(),
               "an order rests on something, and has a key");
}

}  // namespace
}  // namespace siding

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const page::HttpRequest request = RequestOf(fuzz::TextOf(data, size));
  CheckDoor(request);
  CheckQuestion(request);
  if (page::IsErrand(request)) CheckErrand(request);
  return 0;
}
