// Answers that are no data, and what every answer has.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "page/server/http.h"

namespace siding::page {

// No body; protected against other sites' pages and scripts.
HttpResponse Bare(int status);
// As the API says it: {"error": {"status", "message"}}. `allow`: the methods that there are, with 405.
HttpResponse Refuse(int status, const std::string& why, const std::string& allow = "GET, HEAD");
// Of a controller that stands by with which one is active, as `active`.
HttpResponse Refuse(const absl::Status& why);
// As what HTTP has an error of the API.
int HttpStatusOf(const absl::Status& status);

}  // namespace siding::page
