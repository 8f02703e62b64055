#include "page/server/page.h"

#include <google/protobuf/util/json_util.h>

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
#include "page/server/answers.h"
#include "page/server/gzip.h"
#include "page/server/standby_source.h"

namespace siding::page {
namespace {

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:  // as of a gateway: this server is there, whom it asks is not
    case absl::StatusCode::kCancelled:
      return 502;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpResponse RefuseFor(const absl::Status& error) {
  const std::string why(error.message());
  if (const auto active = ActiveIn(error)) return RefuseStandingBy(why, *active);
  return Refuse(HttpStatusOf(error), why);
}

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;  // one name for a field in the proto, the documents and here
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!printed.ok())
    return absl::InternalError(absl::StrCat("this cannot be told in JSON: ", std::string(printed.message())));
  return json;
}

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
  for (const v1::Event& event : part->events) {
    auto json = ToJson(event);
    if (json.ok()) feed.events.push_back({event.seq(), *std::move(json)});
  }
  return feed;
}

// In whole milliseconds, and rather more than less.
std::string AgeOf(const Snapshot& snapshot, Time asked) {
  return absl::StrCat(
      std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration(0), asked - snapshot.since)).count());
}

}  // namespace

Page::Page(Source& source, const Clock& clock, const std::vector<File>& files, Readers readers)
    : source_(source),
      clock_(clock),
      files_(files),
      readers_(readers),
      snapshots_(clock, kMoment, kMostUnread),
      feed_({.newest = [&source] { return source.NewestEvent(); },
             .read = [&source](int64_t after, Duration wait) { return ReadEvents(source, after, wait); },
             .here = [&source] { return source.Here(); }},
            clock) {}

template <class Request, class Response>
absl::StatusOr<std::string> Page::Call(absl::Status (Source::*call)(const Request&, Response&),
                                       const Request& request) {
  Response response;
  const absl::Status status = (source_.*call)(request, response);
  // Plans of one job may take too long, or wait behind others'; all else is answered meanwhile.
  const bool of_this_question =
      std::is_same_v<Request, v1::ExplainRequest> && absl::IsDeadlineExceeded(status);
  if (IsAway(status) && !of_this_question) feed_.Leave(status);
  if (!status.ok()) return status;
  return ToJson(response);
}

absl::StatusOr<std::string> Page::Tell(const Question& question) {
  const auto& what = question.what;
  if (const auto* jobs = std::get_if<ListJobs>(&what)) return Call(&Source::ListJobs, jobs->request);
  if (const auto* job = std::get_if<ExplainJob>(&what)) return Call(&Source::Explain, job->request);
  if (const auto* of = std::get_if<ListCheckpoints>(&what))
    return Call(&Source::ListCheckpoints, of->request);
  if (std::holds_alternative<ListNodes>(what)) return Call(&Source::ListNodes, v1::ListNodesRequest());
  if (std::holds_alternative<ShowPolicy>(what)) return Call(&Source::ShowPolicy, v1::Empty());
  return Call(&Source::Site, v1::Empty());
}

HttpResponse Page::Answer(const HttpRequest& request) {
  const auto read = ReadQuestion(request);
  if (const auto* refusal = std::get_if<Refusal>(&read)) {
    // Who asks, and how, is well where nothing but the address is not known to the API.
    const auto* file = refusal->status == 404 ? files_.Find(request.path) : nullptr;
    if (file != nullptr) return Send(request, file->snapshot, file->content_type, "no-cache");
    const bool not_built = files_.empty() && request.path == "/";
    return Refuse(
        refusal->status,
        not_built ? "the page is not in this program: it was built without it (SIDING_PAGE)" : refusal->why);
  }
  const auto& question = std::get<Question>(read);
  // Nobody waits for the same silence again: the feed finds out when it is over.
  if (const absl::Status standing = feed_.standing(); !standing.ok()) return RefuseFor(standing);
  if (const auto* events = std::get_if<FollowEvents>(&question.what)) return Follow(*events);
  return AnswerWhole(request, question);
}

HttpResponse Page::AnswerWhole(const HttpRequest& request, const Question& question) {
  const Time asked = clock_.Now();
  // One that has come back may be another one, with another journal.
  const auto snapshot =
      snapshots_.Of(absl::StrCat(feed_.comebacks(), " ", question.key), [&] { return Tell(question); });
  if (!snapshot.ok()) return RefuseFor(snapshot.status());
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
  if (const absl::Status refusal = feed_.refusal(); !refusal.ok()) return RefuseFor(refusal);
  HttpResponse response = Bare(200);
  response.content_type = "text/event-stream";
  response.stream = feed_.Follow(events.after);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const HttpOptions& options, Source& source,
                                                              const Clock& clock, Door* door) {
  std::unique_ptr<PageServer> started(
      new PageServer(source, clock, door == nullptr ? Readers::kAll : Readers::kOne));
  auto server = HttpServer::Listen(options, [page = &started->page_, door](const HttpRequest& request) {
    auto stopped = door == nullptr ? std::nullopt : door->Stop(request);
    return stopped ? *std::move(stopped) : page->Answer(request);
  });
  if (!server.ok()) return server.status();
  started->server_ = *std::move(server);
  started->feeding_ = std::thread([page_server = started.get()] { page_server->Run(); });
  return started;
}

void PageServer::Run() {
  for (;;) {
    const absl::Status turned = page_.Turn(kEventWait);
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
  page_.End();
  server_.reset();
}

}  // namespace siding::page
