#include "controller/platform/kubernetes/fake/fake_api_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/kubernetes/fake/fake_answers.h"
#include "controller/platform/kubernetes/fake/fake_budgets.h"

namespace siding::kubernetes {
namespace {

std::string QueryOf(const HttpRequest& request, absl::string_view name) {
  for (const auto& [key, value] : request.query) {
    if (key == name) return value;
  }
  return "";
}

// "spec.nodeName=x,metadata.name=y". Names with a dot in them are labels, which are not selected by.
bool FieldsMatch(const Json& object, const std::string& selector, bool& simple) {
  for (const std::string& term : std::vector<std::string>(absl::StrSplit(selector, ',', absl::SkipEmpty()))) {
    const std::vector<std::string> sides = absl::StrSplit(term, absl::MaxSplits('=', 1));
    if (sides.size() != 2 || absl::EndsWith(sides[0], "!")) {
      simple = false;
      return false;
    }
    const Json absent = "";  // a field that is not there is as an empty one
    const Json* at = &object;
    for (const absl::string_view part : absl::StrSplit(sides[0], '.')) {
      const Json* next = Find(*at, {part});
      at = next == nullptr ? &absent : next;
    }
    if (*at != sides[1]) return false;
  }
  return true;
}

std::string UnescapeSegment(absl::string_view segment) {
  std::string text;
  for (size_t i = 0; i < segment.size(); ++i) {
    int value = 0;
    if (segment[i] == '%' && absl::SimpleHexAtoi(segment.substr(i + 1, 2), &value)) {
      text += static_cast<char>(value);
      i += 2;
    } else {
      text += segment[i];
    }
  }
  return text;
}

HttpResponse Conflict(const std::string& message) { return Refuse(409, "Conflict", message); }

}  // namespace

struct FakeApiServer::Target {
  Resource resource;
  ObjectName name;  // no name: the collection
  std::string subresource;
  bool Selects(const HttpRequest& request, const Json& object, bool& simple) const {
    return (name.space.empty() || TextAt(object, {"metadata", "namespace"}) == name.space) &&
           LabelsMatch(object, QueryOf(request, "labelSelector"), simple) &&
           FieldsMatch(object, QueryOf(request, "fieldSelector"), simple);
  }
};

absl::StatusOr<FakeApiServer::Target> FakeApiServer::TargetOf(const std::string& path) const {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    parts.push_back(UnescapeSegment(part));
  }
  Target target;
  const size_t version_at = parts[0] == "apis" ? 2 : 1;
  if (parts.size() < version_at + 2) return absl::NotFoundError(path);
  size_t next = version_at + 1;
  const std::string group = version_at == 2 ? parts[1] : "";
  if (parts[next] == "namespaces" && parts.size() > next + 2) {
    target.name.space = parts[next + 1];
    next += 2;
  }
  for (const Resource& resource : settings_.resources) {
    if (resource.group != group || resource.version != parts[version_at] || resource.plural != parts[next]) {
      continue;
    }
    target.resource = resource;
    if (parts.size() > next + 1) target.name.name = parts[next + 1];
    if (parts.size() > next + 2) target.subresource = parts[next + 2];
    return target;
  }
  return absl::NotFoundError(path);
}

HttpResponse FakeApiServer::Handle(const HttpRequest& request, Time now) {
  Advance(now);
  if (request.path == "/version" || request.path == "/apis" || request.path == "/api/v1") {
    return Discover(request.path);
  }
  const absl::StatusOr<Target> target = TargetOf(request.path);
  if (!target.ok()) return DiscoverGroup(request.path);
  if (target->name.name.empty()) {
    if (request.method == HttpMethod::kGet) return List(request, *target);
    if (request.method == HttpMethod::kPost) return Create(request, *target);
    return Refuse(405, "MethodNotAllowed", "not for a collection");
  }
  const FakeStore::Value found = store_.Find(target->resource.plural, target->name);
  if (found == nullptr) {
    return Refuse(404, "NotFound",
                  absl::StrCat(target->resource.plural, " \"", target->name.name, "\" not found"));
  }
  switch (request.method) {
    case HttpMethod::kGet:
      return Answer(200, *found);
    case HttpMethod::kPatch:
      return Patch(request, *target);
    case HttpMethod::kPut:
      return Replace(request, *target);
    case HttpMethod::kDelete: {
      const absl::StatusOr<Json> options = ParseJson(request.body.empty() ? "{}" : request.body);
      if (!options.ok()) return Refuse(400, "BadRequest", "the body is no JSON");
      return Delete(*target, *options, now);
    }
    case HttpMethod::kPost:
      if (target->subresource == "eviction") return Evict(request, *target, now);
      if (target->subresource == "binding") return Bind(request, *target);
  }
  return Refuse(405, "MethodNotAllowed", "not for this object");
}

HttpResponse FakeApiServer::Discover(const std::string& path) const {
  if (path == "/version") return Answer(200, {{"gitVersion", settings_.version}});
  std::map<std::string, std::set<std::string>> groups;
  Json core = Json::array();
  for (const Resource& resource : settings_.resources) {
    if (!resource.group.empty()) groups[resource.group].insert(resource.version);
    if (resource.group.empty()) core.push_back({{"name", resource.plural}, {"kind", resource.plural}});
  }
  if (path == "/api/v1") {
    if (!settings_.eviction.empty()) {
      core.push_back({{"name", "pods/eviction"}, {"group", "policy"}, {"version", settings_.eviction}});
    }
    return Answer(200, {{"kind", "APIResourceList"}, {"resources", core}});
  }
  Json list = Json::array();
  for (const auto& [name, versions] : groups) {
    Json group = {{"name", name}, {"versions", Json::array()}};
    for (const std::string& version : versions) group["versions"].push_back({{"version", version}});
    list.push_back(std::move(group));
  }
  return Answer(200, {{"kind", "APIGroupList"}, {"groups", list}});
}

HttpResponse FakeApiServer::DiscoverGroup(const std::string& path) const {
  Json resources = Json::array();
  for (const Resource& resource : settings_.resources) {
    if (path == absl::StrCat("/apis/", resource.group, "/", resource.version))
      resources.push_back({{"name", resource.plural}, {"namespaced", resource.namespaced}});
  }
  if (resources.empty()) return Refuse(404, "NotFound", "the server could not find the requested resource");
  return Answer(200, {{"kind", "APIResourceList"}, {"resources", std::move(resources)}});
}

HttpResponse FakeApiServer::List(const HttpRequest& request, const Target& target) {
  int limit = 0;
  if (const std::string text = QueryOf(request, "limit"); !text.empty() && !absl::SimpleAtoi(text, &limit)) {
    return Refuse(400, "BadRequest", "limit is no number");
  }
  // A token is the list's version, and how many objects came before.
  std::string version = std::to_string(store_.version());
  size_t skip = 0;
  FakeStore::Objects all;
  if (const std::string token = QueryOf(request, "continue"); !token.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(token, ':');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &skip)) {
      return Refuse(400, "BadRequest", "continue key is not valid");
    }
    version = parts[0];
    const auto kept = pages_.find(absl::StrCat(version, "/", target.resource.plural));
    if (kept == pages_.end()) {
      return Refuse(410, "Expired", "The provided continue parameter is too old to display");
    }
    all = kept->second;
  } else {
    all = store_.All(target.resource.plural);
  }
  Json items = Json::array();
  bool simple = true;
  size_t seen = 0;
  size_t left = 0;
  for (const auto& [name, object] : all) {
    if (!target.Selects(request, *object, simple) || seen++ < skip) continue;
    if (limit > 0 && items.size() == static_cast<size_t>(limit)) {
      ++left;
    } else {
      items.push_back(*object);
    }
  }
  if (!simple) return Refuse(400, "BadRequest", "this selector is not understood");
  Json metadata = {{"resourceVersion", version}};
  if (left > 0) {
    metadata["continue"] = absl::StrCat(version, ":", skip + items.size());
    metadata["remainingItemCount"] = left;
    pages_[absl::StrCat(version, "/", target.resource.plural)] = std::move(all);
  }
  return Answer(200, {{"kind", "List"}, {"metadata", metadata}, {"items", std::move(items)}});
}

HttpResponse FakeApiServer::Create(const HttpRequest& request, const Target& target) {
  absl::StatusOr<Json> object = ParseJson(request.body);
  if (!object.ok() || !object->is_object()) return Refuse(400, "BadRequest", "the body is no object");
  if (target.resource.namespaced && target.name.space.empty()) {
    return Refuse(400, "BadRequest", "the server does not allow this method without a namespace");
  }
  const ObjectName name{target.name.space, TextAt(*object, {"metadata", "name"})};
  if (name.name.empty()) {
    return Refuse(422, "Invalid", "metadata.name is required",
                  {{"FieldValueRequired", "metadata.name", "Required value: name is required"}});
  }
  if (store_.Find(target.resource.plural, name) != nullptr) {
    return Refuse(409, "AlreadyExists",
                  absl::StrCat(target.resource.plural, " \"", name.name, "\" already exists"));
  }
  (*object)["metadata"].erase("uid");
  return Answer(201, *store_.Put(target.resource.plural, name, *std::move(object)));
}

HttpResponse FakeApiServer::Store(const Target& target, const FakeStore::Value& before, Json after) {
  if (!after.is_object() || Find(after, {"metadata"}) == nullptr || !after["metadata"].is_object()) {
    return Refuse(422, "Invalid", "it is no object any more");
  }
  const std::string uid = TextAt(after, {"metadata", "uid"});
  if (uid != TextAt(*before, {"metadata", "uid"})) {
    return Refuse(422, "Invalid", "metadata.uid: Invalid value: field is immutable",
                  {{"FieldValueInvalid", "metadata.uid", "field is immutable"}});
  }
  if (TextAt(after, {"metadata", "resourceVersion"}) != TextAt(*before, {"metadata", "resourceVersion"})) {
    return Conflict("the object has been modified; please apply your changes to the latest version");
  }
  if (target.subresource == "status") {
    // Nothing else is written by this way.
    Json status = after.contains("status") ? after["status"] : Json();
    after = *before;
    after["status"] = std::move(status);
  }
  if (after == *before) return Answer(200, *before);
  return Answer(200, *store_.Put(target.resource.plural, target.name, std::move(after)));
}

HttpResponse FakeApiServer::Patch(const HttpRequest& request, const Target& target) {
  const FakeStore::Value before = store_.Find(target.resource.plural, target.name);
  const absl::StatusOr<Json> patch = ParseJson(request.body);
  if (!patch.ok()) return Refuse(400, "BadRequest", "the body is no JSON");
  Json after = *before;
  if (request.content_type == "application/merge-patch+json") {
    after.merge_patch(*patch);
  } else if (request.content_type == "application/json-patch+json") {
    try {
      after = before->patch(*patch);
    } catch (const Json::exception& e) {  // a test that does not hold, among others
      return Refuse(422, "Invalid", "the server rejected our request due to an error in our request");
    }
  } else {
    return Refuse(415, "UnsupportedMediaType", "merge-patch and json-patch are understood");
  }
  return Store(target, before, std::move(after));
}

HttpResponse FakeApiServer::Replace(const HttpRequest& request, const Target& target) {
  absl::StatusOr<Json> after = ParseJson(request.body);
  if (!after.ok() || !after->is_object()) return Refuse(400, "BadRequest", "the body is no object");
  return Store(target, store_.Find(target.resource.plural, target.name), *std::move(after));
}

HttpResponse FakeApiServer::Delete(const Target& target, const Json& options, Time now) {
  const FakeStore::Value found = store_.Find(target.resource.plural, target.name);
  const std::string uid = TextAt(options, {"preconditions", "uid"});
  if (!uid.empty() && uid != TextAt(*found, {"metadata", "uid"})) {
    return Conflict("Precondition failed: UID in precondition is another");
  }
  const std::string version = TextAt(options, {"preconditions", "resourceVersion"});
  if (!version.empty() && version != TextAt(*found, {"metadata", "resourceVersion"})) {
    return Conflict("Precondition failed: ResourceVersion in precondition is another");
  }
  const int64_t usual = WholeAt(*found, {"spec", "terminationGracePeriodSeconds"}, 30);
  const Duration grace = std::chrono::seconds(WholeAt(options, {"gracePeriodSeconds"}, usual));
  const bool runs = target.resource.plural == "pods" && !TextAt(*found, {"spec", "nodeName"}).empty();
  if (!runs || grace <= Duration(0)) {
    ends_.erase(target.name);
    store_.Remove(target.resource.plural, target.name);
    return Answer(200, *found);
  }
  const Time end = now + grace;
  const auto [at, first] = ends_.try_emplace(target.name, end);
  if (!first && at->second <= end) return Answer(200, *found);  // a grace is only ever made shorter
  at->second = end;
  Json ending = *found;
  ending["metadata"]["deletionTimestamp"] = FormatTime(end);
  ending["metadata"]["deletionGracePeriodSeconds"] =
      std::chrono::duration_cast<std::chrono::seconds>(grace).count();
  return Answer(200, *store_.Put("pods", target.name, std::move(ending)));
}

HttpResponse FakeApiServer::Evict(const HttpRequest& request, const Target& target, Time now) {
  const absl::StatusOr<Json> eviction = ParseJson(request.body);
  if (!eviction.ok()) return Refuse(400, "BadRequest", "the body is no JSON");
  if (settings_.eviction.empty() ||
      TextAt(*eviction, {"apiVersion"}) != absl::StrCat("policy/", settings_.eviction)) {
    return Refuse(400, "BadRequest", "no kind \"Eviction\" is registered for this version");
  }
  if (BudgetsOf(*store_.Find("pods", target.name), store_.All("poddisruptionbudgets")) > 1) {
    return Refuse(
        500, "InternalError",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  const std::string against = BudgetAgainst(*store_.Find("pods", target.name), store_.All("pods"),
                                            store_.All("poddisruptionbudgets"));
  if (!against.empty()) {
    return Refuse(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                  {{"DisruptionBudget", "", against}});
  }
  const Json* options = Find(*eviction, {"deleteOptions"});
  if (!ListAt(*eviction, {"deleteOptions", "dryRun"}).empty())
    return Answer(201, {{"kind", "Status"}, {"status", "Success"}, {"code", 201}});
  const HttpResponse deleted = Delete(target, options == nullptr ? Json::object() : *options, now);
  if (deleted.code != 200) return deleted;
  return Answer(201, {{"kind", "Status"}, {"status", "Success"}, {"code", 201}});
}

HttpResponse FakeApiServer::Bind(const HttpRequest& request, const Target& target) {
  const absl::StatusOr<Json> binding = ParseJson(request.body);
  const std::string node = binding.ok() ? TextAt(*binding, {"target", "name"}) : "";
  if (node.empty()) {
    return Refuse(422, "Invalid", "target.name: Required value",
                  {{"FieldValueRequired", "target.name", "Required value"}});
  }
  Json pod = *store_.Find("pods", target.name);
  const std::string is_on = TextAt(pod, {"spec", "nodeName"});
  if (!is_on.empty()) return Conflict(absl::StrCat("pod is already assigned to node \"", is_on, "\""));
  if (Find(pod, {"metadata", "deletionTimestamp"}) != nullptr) return Conflict("pod is being deleted");
  pod["spec"]["nodeName"] = node;
  store_.Put("pods", target.name, std::move(pod));
  return Answer(201, {{"kind", "Status"}, {"status", "Success"}, {"code", 201}});
}

FakeApiServer::Watched FakeApiServer::Watch(const HttpRequest& request, int64_t version) {
  Watched watched;
  const absl::StatusOr<Target> target = TargetOf(request.path);
  if (!target.ok()) {
    watched.response = Refuse(404, "NotFound", "the server could not find the requested resource");
    return watched;
  }
  if (version == 0 && !absl::SimpleAtoi(QueryOf(request, "resourceVersion"), &version)) {
    watched.response = Refuse(400, "BadRequest", "Invalid value for resourceVersion");
    return watched;
  }
  watched.response.code = 200;
  watched.version = std::max(version, store_.version());
  const std::optional<FakeStore::Part> events = store_.Since(version);
  if (!events) {
    const Json gone = FakeStatus(410, "Expired", absl::StrCat("too old resource version: ", version));
    watched.lines.push_back(WriteJson({{"type", "ERROR"}, {"object", gone}}));
    watched.ended = true;
    return watched;
  }
  for (const FakeStore::Event& event : *events) {
    if (event.plural != target->resource.plural) continue;
    bool simple = true;
    const bool was = event.before != nullptr && target->Selects(request, *event.before, simple);
    const bool is = event.after != nullptr && target->Selects(request, *event.after, simple);
    if (!simple) {
      watched.response = Refuse(400, "BadRequest", "this selector is not understood");
      return watched;
    }
    if (!was && !is) continue;
    Json object = is ? *event.after : *event.before;
    // One that left the selection has the version of that moment.
    object["metadata"]["resourceVersion"] = std::to_string(event.version);
    const char* type = !is ? "DELETED" : was ? "MODIFIED" : "ADDED";
    watched.lines.push_back(WriteJson({{"type", type}, {"object", std::move(object)}}));
  }
  return watched;
}

std::string FakeApiServer::Bookmark(const HttpRequest& request) const {
  if (QueryOf(request, "allowWatchBookmarks") != "true") return "";
  const Json object = {{"metadata", {{"resourceVersion", std::to_string(store_.version())}}}};
  return WriteJson({{"type", "BOOKMARK"}, {"object", object}});
}

void FakeApiServer::Advance(Time now) {
  if (!settings_.kubelets) return;
  std::vector<std::pair<Time, ObjectName>> over;
  for (const auto& [name, end] : ends_) {
    if (end <= now) over.emplace_back(end, name);
  }
  std::sort(over.begin(), over.end());
  for (const auto& [end, name] : over) {
    // Another of that name may have come since, where a test has taken this one away.
    const FakeStore::Value pod = store_.Find("pods", name);
    if (pod != nullptr && siding::kubernetes::Find(*pod, {"metadata", "deletionTimestamp"}) != nullptr) {
      store_.Remove("pods", name);
    }
    ends_.erase(name);
  }
}

Time FakeApiServer::NextEnd() const {
  Time next = kLatestTime;
  if (!settings_.kubelets) return next;
  for (const auto& [name, end] : ends_) next = std::min(next, end);
  return next;
}

void FakeApiServer::Compact() {
  store_.Compact();
  pages_.clear();
}

}  // namespace siding::kubernetes
