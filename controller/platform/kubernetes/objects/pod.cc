#include "controller/platform/kubernetes/objects/pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "controller/platform/kubernetes/client/status_fields.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

constexpr int64_t kMostPriority = 1'000'000;  // that siding takes of agents; Kubernetes' go further
constexpr int64_t kUsualGrace = 30;           // seconds
constexpr int64_t kLongestGrace = 365 * 86'400;

std::optional<Time> TimeAt(const Json& json, JsonPath path) {
  const absl::StatusOr<Time> time = ParseTime(TextAt(json, path), Time{});
  return time.ok() ? std::optional(*time) : std::nullopt;
}

// A phase that is not known, and "Unknown" (its node does not answer), count as running: it may hold its
// node.
PodPhase PhaseAt(const Json& json) {
  const std::string phase = TextAt(json, {"status", "phase"});
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return phase.empty() || phase == "Pending" ? PodPhase::kPending : PodPhase::kRunning;
}

std::optional<Time> StartAt(const Json& json) {
  std::optional<Time> first;
  for (const Json& container : ListAt(json, {"status", "containerStatuses"})) {
    for (const JsonPath& path :
         {JsonPath{"state", "running", "startedAt"}, JsonPath{"state", "terminated", "startedAt"},
          JsonPath{"lastState", "terminated", "startedAt"}}) {
      const auto time = TimeAt(container, path);
      if (time && (!first || *time < *first)) first = time;
    }
  }
  return first;
}

// An eviction for what the pod itself has used up, beyond what its user has asked for. Kubernetes, too,
// counts it as no disruption: the condition is there in any version that has it, but not of these.
bool IsOverOwnLimit(const std::string& message) {
  return absl::StartsWith(message, "Usage of EmptyDir volume") ||
         absl::StartsWith(message, "Pod ephemeral local storage usage exceeds") ||
         absl::StrContains(message, "exceeded its local ephemeral storage limit");
}

// Its runtime or its kubelet has found the container gone, and nobody knows how it ended: the machine was
// restarted.
bool NobodySawEnd(const Json& json) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : ListAt(json, {"status", list})) {
      const std::string reason = TextAt(container, {"state", "terminated", "reason"});
      if (reason == "ContainerStatusUnknown" || reason == "Unknown") return true;
    }
  }
  return false;
}

// Of one that has failed. A program that fails leaves its exit code with its container and no reason with the
// pod: that is written there by who ends pods, or refuses them. Which words there are differs by version
// (node shutdown alone has had three), so those that are no disruption are named here.
bool WasDisrupted(const Json& json) {
  if (HasCondition(json, "DisruptionTarget")) return true;
  const std::string reason = TextAt(json, {"status", "reason"});
  if (reason.empty()) return NobodySawEnd(json);
  // activeDeadlineSeconds
  if (reason == "DeadlineExceeded") return false;
  return reason != "Evicted" || !IsOverOwnLimit(TextAt(json, {"status", "message"}));
}

std::map<std::string, std::string> SaidAt(const Json& json) {
  std::map<std::string, std::string> said;
  for (const char* where : {"annotations", "labels"}) {
    for (auto& [key, value] : TextsAt(json, {"metadata", where})) {
      if (absl::StartsWith(key, kPrefix)) said.emplace(key.substr(sizeof(kPrefix) - 1), std::move(value));
    }
  }
  return said;
}

}  // namespace

Owner ControllerOf(const Json& json) {
  for (const Json& owner : ListAt(json, {"metadata", "ownerReferences"})) {
    if (IsTrueAt(owner, {"controller"}))
      return {TextAt(owner, {"kind"}), TextAt(owner, {"name"}), TextAt(owner, {"uid"})};
  }
  return {};
}

std::string SaidBy(const Pod& pod, absl::string_view mark) {
  const auto said = pod.said.find(std::string(mark));
  return said == pod.said.end() ? "" : said->second;
}

bool HasGate(const Pod& pod) {
  return std::find(pod.gates.begin(), pod.gates.end(), kGate) != pod.gates.end();
}

bool WaitsForSiding(const Pod& pod) { return pod.scheduler == kScheduler || HasGate(pod); }

absl::string_view ToString(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
  }
  return "";
}

Pod PodFrom(const Object& object) {
  const Json& json = *object.json;
  Pod pod{.name = object.name, .uid = object.uid, .version = object.version, .json = object.json};
  pod.created = TimeAt(json, {"metadata", "creationTimestamp"}).value_or(Time{});
  pod.owner = ControllerOf(json);
  pod.said = SaidAt(json);
  pod.scheduler = TextAt(json, {"spec", "schedulerName"});
  for (const Json& gate : ListAt(json, {"spec", "schedulingGates"}))
    pod.gates.push_back(TextAt(gate, {"name"}));
  pod.priority = static_cast<int>(
      std::clamp<int64_t>(WholeAt(json, {"spec", "priority"}), -kMostPriority, kMostPriority));
  pod.node = TextAt(json, {"spec", "nodeName"});
  pod.phase = PhaseAt(json);
  pod.disrupted = pod.phase == PodPhase::kFailed && WasDisrupted(json);
  pod.started = StartAt(json);
  pod.deleting = TimeAt(json, {"metadata", "deletionTimestamp"});
  const int64_t grace = WholeAt(json, {"spec", "terminationGracePeriodSeconds"}, kUsualGrace);
  pod.grace = std::chrono::seconds(std::clamp<int64_t>(grace, 0, kLongestGrace));
  pod.placement = PlacementFrom(json);
  absl::StatusOr<Amounts> requests = RequestsOf(json);
  if (requests.ok()) {
    pod.requests = *std::move(requests);
  } else {
    pod.problem = std::string(requests.status().message());
  }
  return pod;
}

bool EndsAtOnce(const Pod& pod) {
  return pod.deleting && WholeAt(*pod.json, {"metadata", "deletionGracePeriodSeconds"}, 1) == 0;
}

}  // namespace siding::kubernetes
