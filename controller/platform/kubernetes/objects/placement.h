// On which nodes a pod may be: taints, selectors and required affinity to nodes, as the scheduler reads them.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/json.h"

namespace siding::kubernetes {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
};
std::string ToString(const Taint& taint);

// What is asked of a label, or of a field of the node.
struct Requirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
};
// Of a selector, as {"key": "disk", "operator": "In", "values": ["ssd"]}.
std::vector<Requirement> RequirementsAt(const Json& term, JsonPath path);
bool IsMet(const Requirement& requirement, const std::map<std::string, std::string>& labels);

// All of these.
struct NodeTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;  // metadata.name
};
struct Toleration {
  std::string key;  // "": all
  std::string op;   // Exists, Equal (or "")
  std::string value;
  std::string effect;  // "": all
};

struct Placement {
  std::map<std::string, std::string> selector;
  std::optional<std::vector<NodeTerm>> terms;  // one of these; nothing: any node
  std::vector<Toleration> tolerations;
  // What else it asks of its place, in words: siding does not plan with that.
  std::vector<std::string> not_planned;
};
Placement PlacementFrom(const Json& pod);

// Why a pod may not begin on the node of this name; "": it may.
std::string WhyNotThere(const Placement& pod, const std::string& name,
                        const std::map<std::string, std::string>& labels, const std::vector<Taint>& taints);

}  // namespace siding::kubernetes
