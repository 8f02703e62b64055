#include "page/server/page.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "page/server/answers.h"
#include "page/server/gzip.h"
#include "page/server/json.h"
#include "page/server/pages.h"

namespace siding::page {
namespace {

// The weak comparison of HTTP: whether one of them is this one, or any will do.
bool Names(const std::string& tags, absl::string_view tag) {
  absl::ConsumePrefix(&tag, "W/");
  for (absl::string_view other : absl::StrSplit(tags, ',')) {
    other = absl::StripAsciiWhitespace(other);
    absl::ConsumePrefix(&other, "W/");
    if (other == tag || other == "*") return true;
  }
  return false;
}

absl::StatusOr<FeedPart> ReadEvents(Source& source, int64_t after, Duration wait) {
  const auto part = source.EventsAfter(after, wait);
  if (!part.ok()) return part.status();
  FeedPart feed{.next = part->next, .more = part->more};
  for (const v1::Event& event : part->events) feed.events.push_back({event.seq(), ToJson(event)});
  return feed;
}

// Of a server that takes orders.
HttpOptions WithBodies(HttpOptions options) {
  options.longest_body = kLongestErrand;
  return options;
}

// In whole milliseconds, and rather more than less.
std::string AgeOf(const Snapshot& snapshot, Time asked) {
  return absl::StrCat(
      std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration(0), asked - snapshot.since)).count());
}

}  // namespace

Page::Page(Source& source, std::shared_ptr<const PageFrame> frame, Readers readers, const PageLimits& limits,
           OrderAccess access)
    : source_(source),
      frame_(std::move(frame)),
      readers_(readers),
      limits_(limits),
      snapshots_(frame_->clock, kMoment, kMostUnread, frame_->unread, limits.unread),
      planning_(frame_->clock, frame_->planning),
      planning_orders_(frame_->clock, frame_->planning_orders),
      feed_({.newest = [&source] { return source.NewestEvent(); },
             .read = [&source](int64_t after, Duration wait) { return ReadEvents(source, after, wait); },
             .here = [&source] { return source.Here(); }},
            frame_->clock, limits.stream) {
  if (access.orders != nullptr) desk_.emplace(*access.orders, std::move(access.token), planning_orders_);
}

Page::Page(Source& source, const Clock& clock, const std::vector<File>& files, Readers readers,
           OrderAccess access)
    : Page(source, std::make_shared<PageFrame>(PageFrame{clock, StaticFiles(files), {}}), readers,
           PageLimits(), std::move(access)) {}

absl::Status Page::Turn(Duration wait) {
  snapshots_.Forget();
  lists_.Forget();
  return feed_.Turn(wait);
}

template <class Request, class Response>
absl::StatusOr<Response> Page::Ask(absl::Status (Source::*call)(const Request&, Response&),
                                   const Request& request) {
  Response response;
  const absl::Status status = (source_.*call)(request, response);
  // Plans may take too long, or wait behind others'; all else is answered meanwhile.
  constexpr bool kPlans =
      std::is_same_v<Request, v1::ExplainRequest> || std::is_same_v<Request, v1::SubmitRequest>;
  const bool of_this_question = kPlans && absl::IsDeadlineExceeded(status);
  if (IsAway(status) && !of_this_question) feed_.Leave(status);
  if (!status.ok()) return status;
  return response;
}

template <class Request, class Response>
absl::StatusOr<std::string> Page::Call(absl::Status (Source::*call)(const Request&, Response&),
                                       const Request& request) {
  const auto response = Ask(call, request);
  if (!response.ok()) return response.status();
  return ToJson(*response);
}

absl::StatusOr<std::string> Page::TellPlan(const PlanRequest& plan) {
  return planning_.Spend([&] { return Call(&Source::PlanRequest, plan.request); });
}

absl::StatusOr<std::string> Page::Tell(const Question& question) {
  const auto& what = question.what;
  if (const auto* jobs = std::get_if<ListJobs>(&what)) return Call(&Source::ListJobs, jobs->request);
  if (const auto* job = std::get_if<ExplainJob>(&what)) return Call(&Source::Explain, job->request);
  if (const auto* plan = std::get_if<PlanRequest>(&what)) return TellPlan(*plan);
  if (const auto* of = std::get_if<ListCheckpoints>(&what))
    return Call(&Source::ListCheckpoints, of->request);
  if (std::holds_alternative<ListNodes>(what)) return Call(&Source::ListNodes, v1::ListNodesRequest());
  if (std::holds_alternative<ListTrends>(what)) return Call(&Source::ListTrends, v1::Empty());
  if (std::holds_alternative<ShowPolicy>(what)) return Call(&Source::ShowPolicy, v1::Empty());
  return Call(&Source::Site, v1::Empty());
}

HttpResponse Page::Answer(const HttpRequest& request) {
  if (auto answer = AnswerErrand(request)) return *std::move(answer);
  const auto read = ReadQuestion(request, frame_->names);
  if (const auto* refusal = std::get_if<Refusal>(&read)) {
    // Who asks, and how, is well where nothing but the address is not known to the API.
    const auto* file = refusal->status == 404 ? frame_->files.Find(request.path) : nullptr;
    if (file != nullptr) return Send(request, file->snapshot, file->content_type, "no-cache");
    const bool not_built = frame_->files.empty() && request.path == "/";
    return Refuse(
        refusal->status,
        not_built ? "the page is not in this program: it was built without it (SIDING_PAGE)" : refusal->why);
  }
  const auto& question = std::get<Question>(read);
  // Nobody waits for the same silence again: the feed finds out when it is over.
  if (const absl::Status standing = feed_.standing(); !standing.ok()) return Refuse(standing);
  if (const auto* events = std::get_if<FollowEvents>(&question.what)) return Follow(*events);
  return AnswerWhole(request, question);
}

std::optional<HttpResponse> Page::AnswerErrand(const HttpRequest& request) {
  if (!desk_ || !IsErrand(request) || RefuseForeign(request, frame_->names)) return std::nullopt;
  if (const absl::Status standing = feed_.standing(); !standing.ok()) return Refuse(standing);
  return desk_->Answer(request);
}

absl::StatusOr<Snapshot> Page::SnapshotOf(const Question& question) {
  // One that has come back may be another one, with another journal.
  const std::string era = absl::StrCat(feed_.comebacks(), " ");
  if (const auto* changes = std::get_if<ListJobChanges>(&question.what)) {
    const v1::ListJobsRequest& request = changes->request;
    return lists_.Of(absl::StrCat(era, "list ", request.SerializeAsString()), changes->after,
                     [&] { return Ask(&Source::ListJobs, request); });
  }
  return snapshots_.Of(era + question.key, [&] { return Tell(question); });
}

HttpResponse Page::AnswerWhole(const HttpRequest& request, const Question& question) {
  const Time asked = frame_->clock.Now();
  const auto snapshot = SnapshotOf(question);
  if (!snapshot.ok()) return Refuse(snapshot.status());
  HttpResponse response =
      Send(request, *snapshot, "application/json", readers_ == Readers::kOne ? "no-store" : "no-cache");
  response.headers.emplace_back("Siding-Age", AgeOf(*snapshot, asked));
  return response;
}

HttpResponse Page::Send(const HttpRequest& request, const Snapshot& snapshot, const std::string& content_type,
                        const std::string& cache_control) {
  const bool known = Names(request.Header("If-None-Match").value_or(""), snapshot.tag);
  HttpResponse response = Bare(known ? 304 : 200);
  response.content_type = content_type;
  const bool packed = snapshot.packed != nullptr && TakesGzip(request.Header("Accept-Encoding").value_or(""));
  if (!known) response.body = packed ? snapshot.packed : snapshot.body;
  if (!known && packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  response.headers.emplace_back("ETag", snapshot.tag);
  response.headers.emplace_back("Cache-Control", cache_control);
  return response;
}

HttpResponse Page::Follow(const FollowEvents& events) {
  if (const absl::Status refusal = feed_.refusal(); !refusal.ok()) return Refuse(refusal);
  if (feed_.followers() >= limits_.streams) {
    return Refuse(
        429, absl::StrCat("you have ", limits_.streams,
                          " streams of events already; limits.waiting_calls_per_user is ", limits_.streams));
  }
  HttpResponse response = Bare(200);
  response.content_type = "text/event-stream";
  response.stream = feed_.Follow(events.after);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

PageServer::PageServer(const HttpOptions& options, Source& source, Readers readers, Sessions* sessions,
                       const Clock& clock, OrderAccess access)
    : clock_(clock),
      scheme_(options.tls ? "https" : "http"),
      host_(options.address.substr(0, options.address.rfind(':'))),
      pages_(std::make_unique<Pages>(
          source, std::make_shared<PageFrame>(PageFrame{clock, StaticFiles(Files()), options.names}), readers,
          sessions, std::move(access))) {}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const HttpOptions& options, Source& source,
                                                              const Clock& clock) {
  std::unique_ptr<PageServer> started(new PageServer(options, source, Readers::kAll, nullptr, clock));
  SIDING_RETURN_IF_ERROR(started->Serve(options, [pages = started->pages_.get()](const HttpRequest& request) {
    return pages->Answer(request);
  }));
  return started;
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const HttpOptions& options, Source& source,
                                                              Orders& orders, Door& door,
                                                              const Clock& clock) {
  std::unique_ptr<PageServer> started(
      new PageServer(options, source, Readers::kOne, nullptr, clock, {&orders, door.OrderToken()}));
  SIDING_RETURN_IF_ERROR(
      started->Serve(WithBodies(options), [pages = started->pages_.get(), &door](const HttpRequest& request) {
        auto stopped = door.Stop(request);
        return stopped ? *std::move(stopped) : pages->Answer(request);
      }));
  return started;
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const HttpOptions& options, Sessions& sessions,
                                                              Source& strangers, const Clock& clock) {
  std::unique_ptr<PageServer> started(new PageServer(options, strangers, Readers::kAll, &sessions, clock));
  SIDING_RETURN_IF_ERROR(started->Serve(
      WithBodies(options),
      [pages = started->pages_.get()](const HttpRequest& request) { return pages->Answer(request); }));
  return started;
}

absl::Status PageServer::Serve(const HttpOptions& options, HttpHandler handler) {
  SIDING_ASSIGN_OR_RETURN(server_, HttpServer::Listen(options, std::move(handler)));
  feeding_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

std::string PageServer::address() const { return absl::StrCat(scheme_, "://", host_, ":", port()); }

void PageServer::Run() {
  for (;;) {
    const absl::Status turned = pages_->Turn(kEventWait);
    server_->CutSlow(clock_.Now());
    MutexLock lock(mutex_);
    const Duration pause = turned.ok() ? kEventPause : kAwayPause;
    stop_.WaitFor(mutex_, pause, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
  }
}

PageServer::~PageServer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  if (feeding_.joinable()) feeding_.join();
  pages_->End();
  server_.reset();
}

}  // namespace siding::page
