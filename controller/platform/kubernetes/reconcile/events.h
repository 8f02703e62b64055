// What a person who looks at a pod is told: Events of the API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

struct PodEvent {
  ObjectName pod;
  std::string uid;
  bool warning = false;
  std::string reason;  // "SidingRefused"
  std::string text;
  std::string key;  // what tells it from others of the same pod and reason; "": its text
  int refused = 0;  // how often, by a server that has answered
};

// On the pod, once, whoever says it and how often.
absl::Status Report(ApiClient& client, const PodEvent& event, Time now);

}  // namespace siding::kubernetes
