#include "page/server/service_source.h"

#include <utility>

#include "page/server/order_calls.h"

namespace siding::page {

UserIdentity Stranger() { return {kNobody, kNobody, "(page)"}; }

template <class Request, class Response>
absl::Status ServiceSource::Call(absl::Status (ApiService::*call)(const ApiCall&, const Request*, Response*),
                                 const Request& request, Response& response) {
  const CallSlots::Slot slot(api_.calls(), reader_.identity.uid);
  if (!slot.status.ok()) return slot.status;
  return (api_.*call)(reader_, &request, &response);
}

absl::Status ServiceSource::ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) {
  return Call(&ApiService::ListJobs, request, response);
}
absl::Status ServiceSource::Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) {
  return Call(&ApiService::Explain, request, response);
}
absl::Status ServiceSource::PlanRequest(const v1::SubmitRequest& request, v1::Plan& response) {
  return Call(&ApiService::PlanRequest, request, response);
}
absl::Status ServiceSource::ListCheckpoints(const v1::ListCheckpointsRequest& request,
                                            v1::ListCheckpointsResponse& response) {
  return Call(&ApiService::ListCheckpoints, request, response);
}
absl::Status ServiceSource::ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) {
  return Call(&ApiService::ListNodes, request, response);
}
absl::Status ServiceSource::Site(const v1::Empty& request, v1::SiteInfo& response) {
  return Call(&ApiService::Site, request, response);
}
absl::Status ServiceSource::ListTrends(const v1::Empty& request, v1::TrendsResponse& response) {
  return Call(&ApiService::ListTrends, request, response);
}

absl::Status ServiceSource::ShowPolicy(const v1::Empty& request, v1::PolicyInForce& response) {
  return Call(&ApiService::ShowPolicy, request, response);
}

absl::Status ServiceSource::PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) {
  return Call(&ApiService::PlanAction, request, response);
}
absl::Status ServiceSource::Order(const v1::PageOrder& order, v1::PageOrdered& response) {
  return GiveBy<ApiService>(order, response, [&](auto method, const auto& request, auto& answer) {
    return Call(method, request, answer);
  });
}

absl::StatusOr<Source::Part> ServiceSource::EventsAfter(int64_t after, Duration wait) {
  ApiService::EventPart part = api_.EventsAfter(reader_, {}, after, kMostEvents, wait);
  return Part{std::move(part.events), part.next, part.more};
}

}  // namespace siding::page
