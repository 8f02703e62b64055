// What a request asks to be done, or planned: read from its method, address, headers and body. A pure
// function.
#pragma once

#include <string>
#include <variant>

#include "page/server/http.h"
#include "page/server/question.h"
#include "siding/v1/page.pb.h"

namespace siding::page {

// So many bytes of a body are read. An order has some hundreds, and more where it names many nodes.
inline constexpr size_t kLongestErrand = 16 << 10;
// The header that has the session's token: another site's page can neither read nor, without asking, send
// it.
inline constexpr char kTokenHeader[] = "Siding-Token";

// The session's token.
struct AskToken {};
struct AskPlan {
  v1::ActionRequest action;
};
struct GiveOrder {
  v1::PageOrder order;
};

// Whether a request is for what is read here, by its address.
bool IsErrand(const HttpRequest& request);

using Errand = std::variant<AskToken, AskPlan, GiveOrder, Refusal>;
// Of one. `token` is that of its session; what is not this server's (RefuseForeign) has been refused.
Errand ReadErrand(const HttpRequest& request, const std::string& token);

}  // namespace siding::page
