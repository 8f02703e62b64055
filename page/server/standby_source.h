// While a controller stands by there is nothing to tell but which one is active: every question is refused
// with that.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "page/server/source.h"

namespace siding::page {

struct ActiveController {
  std::string name;  // "pid 4711 on head1 (head1:7433)"
  std::string host;  // that it is on
  std::string
      page;  // where its page is for browsers of that host: "http://127.0.0.1:7480"; empty: it has none
  bool is_here = false;  // that host is this one
};

// kUnavailable; the message says which one is active, and ActiveIn() the rest.
absl::Status StandsBy(const ActiveController& active);
// As JSON; nothing, if the error is another one.
std::optional<std::string> ActiveIn(const absl::Status& error);

// Thread-safe.
class StandbySource final : public Source {
 public:
  void SetActive(ActiveController active);

  absl::Status ListJobs(const v1::ListJobsRequest&, v1::ListJobsResponse&) override { return Refusal(); }
  absl::Status Explain(const v1::ExplainRequest&, v1::ExplainResponse&) override { return Refusal(); }
  absl::Status PlanRequest(const v1::SubmitRequest&, v1::Plan&) override { return Refusal(); }
  absl::Status ListCheckpoints(const v1::ListCheckpointsRequest&, v1::ListCheckpointsResponse&) override {
    return Refusal();
  }
  absl::Status ListNodes(const v1::ListNodesRequest&, v1::ListNodesResponse&) override { return Refusal(); }
  absl::Status Site(const v1::Empty&, v1::SiteInfo&) override { return Refusal(); }
  absl::Status ListTrends(const v1::Empty&, v1::TrendsResponse&) override { return Refusal(); }
  absl::Status ShowPolicy(const v1::Empty&, v1::PolicyInForce&) override { return Refusal(); }
  absl::StatusOr<int64_t> NewestEvent() override { return Refusal(); }
  absl::StatusOr<Part> EventsAfter(int64_t, Duration) override { return Refusal(); }

 private:
  absl::Status Refusal() const;

  mutable Mutex mutex_;
  ActiveController active_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::page
