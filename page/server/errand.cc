#include "page/server/errand.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"
#include "page/server/secret.h"

namespace siding::page {
namespace {

constexpr char kSession[] = "/api/v1/session";
constexpr char kPlans[] = "/api/v1/plans";
constexpr char kOrders[] = "/api/v1/orders";
constexpr size_t kLongestKey = 64;
constexpr size_t kLongestComplaint = 256;

struct Verb {
  const char* name;
  bool is_of_node;
  bool has_plan;
  bool has_tier;
  bool has_nodes;
};
constexpr std::array<Verb, 10> kVerbs{{{"suspend", false, true, false, false},
                                       {"checkpoint", false, true, true, false},
                                       {"vacate", false, true, true, false},
                                       {"migrate", false, true, false, true},
                                       {"kill", false, true, false, false},
                                       {"cordon", true, true, false, false},
                                       {"resume", false, false, false, false},
                                       {"hold", false, false, false, false},
                                       {"release", false, false, false, false},
                                       {"uncordon", true, false, false, false}}};

Refusal Bad(const std::string& field, const std::string& expected) {
  return {400, absl::StrCat(field, ": expected ", expected)};
}

bool IsKey(const std::string& key) {
  return !key.empty() && key.size() <= kLongestKey && std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

bool IsText(const std::string& text) { return !FindNotUtf8(text) && text.find('\0') == std::string::npos; }

std::optional<Refusal> CheckAction(const v1::ActionRequest& action, bool is_order) {
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& each) {
    return action.verb() == each.name && (is_order || each.has_plan);
  });
  if (verb == kVerbs.end()) {
    std::vector<std::string> names;
    for (const Verb& each : kVerbs) {
      if (is_order || each.has_plan) names.emplace_back(each.name);
    }
    return Bad("verb", absl::StrJoin(names, ", "));
  }
  const auto none = [&](const char* field) { return Bad(field, absl::StrCat("none for ", verb->name)); };
  if (verb->is_of_node && action.job() != 0) return none("job");
  if (!verb->is_of_node && !action.node().empty()) return none("node");
  if (!verb->is_of_node && action.job() <= 0) return Bad("job", "the number of one");
  if (verb->is_of_node && (action.node().empty() || !IsText(action.node()))) return Bad("node", "its name");
  if (!verb->has_tier && action.tier() != v1::TIER_UNSPECIFIED) return none("tier");
  if (!verb->has_nodes && !action.nodes().empty()) return none("nodes");
  if (!std::all_of(action.nodes().begin(), action.nodes().end(), IsText)) return Bad("nodes", "their names");
  return std::nullopt;
}

// Headers and length: all that is known before the body is looked at.
std::optional<Refusal> CheckPost(const HttpRequest& request, const std::string& token) {
  if (request.method != "POST") return Refusal{405, "expected POST", "POST"};
  if (!SameSecret(request.Header(kTokenHeader).value_or(""), token)) {
    return Refusal{403, absl::StrCat(kTokenHeader, ": it is not this session's; ", kSession,
                                     " tells it, and the page does when it is loaded again")};
  }
  const std::string type = request.Header("Content-Type").value_or("");
  const std::pair<std::string, std::string> parts = absl::StrSplit(type, absl::MaxSplits(';', 1));
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first), "application/json"))
    return Refusal{415, "Content-Type: expected application/json"};
  if (request.has_body || request.body.size() > kLongestErrand) {
    return Refusal{
        413, absl::StrCat("expected a body of at most ", kLongestErrand, " bytes, and its Content-Length")};
  }
  return std::nullopt;
}

template <class Message>
std::optional<Refusal> Parse(const std::string& body, Message& message) {
  constexpr char kNot[] = "the body is no JSON of an order";
  if (FindNotUtf8(body)) return Refusal{400, absl::StrCat(kNot, ": it is not UTF-8")};
  const auto parsed = google::protobuf::util::JsonStringToMessage(body, &message);
  if (parsed.ok()) return std::nullopt;
  const std::string why = ToUtf8(std::string(parsed.message()).substr(0, kLongestComplaint));
  return Refusal{400, absl::StrCat(kNot, ": ", why)};
}

Errand ReadPlan(const HttpRequest& request) {
  AskPlan plan;
  if (auto refusal = Parse(request.body, plan.action)) return *refusal;
  if (auto refusal = CheckAction(plan.action, false)) return *refusal;
  return plan;
}

Errand ReadOrder(const HttpRequest& request) {
  GiveOrder give;
  if (auto refusal = Parse(request.body, give.order)) return *refusal;
  if (auto refusal = CheckAction(give.order.action(), true)) return *refusal;
  if (give.order.if_unchanged() <= 0) return Bad("if_unchanged", "the sequence of a plan");
  if (!IsKey(give.order.key()))
    return Bad("key", absl::StrCat("up to ", kLongestKey, " letters, digits, - and _"));
  return give;
}

}  // namespace

bool IsErrand(const HttpRequest& request) {
  return request.path == kSession || request.path == kPlans || request.path == kOrders;
}

Errand ReadErrand(const HttpRequest& request, const std::string& token) {
  if (!request.query.empty()) return Refusal{400, "expected nothing after ?"};
  if (request.path == kSession) {
    if (request.method != "GET") return Refusal{405, "expected GET", "GET"};
    if (request.has_body || !request.body.empty()) return Refusal{413, "expected a request without a body"};
    return AskToken{};
  }
  if (auto refusal = CheckPost(request, token)) return *refusal;
  return request.path == kPlans ? ReadPlan(request) : ReadOrder(request);
}

}  // namespace siding::page
