// What the page's server asks, asked of the active controller in the name of whoever runs sidingctl, and the
// orders that are given there: what it answers is what he may see, and what is done is what he may order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/controllers.h"
#include "common/mutex.h"
#include "page/server/orders.h"
#include "page/server/source.h"

namespace siding::cli {

// Events as they happen, one stream for all who follow, read by a thread of its own. Thread-safe.
class LiveEvents {
 public:
  // Those that follow on `after`.
  LiveEvents(const Connection& connection, int64_t after);
  ~LiveEvents();

  // Ends the stream.
  void Cancel() { controllers_.Cancel(); }
  // Behind this one come those that Take() has next.
  int64_t position() const;
  // Waits up to `wait` for the first event. An error: all have been taken, and no more come.
  absl::StatusOr<page::Source::Part> Take(Duration wait);

 private:
  void Read(int64_t after);
  bool Keep(v1::Event event);  // false: nobody wants it any more

  // Nobody has taken them: the controller waits.
  static constexpr size_t kMostKept = 4 * page::Source::kMostEvents;

  Controllers controllers_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<v1::Event> kept_ ABSL_GUARDED_BY(mutex_);
  int64_t position_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // not OK: the stream has ended
  bool unwanted_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reading_;
};

// Where there are several controllers each call looks once for the active one: a page is not kept waiting for
// a take-over, it is told and comes back. Questions may come from one thread and events from another.
class PageSource final : public page::Source, public page::Orders {
 public:
  // A page waits a little longer for an answer.
  static constexpr Duration kToAnswer = std::chrono::seconds(15);

  explicit PageSource(const Connection& connection, Duration to_answer = kToAnswer);

  // Ends the calls that are under way, and each later one, with kCancelled. From any thread.
  void Stop();

  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) override;
  absl::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) override;
  absl::Status PlanRequest(const v1::SubmitRequest& request, v1::Plan& response) override;
  absl::Status ListCheckpoints(const v1::ListCheckpointsRequest& request,
                               v1::ListCheckpointsResponse& response) override;
  absl::Status ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) override;
  absl::Status Site(const v1::Empty& request, v1::SiteInfo& response) override;
  absl::Status ListTrends(const v1::Empty& request, v1::TrendsResponse& response) override;
  absl::Status ShowPolicy(const v1::Empty& request, v1::PolicyInForce& response) override;
  absl::StatusOr<int64_t> NewestEvent() override;
  absl::StatusOr<Part> EventsAfter(int64_t after, Duration wait) override;
  absl::Status Here() override;
  absl::Status PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) override;
  absl::Status Order(const v1::PageOrder& order, v1::PageOrdered& response) override;

 private:
  std::shared_ptr<LiveEvents> live() const;
  // From before those that are live, for a page that comes back. What has come when it takes too long is a
  // part, were it only how far the controller has looked. kDeadlineExceeded: nothing has.
  absl::StatusOr<Part> EarlierEvents(int64_t after);

  template <class Request, class Response>
  absl::Status Ask(Controllers& controllers,
                   grpc::Status (Controllers::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, Response& response, Repeat repeat = Repeat::kYes) const;
  absl::Status InWords(const absl::Status& status) const;
  void SetDeadline(grpc::ClientContext& context) const;

  const Connection connection_;
  const Duration to_answer_;
  Controllers questions_;
  Controllers earlier_;
  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<LiveEvents> live_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::cli
