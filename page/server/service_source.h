// The service in this process, asked in a reader's name, and the orders that he gives: as a stranger he sees
// what the policy lets every user see, and orders nothing.
#pragma once

#include <utility>

#include "controller/api/service.h"
#include "page/server/orders.h"
#include "page/server/source.h"

namespace siding::page {

// No user's: nobody has this number, and no account such a name.
UserIdentity Stranger();

// Thread-safe.
class ServiceSource final : public Source, public Orders {
 public:
  // `api` must outlive it.
  explicit ServiceSource(ApiService& api, UserIdentity reader = Stranger())
      : api_(api), reader_{std::move(reader)} {}

  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) override;
  absl::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) override;
  absl::Status PlanRequest(const v1::SubmitRequest& request, v1::Plan& response) override;
  absl::Status ListCheckpoints(const v1::ListCheckpointsRequest& request,
                               v1::ListCheckpointsResponse& response) override;
  absl::Status ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) override;
  absl::Status Site(const v1::Empty& request, v1::SiteInfo& response) override;
  absl::Status ListTrends(const v1::Empty& request, v1::TrendsResponse& response) override;
  absl::Status ShowPolicy(const v1::Empty& request, v1::PolicyInForce& response) override;
  absl::StatusOr<int64_t> NewestEvent() override { return api_.NewestEvent(); }
  absl::StatusOr<Part> EventsAfter(int64_t after, Duration wait) override;
  absl::Status PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) override;
  absl::Status Order(const v1::PageOrder& order, v1::PageOrdered& response) override;

 private:
  // The limits of calls are the service's, whichever way they come.
  template <class Request, class Response>
  absl::Status Call(absl::Status (ApiService::*call)(const ApiCall&, const Request*, Response*),
                    const Request& request, Response& response);

  ApiService& api_;
  const ApiCall reader_;
};

}  // namespace siding::page
