#include "sim/strategies.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace siding::sim {
namespace {

Policy Only(std::vector<Method> methods, siding::Strategy strategy = siding::Strategy::kLeastLoss) {
  Policy policy;
  policy.strategy = strategy;
  policy.classes = {{.name = "all", .methods = std::move(methods)}};
  return policy;
}

}  // namespace

Policy DefaultPolicy() {
  Policy policy;
  policy.delay_weight = policy.unused_node_weight = 0.5;
  policy.frozen_node_weight = 1;
  return policy;
}

std::vector<Strategy> AllStrategies(const Policy& ours) {
  using Kind = Strategy::Kind;
  return {{"siding", Kind::kPlan, ours},
          {"kill-only", Kind::kPlan, Only({Method::kKill})},
          {"checkpoint-all", Kind::kPlan, Only({Method::kCheckpoint})},
          {"slurm-preempt", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kSlurmPreempt)},
          {"slurm-youngest-first", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kSlurmYoungestFirst)},
          {"pbs-order", Kind::kPlan,
           Only({Method::kSuspend, Method::kCheckpoint, Method::kKill}, siding::Strategy::kPbsOrder)},
          {"kueue-classical", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kKueueClassical)},
          {"static-reservation", Kind::kReservation, {}},
          {"none", Kind::kWait, {}}};
}

absl::StatusOr<std::vector<Strategy>> ParseStrategies(const std::string& names, const Policy& ours) {
  const std::vector<Strategy> all = AllStrategies(ours);
  if (names == "all") return all;
  std::vector<Strategy> chosen;
  std::istringstream in(names);
  for (std::string name; std::getline(in, name, ',');) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Strategy& s) { return s.name == name; });
    if (found == all.end()) {
      std::string expected = "all";
      for (const Strategy& s : all) absl::StrAppend(&expected, ", ", s.name);
      return absl::InvalidArgumentError(
          absl::StrCat("strategies: expected ", expected, "; got '", name, "'"));
    }
    chosen.push_back(*found);
  }
  if (chosen.empty()) return absl::InvalidArgumentError("strategies: expected one at least");
  return chosen;
}

}  // namespace siding::sim
