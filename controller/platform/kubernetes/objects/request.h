// An OnDemandRequest: pods that are to start together by a deadline, asked for as one object. Its schema, and
// what its fields mean to users, is in deploy/kubernetes/crds.yaml. Pure.
//
// siding makes the request's pods from its template, and writes on them what the request asks, as users write
// it on pods of their own. From then on they are pods with a deadline like any others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

// Their names are in the status, which has to stay well below what a server takes for one object.
inline constexpr int kMostPods = 1000;

struct Request {
  ObjectName name;
  std::string uid;
  std::string version;
  int64_t generation = 0;  // counts changes of its spec
  Time created{};
  bool deleting = false;
  std::shared_ptr<const Json> json;  // all of it
};
Request RequestFrom(const Object& object);

struct RequestSpec {
  int count = 1;
  Time start_by{};
  std::optional<Time> not_before;
  std::string walltime;  // as it is written; "": it does not say
};
// kInvalidArgument names the field and what was expected. A server with the schema lets little of that
// through.
absl::StatusOr<RequestSpec> SpecOf(const Request& request);

// "steer-1f2e3d4c-0", by the request's uid: whoever makes the pod, and however often, there is one. Fits in a
// label without its index.
std::string PodNameOf(const Request& request, int index);
// The pod to make: deleted with its request, by its owner reference. Times are written as points in time, so
// that the deadline does not depend on when the pod is made.
Json PodOf(const Request& request, const RequestSpec& spec, int index);

}  // namespace siding::kubernetes
