#include "controller/platform/kubernetes/client/api_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/backoff.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/errors.h"

namespace siding::kubernetes {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr char kJsonPatch[] = "application/json-patch+json";
// A server that asks for a longer pause is not waited for: the caller knows better what to do meanwhile.
constexpr Duration kLongestRetryAfter = std::chrono::seconds(30);

std::string What(absl::string_view verb, const Resource& resource, absl::string_view name,
                 absl::string_view subresource = "") {
  return absl::StrCat(verb, " ", ToString(resource), subresource.empty() ? "" : "/", subresource,
                      name.empty() ? "" : " ", name);
}

bool IsSuccess(const HttpResponse& response) { return response.code >= 200 && response.code < 300; }

// Whether another attempt may help, and does no harm.
bool MayRetry(const absl::Status& status, bool stands) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      // From the server it means "not done"; from the transport, that the answer is too long, as it will be.
      return ErrorOf(status).has_value();
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return stands;
    default:
      return false;
  }
}

void AddSelection(const Selection& selection, HttpRequest& request) {
  if (!selection.labels.empty()) request.query.emplace_back("labelSelector", selection.labels);
  if (!selection.fields.empty()) request.query.emplace_back("fieldSelector", selection.fields);
}

Json DeleteOptions(const Preconditions& only, std::optional<Duration> grace) {
  Json options = Json::object();
  if (!only.uid.empty()) options["preconditions"]["uid"] = only.uid;
  if (!only.version.empty()) options["preconditions"]["resourceVersion"] = only.version;
  if (grace) {
    // Rounded up: 0 would mean "kill at once".
    options["gracePeriodSeconds"] = std::chrono::ceil<std::chrono::seconds>(*grace).count();
  }
  return options;
}

}  // namespace

ApiClient::ApiClient(Transport& transport, Pacer& pacer, std::stop_token stop, RetryRules rules)
    : transport_(transport), pacer_(pacer), stop_(std::move(stop)), rules_(rules) {}

absl::StatusOr<HttpResponse> ApiClient::Ask(const HttpRequest& request, const std::string& what,
                                            bool stands) {
  Backoff backoff(rules_.first, rules_.most, rules_.seed);
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<HttpResponse> response = transport_.Send(request, stop_);
    if (response.ok() && IsSuccess(*response)) return response;
    const absl::Status error =
        response.ok() ? ToStatus(ErrorFrom(*response), what) : Annotate(response.status(), what);
    if (attempt >= rules_.attempts || !MayRetry(error, stands)) return error;
    Duration pause = backoff.Next();
    if (const auto said = ErrorOf(error); said && said->retry_after) {
      if (*said->retry_after > kLongestRetryAfter) return error;
      pause = std::max(pause, *said->retry_after);
    }
    if (!pacer_.Pause(pause, stop_)) return absl::CancelledError(absl::StrCat(what, ": stopped"));
  }
}

absl::StatusOr<Object> ApiClient::AskForObject(const HttpRequest& request, const std::string& what,
                                               bool stands) {
  SIDING_ASSIGN_OR_RETURN(const HttpResponse response, Ask(request, what, stands));
  absl::StatusOr<Json> json = ParseJson(response.body);
  if (!json.ok()) return absl::InternalError(absl::StrCat(what, ": the answer is ", json.status().message()));
  absl::StatusOr<Object> object = ObjectFrom(*std::move(json));
  if (!object.ok()) {
    return absl::InternalError(absl::StrCat(what, ": the answer's ", object.status().message()));
  }
  return object;
}

absl::StatusOr<Object> ApiClient::Get(const Resource& resource, const ObjectName& name) {
  HttpRequest request;
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, name));
  return AskForObject(request, What("get", resource, ToString(name)), true);
}

absl::StatusOr<ListPage> ApiClient::GetPage(const Resource& resource, const Selection& selection, int limit,
                                            const std::string& token) {
  const std::string what = What("list", resource, selection.space);
  HttpRequest request;
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, selection.space));
  AddSelection(selection, request);
  if (limit > 0) request.query.emplace_back("limit", std::to_string(limit));
  if (!token.empty()) request.query.emplace_back("continue", token);
  SIDING_ASSIGN_OR_RETURN(const HttpResponse response, Ask(request, what, true));
  absl::StatusOr<ListPage> page = PageFrom(response.body);
  if (!page.ok()) return absl::InternalError(absl::StrCat(what, ": ", page.status().message()));
  return page;
}

absl::StatusOr<ListPage> ApiClient::List(const Resource& resource, const Selection& selection, int limit) {
  ListPage all;
  std::string token;
  do {
    absl::StatusOr<ListPage> page = GetPage(resource, selection, limit, token);
    if (absl::IsOutOfRange(page.status()) && !token.empty()) {
      // Pages are slower than what the server keeps. One answer with everything cannot expire.
      return GetPage(resource, selection, 0, "");
    }
    if (!page.ok()) return page.status();
    token = page->next;
    all.version = page->version;
    std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
  } while (!token.empty());
  return all;
}

absl::Status ApiClient::Watch(const Resource& resource, const Selection& selection,
                              const std::string& version, Duration lasts, const LineReader& reader) {
  const std::string what = What("watch", resource, selection.space);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(lasts);
  HttpRequest request;
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, selection.space));
  request.query = {{"watch", "1"},
                   {"resourceVersion", version},
                   {"allowWatchBookmarks", "true"},
                   {"timeoutSeconds", std::to_string(seconds.count())}};
  AddSelection(selection, request);
  request.limit = seconds + std::chrono::seconds(30);  // the server ends it, as a rule
  const absl::StatusOr<HttpResponse> response = transport_.Stream(request, reader, stop_);
  if (!response.ok()) return Annotate(response.status(), what);
  return IsSuccess(*response) ? absl::OkStatus() : ToStatus(ErrorFrom(*response), what);
}

absl::StatusOr<Object> ApiClient::Create(const Resource& resource, const std::string& space,
                                         const Json& object) {
  HttpRequest request{.method = HttpMethod::kPost, .content_type = kJson, .body = WriteJson(object)};
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, space));
  const ObjectName name{space, TextAt(object, {"metadata", "name"})};
  return AskForObject(request, What("create", resource, ToString(name)), false);
}

absl::StatusOr<Object> ApiClient::Change(HttpMethod method, const Resource& resource, const ObjectName& name,
                                         absl::string_view subresource, const char* content_type,
                                         const Json& body) {
  HttpRequest request{.method = method, .content_type = content_type, .body = WriteJson(body)};
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, name, subresource));
  const char* verb = method == HttpMethod::kPut ? "update" : "patch";
  return AskForObject(request, What(verb, resource, ToString(name), subresource), false);
}

absl::StatusOr<Object> ApiClient::MergePatch(const Resource& resource, const ObjectName& name,
                                             const Json& patch, absl::string_view subresource) {
  return Change(HttpMethod::kPatch, resource, name, subresource, kMergePatch, patch);
}
absl::StatusOr<Object> ApiClient::JsonPatch(const Resource& resource, const ObjectName& name,
                                            const Json& operations, absl::string_view subresource) {
  return Change(HttpMethod::kPatch, resource, name, subresource, kJsonPatch, operations);
}
absl::StatusOr<Object> ApiClient::Replace(const Resource& resource, const ObjectName& name,
                                          const Json& object, absl::string_view subresource) {
  if (TextAt(object, {"metadata", "resourceVersion"}).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(What("update", resource, ToString(name)),
                                                   ": metadata.resourceVersion: expected what was read"));
  }
  return Change(HttpMethod::kPut, resource, name, subresource, kJson, object);
}

absl::Status ApiClient::Delete(const Resource& resource, const ObjectName& name, const Preconditions& only,
                               std::optional<Duration> grace) {
  HttpRequest request{
      .method = HttpMethod::kDelete, .content_type = kJson, .body = WriteJson(DeleteOptions(only, grace))};
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(resource, name));
  return Ask(request, What("delete", resource, ToString(name)), false).status();
}

absl::Status ApiClient::Evict(const ObjectName& pod, const Preconditions& only, std::optional<Duration> grace,
                              const std::string& version) {
  return PostEviction(pod, DeleteOptions(only, grace), version);
}

absl::Status ApiClient::MayEvict(const ObjectName& pod, const Preconditions& only,
                                 const std::string& version) {
  Json options = DeleteOptions(only, {});
  options["dryRun"] = Json::array({"All"});
  return PostEviction(pod, std::move(options), version);
}

absl::Status ApiClient::PostEviction(const ObjectName& pod, Json options, const std::string& version) {
  const Json eviction = {{"apiVersion", absl::StrCat("policy/", version)},
                         {"kind", "Eviction"},
                         {"metadata", {{"name", pod.name}, {"namespace", pod.space}}},
                         {"deleteOptions", std::move(options)}};
  HttpRequest request{.method = HttpMethod::kPost, .content_type = kJson, .body = WriteJson(eviction)};
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(Pods(), pod, "eviction"));
  return Ask(request, What("create", Pods(), ToString(pod), "eviction"), false).status();
}

absl::StatusOr<Object> ApiClient::Bind(const ObjectName& pod, const std::string& uid,
                                       const std::string& node) {
  const std::string what = What("create", Pods(), ToString(pod), "binding");
  const Json binding = {{"apiVersion", "v1"},
                        {"kind", "Binding"},
                        {"metadata", {{"name", pod.name}, {"namespace", pod.space}, {"uid", uid}}},
                        {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  HttpRequest request{.method = HttpMethod::kPost, .content_type = kJson, .body = WriteJson(binding)};
  SIDING_ASSIGN_OR_RETURN(request.path, PathOf(Pods(), pod, "binding"));
  const absl::Status bound = Ask(request, what, false).status();
  const bool unclear =
      absl::IsAborted(bound) || absl::IsUnavailable(bound) || absl::IsDeadlineExceeded(bound);
  if (!bound.ok() && !unclear) return bound;
  SIDING_ASSIGN_OR_RETURN(Object now, Get(Pods(), pod));
  if (now.uid != uid) {
    return absl::AbortedError(
        absl::StrCat(what, ": another pod has this name now, uid ", now.uid, " instead of ", uid));
  }
  const std::string is_on = TextAt(*now.json, {"spec", "nodeName"});
  if (is_on == node) return now;
  if (is_on.empty())
    return bound.ok() ? absl::AbortedError(absl::StrCat(what, ": it has no node yet")) : bound;
  return absl::AbortedError(absl::StrCat(what, ": it is on node ", is_on));
}

absl::StatusOr<Json> ApiClient::AskForJson(const HttpRequest& request, const std::string& what) {
  SIDING_ASSIGN_OR_RETURN(const HttpResponse response, Ask(request, what, true));
  absl::StatusOr<Json> json = ParseJson(response.body);
  if (!json.ok()) return absl::InternalError(absl::StrCat(what, ": the answer is ", json.status().message()));
  return json;
}

absl::StatusOr<Json> ApiClient::GetJson(const std::string& path, absl::string_view what) {
  return AskForJson({.path = path}, absl::StrCat("get ", what));
}

absl::StatusOr<Json> ApiClient::PostJson(const std::string& path, const Json& body, absl::string_view what) {
  return AskForJson(
      {.method = HttpMethod::kPost, .path = path, .content_type = kJson, .body = WriteJson(body)},
      absl::StrCat("ask ", what));
}

}  // namespace siding::kubernetes
