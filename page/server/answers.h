// Answers that are no data, and what every answer has.
#pragma once

#include <string>

#include "page/server/http.h"

namespace siding::page {

// No body; protected against other sites' pages and scripts.
HttpResponse Bare(int status);
// As the API says it: {"error": {"status", "message"}}.
HttpResponse Refuse(int status, const std::string& why);
// The same of a controller that stands by, with which one is active (JSON) as `active`.
HttpResponse RefuseStandingBy(const std::string& why, const std::string& active);

}  // namespace siding::page
