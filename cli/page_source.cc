#include "cli/page_source.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/units.h"
#include "page/server/order_calls.h"

namespace siding::cli {
namespace {

using Stub = Controllers::Stub;

// It says how far the controller has looked, and nothing else.
bool IsMark(const v1::Event& event) { return event.kind().empty(); }

void LookOnce(Controllers& controllers) {
  controllers.Outlast(Duration(0), [](const absl::Status&) {});
}

}  // namespace

LiveEvents::LiveEvents(const Connection& connection, int64_t after)
    : controllers_(connection), position_(after) {
  LookOnce(controllers_);
  reading_ = std::thread([this, after] { Read(after); });
}

LiveEvents::~LiveEvents() {
  {
    MutexLock lock(mutex_);
    unwanted_ = true;
    changed_.NotifyAll();
  }
  Cancel();
  reading_.join();
}

void LiveEvents::Read(int64_t after) {
  v1::EventsRequest request;
  request.set_follow(true);
  request.set_after_seq(after);
  request.set_marks(true);
  const auto read = [&](Stub& stub, grpc::ClientContext& context) {
    const auto reader = stub.Events(&context, request);
    v1::Event event;
    while (reader->Read(&event)) {
      request.set_after_seq(event.seq());
      if (Keep(std::move(event))) continue;
      context.TryCancel();
      break;
    }
    return reader->Finish();
  };
  const absl::Status status = controllers_.Call(read, Repeat::kYes);
  MutexLock lock(mutex_);
  // A controller that stops ends its streams well.
  end_ = status.ok() ? absl::UnavailableError("the controller has ended the stream of events") : status;
  changed_.NotifyAll();
}

bool LiveEvents::Keep(v1::Event event) {
  MutexLock lock(mutex_);
  changed_.Wait(
      mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return unwanted_ || kept_.size() < kMostKept; });
  if (unwanted_) return false;
  kept_.push_back(std::move(event));
  changed_.NotifyAll();
  return true;
}

int64_t LiveEvents::position() const {
  MutexLock lock(mutex_);
  return position_;
}

absl::StatusOr<page::Source::Part> LiveEvents::Take(Duration wait) {
  MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, wait,
                   [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !kept_.empty() || !end_.ok(); });
  if (kept_.empty() && !end_.ok()) return end_;
  page::Source::Part part;
  while (!kept_.empty() && part.events.size() < page::Source::kMostEvents) {
    position_ = kept_.front().seq();
    if (!IsMark(kept_.front())) part.events.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
  part.next = position_;
  part.more = !kept_.empty();
  changed_.NotifyAll();
  return part;
}

PageSource::PageSource(const Connection& connection, Duration to_answer)
    : connection_(connection), to_answer_(to_answer), questions_(connection), earlier_(connection) {
  LookOnce(questions_);
  LookOnce(earlier_);
}

void PageSource::Stop() {
  questions_.Cancel();
  earlier_.Cancel();
  MutexLock lock(mutex_);
  stopped_ = true;
  if (live_ != nullptr) live_->Cancel();
}

absl::Status PageSource::InWords(const absl::Status& status) const {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the controller has not answered within ", FormatDuration(to_answer_)));
}

void PageSource::SetDeadline(grpc::ClientContext& context) const {
  context.set_deadline(std::chrono::system_clock::now() + to_answer_);
}

template <class Request, class Response>
absl::Status PageSource::Ask(Controllers& controllers,
                             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                             const Request& request, Response& response, Repeat repeat) const {
  const auto attempt = [&](Stub& stub, grpc::ClientContext& context) {
    SetDeadline(context);
    return (stub.*method)(&context, request, &response);
  };
  return InWords(controllers.Call(attempt, repeat));
}

absl::Status PageSource::ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) {
  return Ask(questions_, &Stub::ListJobs, request, response);
}
absl::Status PageSource::Explain(const v1::ExplainRequest& request, v1::ExplainResponse& response) {
  return Ask(questions_, &Stub::Explain, request, response);
}
absl::Status PageSource::PlanRequest(const v1::SubmitRequest& request, v1::Plan& response) {
  return Ask(questions_, &Stub::PlanRequest, request, response);
}
absl::Status PageSource::ListCheckpoints(const v1::ListCheckpointsRequest& request,
                                         v1::ListCheckpointsResponse& response) {
  return Ask(questions_, &Stub::ListCheckpoints, request, response);
}
absl::Status PageSource::ListNodes(const v1::ListNodesRequest& request, v1::ListNodesResponse& response) {
  return Ask(questions_, &Stub::ListNodes, request, response);
}
absl::Status PageSource::Site(const v1::Empty& request, v1::SiteInfo& response) {
  return Ask(questions_, &Stub::Site, request, response);
}
absl::Status PageSource::ListTrends(const v1::Empty& request, v1::TrendsResponse& response) {
  return Ask(questions_, &Stub::ListTrends, request, response);
}
absl::Status PageSource::ShowPolicy(const v1::Empty& request, v1::PolicyInForce& response) {
  return Ask(questions_, &Stub::ShowPolicy, request, response);
}

absl::Status PageSource::PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) {
  return Ask(questions_, &Stub::PlanAction, request, response);
}

absl::Status PageSource::Order(const v1::PageOrder& order, v1::PageOrdered& response) {
  return page::GiveBy<Stub>(order, response, [&](auto method, const auto& request, auto& answer) {
    return Ask(questions_, method, request, answer, Repeat::kNo);
  });
}

std::shared_ptr<LiveEvents> PageSource::live() const {
  MutexLock lock(mutex_);
  return live_;
}

absl::StatusOr<int64_t> PageSource::NewestEvent() {
  v1::SiteInfo site;
  SIDING_RETURN_IF_ERROR(Ask(earlier_, &Stub::Site, v1::Empty(), site));
  auto live = std::make_shared<LiveEvents>(connection_, site.newest_event());
  MutexLock lock(mutex_);
  if (stopped_) live->Cancel();
  live_.swap(live);  // the one before ends when the lock is given up
  return site.newest_event();
}

absl::StatusOr<page::Source::Part> PageSource::EventsAfter(int64_t after, Duration wait) {
  const std::shared_ptr<LiveEvents> events = live();
  if (events == nullptr) return absl::UnavailableError("no events are followed yet");
  return after == events->position() ? events->Take(wait) : EarlierEvents(after);
}

// The stream of events has no deadline.
absl::Status PageSource::Here() {
  v1::SiteInfo site;
  return Ask(earlier_, &Stub::Site, v1::Empty(), site);
}

absl::StatusOr<page::Source::Part> PageSource::EarlierEvents(int64_t after) {
  v1::EventsRequest request;
  request.set_after_seq(after);
  request.set_marks(true);
  Part part;
  const auto read = [&](Stub& stub, grpc::ClientContext& context) {
    SetDeadline(context);
    part = {.next = after};
    const auto reader = stub.Events(&context, request);
    v1::Event event;
    while (part.events.size() < kMostEvents && reader->Read(&event)) {
      part.next = event.seq();
      if (!IsMark(event)) part.events.push_back(event);
    }
    part.more = part.events.size() == kMostEvents;
    if (part.more) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return part.more ? grpc::Status::OK : status;
  };
  const absl::Status status = earlier_.Call(read, Repeat::kYes);
  if (absl::IsDeadlineExceeded(status) && part.next > after) {
    part.more = true;
    return part;
  }
  if (!status.ok()) return InWords(status);
  return part;
}

}  // namespace siding::cli
