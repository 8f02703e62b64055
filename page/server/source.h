// What the page's server asks, and of whom: of the service in its own process, as a stranger (ServiceSource),
// or of a controller, in the name of whoever runs sidingctl. What is told is what that one may see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"
#include "siding/v1/api.pb.h"

namespace siding::page {

// kUnavailable, kDeadlineExceeded or kCancelled, of each method: whoever is asked does not answer now. But
// Explain's and PlanRequest's kDeadlineExceeded is that question's, whose plans take too long, and
// EventsAfter's that reader's.
class Source {
 public:
  virtual ~Source() = default;

  // ---- Questions, one at a time. Other readers of the page wait meanwhile. ----
  virtual absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) = 0;
  virtual absl::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) = 0;
  virtual absl::Status PlanRequest(const v1::SubmitRequest& request, v1::Plan& response) = 0;
  virtual absl::Status ListCheckpoints(const v1::ListCheckpointsRequest& request,
                                       v1::ListCheckpointsResponse& response) = 0;
  virtual absl::Status ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) = 0;
  virtual absl::Status Site(const v1::Empty& request, v1::SiteInfo& response) = 0;
  virtual absl::Status ListTrends(const v1::Empty& request, v1::TrendsResponse& response) = 0;
  virtual absl::Status ShowPolicy(const v1::Empty& request, v1::PolicyInForce& response) = 0;

  // ---- Events, one call at a time, beside the questions. ----
  static constexpr size_t kMostEvents = 500;  // in a part
  struct Part {
    std::vector<v1::Event> events;  // as far as they may be seen
    int64_t next = 0;               // the sequence on which the next part follows
    bool more = false;              // there is one already, or may be
  };
  // The newest one's sequence. It is asked for before the first events, and again after a call has failed.
  virtual absl::StatusOr<int64_t> NewestEvent() = 0;
  // What follows on `after`; waits for the first event up to `wait`.
  virtual absl::StatusOr<Part> EventsAfter(int64_t after, Duration wait) = 0;
  // Whether whoever is asked is there still, though no events come. One in this process is.
  virtual absl::Status Here() { return absl::OkStatus(); }
};

}  // namespace siding::page
