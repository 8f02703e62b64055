#include "controller/platform/kubernetes/client/object.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {
namespace {

// What would lead to another path, or to a whole collection, is never sent.
absl::Status Append(absl::string_view segment, std::string& path) {
  if (segment.empty() || segment == "." || segment == ".." || segment.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", segment.size() > 2 ? "..." : segment, "\" is no name of an object or namespace"));
  }
  absl::StrAppend(&path, "/", Encode(segment));
  return absl::OkStatus();
}

absl::StatusOr<WatchEvent::Kind> KindOf(absl::string_view type) {
  if (type == "ADDED") return WatchEvent::Kind::kAdded;
  if (type == "MODIFIED") return WatchEvent::Kind::kModified;
  if (type == "DELETED") return WatchEvent::Kind::kDeleted;
  if (type == "BOOKMARK") return WatchEvent::Kind::kBookmark;
  return absl::InvalidArgumentError("a watch event of an unknown type");
}

}  // namespace

std::string ToString(const Resource& resource) {
  return resource.group.empty() ? resource.plural : absl::StrCat(resource.plural, ".", resource.group);
}
Resource Pods() { return {"", "v1", "pods", true}; }
Resource Nodes() { return {"", "v1", "nodes", false}; }
Resource ConfigMaps() { return {"", "v1", "configmaps", true}; }
Resource Secrets() { return {"", "v1", "secrets", true}; }
Resource Events() { return {"", "v1", "events", true}; }
Resource PodDisruptionBudgets(const std::string& version) {
  return {"policy", version, "poddisruptionbudgets", true};
}
Resource OnDemandRequests() { return {"siding.dev", "v1alpha1", "ondemandrequests", true}; }
Resource Checkpoints() { return {"siding.dev", "v1alpha1", "checkpoints", true}; }

std::string ToString(const ObjectName& name) {
  return name.space.empty() ? name.name : absl::StrCat(name.space, "/", name.name);
}

absl::StatusOr<Object> ObjectFrom(Json json) {
  Object object;
  object.name = {TextAt(json, {"metadata", "namespace"}), TextAt(json, {"metadata", "name"})};
  object.uid = TextAt(json, {"metadata", "uid"});
  object.version = TextAt(json, {"metadata", "resourceVersion"});
  const char* missing = object.name.name.empty() ? "name"
                        : object.uid.empty()     ? "uid"
                        : object.version.empty() ? "resourceVersion"
                                                 : nullptr;
  if (missing != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("metadata.", missing, ": missing; expected a text"));
  }
  object.json = std::make_shared<const Json>(std::move(json));
  return object;
}

absl::StatusOr<ListPage> PageFrom(absl::string_view body) {
  SIDING_ASSIGN_OR_RETURN(Json json, ParseJson(body));
  ListPage page;
  page.version = TextAt(json, {"metadata", "resourceVersion"});
  page.next = TextAt(json, {"metadata", "continue"});
  if (page.version.empty()) {
    return absl::InvalidArgumentError("metadata.resourceVersion: missing; expected a list's version");
  }
  const auto items = json.find("items");
  if (items == json.end() || !(items->is_array() || items->is_null())) {
    return absl::InvalidArgumentError("items: expected a list of objects");
  }
  for (Json& item : *items) {
    SIDING_ASSIGN_OR_RETURN(Object object, ObjectFrom(std::move(item)));
    page.items.push_back(std::move(object));
  }
  return page;
}

absl::StatusOr<WatchEvent> EventFrom(absl::string_view line, absl::string_view what) {
  SIDING_ASSIGN_OR_RETURN(Json json, ParseJson(line));
  const std::string type = TextAt(json, {"type"});
  const auto found = json.is_object() ? json.find("object") : json.end();
  if (found == json.end() || !found->is_object()) {
    return absl::InvalidArgumentError("a watch event without an object");
  }
  if (type == "ERROR") return ToStatus(ErrorFrom(*found, 500), what);
  WatchEvent event;
  SIDING_ASSIGN_OR_RETURN(event.kind, KindOf(type));
  if (event.kind == WatchEvent::Kind::kBookmark) {
    event.object.version = TextAt(*found, {"metadata", "resourceVersion"});
    if (event.object.version.empty()) return absl::InvalidArgumentError("a bookmark without a version");
    return event;
  }
  SIDING_ASSIGN_OR_RETURN(event.object, ObjectFrom(std::move(*found)));
  return event;
}

absl::StatusOr<std::string> PathOf(const Resource& resource, absl::string_view space) {
  std::string path = resource.group.empty() ? "/api" : "/apis";
  if (!resource.group.empty()) SIDING_RETURN_IF_ERROR(Append(resource.group, path));
  SIDING_RETURN_IF_ERROR(Append(resource.version, path));
  if (resource.namespaced && !space.empty()) {
    path += "/namespaces";
    SIDING_RETURN_IF_ERROR(Append(space, path));
  }
  SIDING_RETURN_IF_ERROR(Append(resource.plural, path));
  return path;
}

absl::StatusOr<std::string> PathOf(const Resource& resource, const ObjectName& name,
                                   absl::string_view subresource) {
  if (resource.namespaced && name.space.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(resource), " ", name.name, ": expected a namespace"));
  }
  SIDING_ASSIGN_OR_RETURN(std::string path, PathOf(resource, name.space));
  SIDING_RETURN_IF_ERROR(Append(name.name, path));
  if (!subresource.empty()) SIDING_RETURN_IF_ERROR(Append(subresource, path));
  return path;
}

}  // namespace siding::kubernetes
