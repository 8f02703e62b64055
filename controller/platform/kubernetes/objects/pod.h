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

// What users, siding and its labels, annotations, gates and taints are called by.
inline constexpr char kPrefix[] = "siding.dev/";

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
  bool ready = false;
  std::optional<Time> started;   // the first of its containers was, for the first time that is known
  std::optional<Time> deleting;  // asked for: it is gone when its processes are, at that time at the latest
  Duration grace = std::chrono::seconds(30);  // that its processes have to end
  Amounts requests;
  Placement placement;
  std::string problem;  // what of it cannot be read; then `requests` is nothing
};
Pod PodFrom(const Object& object);

// It holds, or will hold, what it requests of its node.
inline bool HoldsNode(const Pod& pod) {
  return !pod.node.empty() && pod.phase != PodPhase::kSucceeded && pod.phase != PodPhase::kFailed;
}

}  // namespace siding::kubernetes
