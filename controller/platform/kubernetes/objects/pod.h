// A pod as siding sees it. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/objects/needs.h"
#include "controller/platform/kubernetes/objects/placement.h"

namespace siding::kubernetes {

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed };
absl::string_view ToString(PodPhase phase);

// Who makes another one in its place.
struct Owner {
  std::string kind;  // "Job", "ReplicaSet"; "": nobody
  std::string name;
  std::string uid;
  bool operator==(const Owner&) const = default;
};

struct Pod {
  ObjectName name;
  std::string uid;
  std::string version;
  std::shared_ptr<const Json> json;  // all of it
  Time created{};
  Owner owner;
  // What its labels and annotations say under kPrefix, without it; an annotation goes before a label.
  std::map<std::string, std::string> said;
  std::string scheduler;
  std::vector<std::string> gates;
  int priority = 0;  // a million at most, either way
  std::string node;  // "": it has none yet
  PodPhase phase = PodPhase::kPending;
  // It failed since the cluster ended it, did not take it in, or lost sight of it: that says nothing of its
  // program.
  bool disrupted = false;
  std::optional<Time> started;   // the first of its containers was, for the first time that is known
  std::optional<Time> deleting;  // asked for: it is gone when its processes are, at that time at the latest
  Duration grace = std::chrono::seconds(30);  // that its processes have to end
  Amounts requests;
  Placement placement;
  std::string problem;  // what of it cannot be read; then `requests` is nothing
};
Pod PodFrom(const Object& object);
// Of any object: who controls it.
Owner ControllerOf(const Json& object);

// "": it says nothing there. `mark`: without the prefix.
std::string SaidBy(const Pod& pod, absl::string_view mark);
// None of its containers runs any more, or will.
inline bool IsOver(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}
// It holds, or will hold, what it requests of its node.
inline bool HoldsNode(const Pod& pod) { return !pod.node.empty() && !IsOver(pod); }
// It is being deleted, and has no time left for that: it goes as soon as its kubelet can end it.
bool EndsAtOnce(const Pod& pod);
// siding's, not somebody else's.
bool HasGate(const Pod& pod);
// No other scheduler chooses its node meanwhile.
bool WaitsForSiding(const Pod& pod);

}  // namespace siding::kubernetes
