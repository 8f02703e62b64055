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

Duration MostLostWork(const Policy& policy) {
  return policy.classes.empty() ? policy.most_lost_work
                                : policy.classes[0].most_lost_work.value_or(policy.most_lost_work);
}

Policy Protected(Policy policy) {
  if (MostLostWork(policy) > Duration(0)) return policy;
  policy.most_lost_work = std::chrono::minutes(1);
  if (!policy.classes.empty()) policy.classes[0].most_lost_work.reset();
  return policy;
}

std::vector<Strategy> AllStrategies(const Policy& ours, bool protect) {
  using Kind = Strategy::Kind;
  const Policy saved = Protected(ours);
  Policy saved_on_disks = saved;
  saved_on_disks.checkpoint_tier = Tier::kLocal;
  std::vector<Strategy> all = {
      {"siding", Kind::kPlan, ours},
      {"siding-protected", Kind::kPlan, saved},
      {"siding-protected-local", Kind::kPlan, saved_on_disks},
      {"kill-only", Kind::kPlan, Only({Method::kKill})},
      {"checkpoint-all", Kind::kPlan, Only({Method::kCheckpoint})},
      {"slurm-preempt", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kSlurmPreempt)},
      {"slurm-youngest-first", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kSlurmYoungestFirst)},
      {"pbs-order", Kind::kPlan,
       Only({Method::kSuspend, Method::kCheckpoint, Method::kKill}, siding::Strategy::kPbsOrder)},
      {"kueue-classical", Kind::kPlan, Only({Method::kKill}, siding::Strategy::kKueueClassical)},
      {"static-reservation", Kind::kReservation, {}},
      {"none", Kind::kWait, {}}};
  for (Strategy& strategy : all) {
    if (!protect) break;
    strategy.policy.most_lost_work = MostLostWork(saved);
    for (JobClass& c : strategy.policy.classes) c.most_lost_work.reset();
    strategy.policy.checkpoint_bandwidth = saved.checkpoint_bandwidth;
    strategy.policy.checkpoint_stops = saved.checkpoint_stops;
    if (strategy.policy.checkpoint_tier == Tier::kShared)
      strategy.policy.checkpoint_tier = saved.checkpoint_tier;
    strategy.policy.copy_images = saved.copy_images;
  }
  return all;
}

absl::StatusOr<std::vector<Strategy>> ParseStrategies(const std::string& names, const Policy& ours,
                                                      bool protect) {
  const std::vector<Strategy> all = AllStrategies(ours, protect);
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
