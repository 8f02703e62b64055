#include "controller/platform/kubernetes/objects/node.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/objects/quantity.h"

namespace siding::kubernetes {
namespace {

constexpr int64_t kManyPods = 1'000'000;

void ReadCondition(const Json& json, Node& node) {
  node.why_not_ready = "its kubelet has said nothing yet";
  for (const Json& condition : ListAt(json, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) != "Ready") continue;
    node.ready = TextAt(condition, {"status"}) == "True";
    const std::string reason = TextAt(condition, {"reason"});
    const std::string message = TextAt(condition, {"message"});
    node.why_not_ready = node.ready ? "" : absl::StrCat(reason, message.empty() ? "" : ": ", message);
  }
}

}  // namespace

Node NodeFrom(const Object& object) {
  const Json& json = *object.json;
  Node node{.object = object};
  node.labels = TextsAt(json, {"metadata", "labels"});
  for (const Json& taint : ListAt(json, {"spec", "taints"}))
    node.taints.push_back({TextAt(taint, {"key"}), TextAt(taint, {"value"}), TextAt(taint, {"effect"})});
  node.cordoned = IsTrueAt(json, {"spec", "unschedulable"});
  ReadCondition(json, node);
  // Servers always say how many; where one does not, it is no reason to leave the node empty.
  const absl::StatusOr<int64_t> most_pods = ParseQuantity(TextAt(json, {"status", "allocatable", "pods"}));
  node.most_pods = static_cast<int>(std::min<int64_t>(most_pods.value_or(kManyPods), kManyPods));
  absl::StatusOr<Amounts> allocatable = AmountsFrom(Find(json, {"status", "allocatable"}));
  if (allocatable.ok()) {
    node.allocatable = *std::move(allocatable);
  } else {
    node.problem = absl::StrCat("status.allocatable: ", allocatable.status().message());
  }
  return node;
}

}  // namespace siding::kubernetes
