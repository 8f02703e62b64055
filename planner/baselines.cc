#include "planner/baselines.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "planner/explain.h"
#include "planner/nodes.h"
#include "planner/options.h"

namespace siding {
namespace {

struct Chosen {
  const Candidate* candidate = nullptr;
  const Option* option = nullptr;
};

class Baseline {
 public:
  Baseline(const Snapshot& snapshot, const Request& request, const Policy& policy)
      : snapshot_(snapshot),
        request_(request),
        policy_(policy),
        candidates_(MakeCandidates(snapshot, request, policy)),
        state_(snapshot.nodes.size()) {
    for (size_t n = 0; n < snapshot.nodes.size(); ++n) {
      const NodeView& node = snapshot.nodes[n];
      index_[node.id] = n;
      state_[n].free = node.free;
      state_[n].eligible = IsEligible(node, request.per_node);
      enough_ += Serves(n);
    }
  }

  Plan Make() {
    for (const Candidate* candidate : Ordered()) {
      if (enough_ >= request_.nodes) break;
      if (const Option* option = Choose(*candidate)) Take({candidate, option}, +1);
    }
    if (policy_.strategy == Strategy::kKueueClassical) PutBack();
    return Fill();
  }

 private:
  struct NodeState {
    Resources free;
    Bytes frozen;
    bool eligible = false;
  };

  bool Serves(size_t n) const {
    const NodeState& s = state_[n];
    const bool ram =
        s.frozen == Bytes{0} || s.frozen + request_.per_node.memory <= snapshot_.nodes[n].ram_available;
    return s.eligible && ram && s.free.Covers(request_.per_node);
  }

  std::vector<const Candidate*> Ordered() const {
    std::vector<const Candidate*> order;
    for (const Candidate& c : candidates_) {
      const Time from = std::max(c.from, c.job->saved_by.value_or(c.from));
      if (!c.options.empty() && from <= snapshot_.now) order.push_back(&c);  // they know no later
    }
    const bool by_size = policy_.strategy == Strategy::kSlurmPreempt;
    std::sort(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) {
      const auto key = [&](const JobView& job) {
        const int64_t second =
            by_size ? static_cast<int64_t>(job.nodes.size()) : -ToMicros(job.running_since);
        return std::tuple(job.priority, second, job.id);
      };
      return key(*a->job) < key(*b->job);
    });
    return order;
  }

  // The first way that this scheduler has and that helps; nullptr if the job stands on no node of use.
  const Option* Choose(const Candidate& candidate) const {
    bool useful = false;
    for (const NodeId& node : candidate.job->nodes) {
      auto it = index_.find(node);
      useful |= it != index_.end() && state_[it->second].eligible && !Serves(it->second);
    }
    if (!useful) return nullptr;
    const std::vector<Method> order = policy_.strategy == Strategy::kPbsOrder
                                          ? std::vector{Method::kSuspend, Method::kCheckpoint, Method::kKill}
                                          : std::vector{Method::kKill};
    for (Method method : order) {
      for (const Option& option : candidate.options) {
        if (option.method != method || option.early || option.migrates || option.wait > Duration(0)) continue;
        if (SharedRoomOf(*candidate.job, option) > shared_left_) continue;
        if (!option.stays_in_ram || FitsBeside(*candidate.job)) return &option;
      }
    }
    return nullptr;
  }

  bool FitsBeside(const JobView& job) const {
    for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
      auto it = index_.find(job.nodes[rank]);
      if (it == index_.end()) continue;
      const Bytes frozen = state_[it->second].frozen + job.memory[rank];
      if (frozen + request_.per_node.memory > snapshot_.nodes[it->second].ram_available) return false;
    }
    return true;
  }

  void Take(const Chosen& victim, int sign) {
    const JobView& job = *victim.candidate->job;
    for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
      auto it = index_.find(job.nodes[rank]);
      if (it == index_.end()) continue;
      NodeState& state = state_[it->second];
      enough_ -= Serves(it->second);
      Resources back = job.per_node;
      if (victim.option->stays_in_ram) {
        back = FreedByFreezing(job.per_node);
        state.frozen.value += sign * job.memory[rank].value;
      }
      sign > 0 ? state.free += back : state.free -= back;
      enough_ += Serves(it->second);
    }
    const Bytes image = SharedRoomOf(job, *victim.option);
    sign > 0 ? shared_left_ -= image : shared_left_ += image;
    if (sign > 0) victims_.push_back(victim);
  }

  void PutBack() {
    for (size_t i = victims_.size(); i-- > 0;) {
      Take(victims_[i], -1);
      if (enough_ >= request_.nodes) {
        victims_.erase(victims_.begin() + static_cast<long>(i));
      } else {
        const Chosen victim = victims_[i];
        victims_.erase(victims_.begin() + static_cast<long>(i));
        Take(victim, +1);
        std::rotate(victims_.begin() + static_cast<long>(i), victims_.end() - 1, victims_.end());
      }
    }
  }

  Plan Fill() const {
    Plan plan;
    plan.request = request_.id;
    plan.exact = false;
    if (enough_ < request_.nodes) {
      plan.refusal = absl::StrCat("only ", enough_, " of ", CountNodes(request_.nodes), " can be freed");
      return plan;
    }
    plan.feasible = true;
    plan.predicted_start = ArrivalOf(snapshot_, request_);
    std::unordered_map<NodeId, Time> at;
    for (const Chosen& victim : victims_) {
      const Time released = plan.predicted_start + victim.option->release;
      for (const NodeId& node : victim.candidate->job->nodes) at[node] = std::max(at[node], released);
      plan.steps.push_back(StepOf(victim));
      plan.loss_node_seconds += plan.steps.back().loss_node_seconds;
      plan.cost_node_seconds += static_cast<double>(victim.option->cost_ms) / 1000;
    }
    // Nodes that no victim has to leave go first.
    for (bool freed : {false, true}) {
      for (size_t n = 0; n < state_.size() && static_cast<int>(plan.nodes.size()) < request_.nodes; ++n) {
        const NodeId& id = snapshot_.nodes[n].id;
        if (at.contains(id) == freed && Serves(n)) plan.nodes.push_back(id);
      }
    }
    for (const NodeId& node : plan.nodes) {
      if (auto it = at.find(node); it != at.end())
        plan.predicted_start = std::max(plan.predicted_start, it->second);
    }
    return plan;
  }

  PlanStep StepOf(const Chosen& victim) const {
    PlanStep step;
    const JobView& job = *victim.candidate->job;
    step.job = job.id;
    step.method = victim.option->method;
    step.tier = victim.option->tier;
    step.nodes = job.nodes;
    step.predicted_release = ArrivalOf(snapshot_, request_) + victim.option->release;
    if (step.method == Method::kCheckpoint) {
      for (Bytes bytes : job.memory) step.bytes += bytes;
    }
    step.loss_node_seconds = static_cast<double>(victim.option->loss_ms) / 1000;
    step.reason = absl::StrCat("next in the order of ", ToString(policy_.strategy));
    return step;
  }

  const Snapshot& snapshot_;
  const Request& request_;
  const Policy& policy_;
  const std::vector<Candidate> candidates_;
  std::unordered_map<NodeId, size_t> index_;
  std::vector<NodeState> state_;
  std::vector<Chosen> victims_;
  int enough_ = 0;  // nodes that serve the request
  Bytes shared_left_ = snapshot_.shared.free;
};

}  // namespace

Plan MakeBaselinePlan(const Snapshot& snapshot, const Request& request, const Policy& policy) {
  return Baseline(snapshot, request, policy).Make();
}

}  // namespace siding
