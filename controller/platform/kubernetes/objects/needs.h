// What a pod asks of its node, and what a node has for pods. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "model/job.h"

namespace siding::kubernetes {

struct Amounts {
  int64_t cpu = 0;  // in thousandths
  Bytes memory;
  int gpus = 0;
  std::map<std::string, int64_t>
      others;  // "ephemeral-storage", "hugepages-2Mi", "vendor.com/thing"; none is 0
  bool operator==(const Amounts&) const = default;
};
// Whatever somebody wrote into a pod, sums stay in range.
Amounts operator+(const Amounts& a, const Amounts& b);

// Of an object such as {"cpu": "100m", "nvidia.com/gpu": 1}. Null stands for an empty one. Devices whose name
// ends with "/gpu" are GPUs. kInvalidArgument names the resource.
absl::StatusOr<Amounts> AmountsFrom(const Json* resources);

// As the scheduler counts them: what its containers request together, or an init container with those that
// stay beside it, whichever is more of each; what the pod's own resources say instead; and its overhead.
// kInvalidArgument names the container.
absl::StatusOr<Amounts> RequestsOf(const Json& pod);

// A thousandth of a CPU is a slot: pods ask for parts of CPUs. As much as siding takes of agents at most: a
// thousand CPUs, a PiB and a million GPUs.
Resources ToResources(const Amounts& amounts);

}  // namespace siding::kubernetes
