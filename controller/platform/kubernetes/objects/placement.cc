#include "controller/platform/kubernetes/objects/placement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siding::kubernetes {
namespace {

using Labels = std::map<std::string, std::string>;

// A term that asks nothing is met by no node.
bool IsMet(const NodeTerm& term, const std::string& name, const Labels& labels) {
  const auto all = [](const std::vector<Requirement>& requirements, const Labels& of) {
    return std::all_of(requirements.begin(), requirements.end(),
                       [&](const Requirement& r) { return IsMet(r, of); });
  };
  if (term.labels.empty() && term.fields.empty()) return false;
  return all(term.labels, labels) && all(term.fields, {{"metadata.name", name}});
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && !toleration.key.empty() &&
         toleration.value == taint.value;
}

bool HasPodTerms(const Json& pod, absl::string_view kind) {
  return !ListAt(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"}).empty();
}

std::vector<std::string> NotPlanned(const Json& pod) {
  std::vector<std::string> what;
  if (HasPodTerms(pod, "podAffinity")) what.emplace_back("required affinity to other pods");
  if (HasPodTerms(pod, "podAntiAffinity")) what.emplace_back("required anti-affinity to other pods");
  for (const Json& spread : ListAt(pod, {"spec", "topologySpreadConstraints"})) {
    if (TextAt(spread, {"whenUnsatisfiable"}) == "ScheduleAnyway") continue;
    what.emplace_back("a required topology spread");
    break;
  }
  if (!ListAt(pod, {"spec", "resourceClaims"}).empty()) what.emplace_back("resource claims");
  for (const Json& container : ListAt(pod, {"spec", "containers"})) {
    const Json& ports = ListAt(container, {"ports"});
    if (std::none_of(ports.begin(), ports.end(),
                     [](const Json& port) { return WholeAt(port, {"hostPort"}) > 0; }))
      continue;
    what.emplace_back("ports of the host");
    break;
  }
  return what;
}

}  // namespace

std::vector<Requirement> RequirementsAt(const Json& term, JsonPath path) {
  std::vector<Requirement> requirements;
  for (const Json& said : ListAt(term, path)) {
    Requirement requirement{TextAt(said, {"key"}), TextAt(said, {"operator"}), {}};
    for (const Json& value : ListAt(said, {"values"})) {
      if (value.is_string()) requirement.values.push_back(value.get<std::string>());
    }
    requirements.push_back(std::move(requirement));
  }
  return requirements;
}

bool IsMet(const Requirement& requirement, const Labels& labels) {
  const auto found = labels.find(requirement.key);
  const bool there = found != labels.end();
  const auto is_one = [&] {
    return there && std::find(requirement.values.begin(), requirement.values.end(), found->second) !=
                        requirement.values.end();
  };
  if (requirement.op == "In") return is_one();
  if (requirement.op == "NotIn") return !is_one();
  if (requirement.op == "Exists") return there;
  if (requirement.op == "DoesNotExist") return !there;
  int64_t has = 0;
  int64_t bound = 0;
  if (!there || requirement.values.size() != 1 || !absl::SimpleAtoi(found->second, &has) ||
      !absl::SimpleAtoi(requirement.values.front(), &bound))
    return false;
  if (requirement.op == "Gt") return has > bound;
  return requirement.op == "Lt" && has < bound;
}

std::string ToString(const Taint& taint) {
  return absl::StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect);
}

Placement PlacementFrom(const Json& pod) {
  Placement placement;
  placement.selector = TextsAt(pod, {"spec", "nodeSelector"});
  const Json* required =
      Find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr && required->is_object()) {
    placement.terms.emplace();
    for (const Json& term : ListAt(*required, {"nodeSelectorTerms"})) {
      placement.terms->push_back(
          {RequirementsAt(term, {"matchExpressions"}), RequirementsAt(term, {"matchFields"})});
    }
  }
  for (const Json& said : ListAt(pod, {"spec", "tolerations"})) {
    placement.tolerations.push_back({TextAt(said, {"key"}), TextAt(said, {"operator"}),
                                     TextAt(said, {"value"}), TextAt(said, {"effect"})});
  }
  placement.not_planned = NotPlanned(pod);
  return placement;
}

std::string WhyNotThere(const Placement& pod, const std::string& name, const Labels& labels,
                        const std::vector<Taint>& taints) {
  for (const Taint& taint : taints) {
    if (taint.effect == "PreferNoSchedule") continue;
    const bool tolerated = std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                                       [&](const Toleration& t) { return Tolerates(t, taint); });
    if (!tolerated) return absl::StrCat("the node has the taint ", ToString(taint));
  }
  for (const auto& [key, value] : pod.selector) {
    const auto found = labels.find(key);
    if (found == labels.end() || found->second != value)
      return absl::StrCat("the node has not the label ", key, "=", value);
  }
  const bool met = !pod.terms || std::any_of(pod.terms->begin(), pod.terms->end(),
                                             [&](const NodeTerm& term) { return IsMet(term, name, labels); });
  return met ? "" : "the pod's required affinity rules the node out";
}

}  // namespace siding::kubernetes
