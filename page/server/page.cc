#include "page/server/page.h"

#include <google/protobuf/util/json_util.h>

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/logging.h"
#include "nlohmann/json.hpp"
#include "page/server/gzip.h"

namespace siding::page {
namespace {

// Nothing but what this server has may be loaded, and nobody else shows it as a part of his.
const HttpFields& Protections() {
  static const HttpFields* const fields =
      new HttpFields{{"Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                      "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
  return *fields;
}

HttpResponse Bare(int status) {
  HttpResponse response;
  response.status = status;
  response.headers = Protections();
  return response;
}

HttpResponse Refuse(int status, const std::string& why) {
  HttpResponse response = Bare(status);
  const nlohmann::json error{{"error", {{"status", status}, {"message", why}}}};
  // Of what a client has written some may be no text.
  response.body = std::make_shared<const std::string>(
      error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  response.headers.emplace_back("Cache-Control", "no-store");
  if (status == 405) response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

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
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
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

FeedPart ReadEvents(ApiService& api, int64_t after, Duration wait) {
  const ApiService::EventPart part = api.EventsAfter({Stranger()}, {}, after, ApiService::kEventBatch, wait);
  FeedPart feed{.next = part.next, .more = part.more};
  for (const v1::Event& event : part.events) {
    auto json = ToJson(event);
    if (json.ok()) feed.events.push_back({event.seq(), *std::move(json)});
  }
  return feed;
}

}  // namespace

UserIdentity Stranger() { return {kNobody, kNobody, "(page)"}; }

Page::Page(ApiService& api, const Clock& clock, const std::vector<File>& files)
    : api_(api),
      files_(files),
      snapshots_(clock, kMoment, kMostUnread),
      feed_({.newest = [&api] { return api.NewestEvent(); },
             .read = [&api](int64_t after, Duration wait) { return ReadEvents(api, after, wait); }},
            clock) {}

template <class Request, class Response>
absl::StatusOr<std::string> Page::Call(absl::Status (ApiService::*call)(const ApiCall&, const Request*,
                                                                        Response*),
                                       const Request& request) {
  const ApiCall stranger{Stranger()};
  const CallSlots::Slot slot(api_.calls(), stranger.identity.uid);
  if (!slot.status.ok()) return slot.status;
  Response response;
  if (const absl::Status status = (api_.*call)(stranger, &request, &response); !status.ok()) return status;
  return ToJson(response);
}

absl::StatusOr<std::string> Page::Tell(const Question& question) {
  const auto& what = question.what;
  if (const auto* jobs = std::get_if<ListJobs>(&what)) return Call(&ApiService::ListJobs, jobs->request);
  if (const auto* job = std::get_if<ExplainJob>(&what)) return Call(&ApiService::Explain, job->request);
  if (const auto* of = std::get_if<ListCheckpoints>(&what))
    return Call(&ApiService::ListCheckpoints, of->request);
  if (std::holds_alternative<ListNodes>(what)) return Call(&ApiService::ListNodes, v1::ListNodesRequest());
  if (std::holds_alternative<ShowPolicy>(what)) return Call(&ApiService::ShowPolicy, v1::Empty());
  return Call(&ApiService::Site, v1::Empty());
}

HttpResponse Page::Answer(const HttpRequest& request) {
  const auto read = ReadQuestion(request);
  if (const auto* refusal = std::get_if<Refusal>(&read)) {
    // Who asks, and how, is well where nothing but the address is not known to the API.
    const auto* file = refusal->status == 404 ? files_.Find(request.path) : nullptr;
    if (file != nullptr) return Send(request, file->snapshot, file->content_type);
    const bool not_built = files_.empty() && request.path == "/";
    return Refuse(
        refusal->status,
        not_built ? "the page is not in this sidingd: it was built without it (SIDING_PAGE)" : refusal->why);
  }
  const auto& question = std::get<Question>(read);
  if (const auto* events = std::get_if<FollowEvents>(&question.what)) return Follow(*events);
  return AnswerWhole(request, question);
}

HttpResponse Page::AnswerWhole(const HttpRequest& request, const Question& question) {
  const auto snapshot = snapshots_.Of(question.key, [&] { return Tell(question); });
  if (!snapshot.ok())
    return Refuse(HttpStatusOf(snapshot.status()), std::string(snapshot.status().message()));
  return Send(request, *snapshot, "application/json");
}

HttpResponse Page::Send(const HttpRequest& request, const Snapshot& snapshot,
                        const std::string& content_type) {
  const bool known = Names(request.Header("If-None-Match").value_or(""), snapshot.tag);
  HttpResponse response = Bare(known ? 304 : 200);
  response.content_type = content_type;
  const bool packed =
      snapshot.packed != nullptr && TakesGzip(request.Header("Accept-Encoding").value_or(""));
  if (!known) response.body = packed ? snapshot.packed : snapshot.body;
  if (!known && packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  response.headers.emplace_back("ETag", snapshot.tag);
  response.headers.emplace_back("Cache-Control", "no-cache");
  return response;
}

HttpResponse Page::Follow(const FollowEvents& events) {
  HttpResponse response = Bare(200);
  response.content_type = "text/event-stream";
  response.stream = feed_.Follow(events.after);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const HttpOptions& options, ApiService& api,
                                                              const Clock& clock) {
  std::unique_ptr<PageServer> started(new PageServer(api, clock));
  auto server = HttpServer::Listen(
      options, [page = &started->page_](const HttpRequest& request) { return page->Answer(request); });
  if (!server.ok()) return server.status();
  started->server_ = *std::move(server);
  started->feeding_ = std::thread([page_server = started.get()] { page_server->Run(); });
  spdlog::info("the page is served at http://{}, read only", options.address);
  return started;
}

void PageServer::Run() {
  while (!stopping_) {
    page_.Turn(ApiService::kEventWait);
    server_->CutSlow(clock_.Now());
    std::this_thread::sleep_for(ApiService::kEventPause);
  }
}

PageServer::~PageServer() {
  stopping_ = true;
  if (feeding_.joinable()) feeding_.join();
  page_.End();
  server_.reset();
}

}  // namespace siding::page
