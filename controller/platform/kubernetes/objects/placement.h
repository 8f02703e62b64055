// On which nodes a pod may be: taints, selectors and required affinity to nodes, as the scheduler reads them.
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/json.h"

namespace siding::kubernetes {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
  bool operator==(const Taint&) const = default;
};
std::string ToString(const Taint& taint);

// What is asked of a label, or of a field of the node.
struct Requirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};
// All of these.
struct NodeTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;  // metadata.name
  bool operator==(const NodeTerm&) const = default;
};
struct Toleration {
  std::string key;  // "": all
  std::string op;   // Exists, Equal (or "")
  std::string value;
  std::string effect;  // "": all
  bool operator==(const Toleration&) const = default;
};

struct Placement {
  std::map<std::string, std::string> selector;
  bool has_terms = false;
  std::vector<NodeTerm> terms;  // one of these, if it has any
  std::vector<Toleration> tolerations;
  // What else it asks of its place, in words: siding does not plan with that.
  std::vector<std::string> not_planned;
  bool operator==(const Placement&) const = default;
};
Placement PlacementFrom(const Json& pod);

// Why a pod may not begin on the node of this name; "": it may.
std::string WhyNotThere(const Placement& pod, const std::string& name,
                        const std::map<std::string, std::string>& labels, const std::vector<Taint>& taints);

}  // namespace siding::kubernetes
