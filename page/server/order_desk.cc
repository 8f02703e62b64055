#include "page/server/order_desk.h"

#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "page/server/answers.h"
#include "page/server/json.h"

namespace siding::page {
namespace {

// Whether it was carried out is not known.
bool IsOpen(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

// By 502 and 504 it is not known what became of it: of that which nobody has heard nothing was done.
HttpResponse RefuseOrder(const absl::Status& why) {
  constexpr int kNobodyHeard = 503;
  if (IsOpen(why)) {
    return Refuse(absl::IsDeadlineExceeded(why) ? 504 : 502,
                  absl::StrCat("it is not known whether this was carried out: ", why.message()));
  }
  return absl::IsUnavailable(why) ? Refuse(kNobodyHeard, std::string(why.message())) : Refuse(why);
}

HttpResponse Json(const google::protobuf::Message& message) {
  HttpResponse response = Bare(200);
  response.body = std::make_shared<const std::string>(ToJson(message));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

HttpResponse OrderDesk::Answer(const HttpRequest& request) {
  const Errand errand = ReadErrand(request, token_);
  if (const auto* refusal = std::get_if<Refusal>(&errand))
    return Refuse(refusal->status, refusal->why, refusal->allow);
  if (const auto* plan = std::get_if<AskPlan>(&errand)) return Plan(plan->action);
  if (const auto* give = std::get_if<GiveOrder>(&errand)) return Give(give->order);
  return Tell();
}

HttpResponse OrderDesk::Tell() const {
  v1::PageSession session;
  session.set_order_token(token_);
  return Json(session);
}

HttpResponse OrderDesk::Plan(const v1::ActionRequest& action) {
  v1::ActionPlan plan;
  const absl::Status status = planning_.Spend([&] { return orders_.PlanAction(action, plan); });
  return status.ok() ? Json(plan) : Refuse(status);
}

HttpResponse OrderDesk::Give(const v1::PageOrder& order) {
  const std::string what = order.SerializeAsString();
  MutexLock lock(mutex_);
  if (const auto found = given_.find(order.key()); found != given_.end()) {
    if (found->second.what == what) return found->second.answer;
    return Refuse(409, "key: it is that of another order; nothing was done");
  }
  v1::PageOrdered ordered;
  const absl::Status status = orders_.Order(order, ordered);
  HttpResponse answer = status.ok() ? Json(ordered) : RefuseOrder(status);
  // Of what was refused nothing was done: it may be tried again.
  if (status.ok() || IsOpen(status)) Keep(order.key(), {what, answer});
  return answer;
}

void OrderDesk::Keep(const std::string& key, Given given) {
  given_.emplace(key, std::move(given));
  keys_.push_back(key);
  if (keys_.size() <= kMostKept) return;
  given_.erase(keys_.front());
  keys_.pop_front();
}

}  // namespace siding::page
