// What a request asks of the page's server: read from its method, address and headers. A pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "page/server/http.h"
#include "siding/v1/api.pb.h"

namespace siding::page {

struct ListJobs {
  v1::ListJobsRequest request;
};
// How that list has changed.
struct ListJobChanges {
  v1::ListJobsRequest request;
  std::string after;  // the version since which; empty: the whole
};
struct ExplainJob {
  v1::ExplainRequest request;
};
// What would be done for a request that is not submitted.
struct PlanRequest {
  v1::SubmitRequest request;
};
struct ListCheckpoints {
  v1::ListCheckpointsRequest request;
};
struct ListNodes {};
struct ShowSite {};
struct ListTrends {};
struct ShowPolicy {};
struct FollowEvents {
  std::optional<int64_t> after;  // none: from now on
};

struct Question {
  std::variant<ListJobs, ListJobChanges, ExplainJob, PlanRequest, ListCheckpoints, ListNodes, ShowSite,
               ListTrends, ShowPolicy, FollowEvents>
      what;
  // The same for all that ask the same.
  std::string key;
};
struct Refusal {
  int status = 400;
  std::string why;                  // what was expected
  std::string allow = "GET, HEAD";  // the methods that there are
};

// What is not for this server at all; nothing, if it is: a Host that is neither the loopback's nor one of
// `names`, by which another site's page would read it; another Origin; what a browser asks of the API for
// another site's page.
std::optional<Refusal> RefuseForeign(const HttpRequest& request, const HostNames& names = {});
// The port that its reader sees, which may be that of a tunnel's beginning; 80 where Host names none.
int PortOf(const HttpRequest& request);

// Refused is what RefuseForeign() refuses, and what this server does not know.
std::variant<Question, Refusal> ReadQuestion(const HttpRequest& request, const HostNames& names = {});

}  // namespace siding::page
