// What the API server is answered when it asks, before it stores an object, whether it may (an
// AdmissionReview). What cannot be read of what its user asks of siding is refused there and then, with the
// field's name; what siding cannot do with the pod is a warning. Pure.
//
// Only what its user writes is refused. An object that has a controller (the pod of a Job, the Job of a
// CronJob), or that changes without a change of what it asks, is let through: to refuse that would take away
// what runs already, or keep it from being deleted.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/objects/host_paths.h"

namespace siding::kubernetes {

struct AdmissionRules {
  std::set<std::string> left_alone;  // namespaces whose pods siding does not touch
  bool saves = false;                // there are agents that save pods
  HostPaths host_paths;              // that these may have mounted
};

// kInvalidArgument: it is no AdmissionReview.
absl::StatusOr<Json> AnswerReview(const Json& review, const AdmissionRules& rules, Time now);

}  // namespace siding::kubernetes
