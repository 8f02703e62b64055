// Objects of the API as values, and where they are found.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "controller/platform/kubernetes/client/json.h"

namespace siding::kubernetes {

// A kind of object: "pods" of group "" and version "v1".
struct Resource {
  std::string group;  // "": the core
  std::string version;
  std::string plural;
  bool namespaced = true;
};
// "pods", "leases.coordination.k8s.io": as RBAC and kubectl name it.
std::string ToString(const Resource& resource);
Resource Pods();
Resource Nodes();
Resource ConfigMaps();
Resource Secrets();
Resource Events();
Resource PodDisruptionBudgets(const std::string& version);
// siding's own; not every server has them.
Resource OnDemandRequests();
Resource Checkpoints();

struct ObjectName {
  std::string space;  // the namespace; "" for what is in none
  std::string name;
  auto operator<=>(const ObjectName&) const = default;
};
// "default/a", or "node-1".
std::string ToString(const ObjectName& name);

struct Object {
  ObjectName name;
  std::string uid;
  std::string version;               // resourceVersion
  std::shared_ptr<const Json> json;  // all of it, unknown fields included
};
// kInvalidArgument: it has no name, uid or resourceVersion.
absl::StatusOr<Object> ObjectFrom(Json json);

struct ListPage {
  std::vector<Object> items;
  std::string version;  // of the whole list
  std::string next;     // token of the next page; "": this is the last
};
// Of a list's body. kInvalidArgument if it is none.
absl::StatusOr<ListPage> PageFrom(absl::string_view body);

struct WatchEvent {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted, kBookmark };
  Kind kind = Kind::kBookmark;
  Object object;  // a bookmark's has a version and nothing else
};
// One line of a watch. An ERROR event is an error as of ToStatus(): kOutOfRange, list again.
// kInvalidArgument: it is no event that we understand.
absl::StatusOr<WatchEvent> EventFrom(absl::string_view line, absl::string_view what);

// "/api/v1/namespaces/default/pods"; no space: those of all. kInvalidArgument: a name cannot be in a path.
absl::StatusOr<std::string> PathOf(const Resource& resource, absl::string_view space);
// `subresource`: "status", "eviction", "" for the object itself.
absl::StatusOr<std::string> PathOf(const Resource& resource, const ObjectName& name,
                                   absl::string_view subresource = "");

}  // namespace siding::kubernetes
