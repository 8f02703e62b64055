#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/greedy/greedy.h"
#include "planner/options.h"

namespace siding {
namespace {

// Times of plans are rounded.
constexpr Duration kRounding = std::chrono::microseconds(20);

class Judge {
 public:
  Judge(const Snapshot& snapshot, const std::vector<Request>& requests, const Policy& policy)
      : snapshot_(snapshot),
        requests_(requests),
        policy_(policy),
        candidates_(MakeCandidates(snapshot, CommonRequest(requests), policy)) {
    for (const NodeView& node : snapshot.nodes) nodes_[node.id] = &node;
  }

  std::string Examine(const std::vector<Plan>& plans) {
    if (plans.size() != requests_.size()) return "not one plan for each request";
    double cost = 0, said = 0;
    for (const Plan& plan : plans) {
      if (!plan.feasible) return "a plan is not feasible";
      said += plan.cost_node_seconds;
      for (const PlanStep& step : plan.steps) {
        if (std::string wrong = Add(step); !wrong.empty()) return wrong;
        cost += static_cast<double>(victims_.back().option->cost_ms) / 1000;
      }
    }
    if (std::abs(cost - said) > 1e-6 * (1 + cost))
      return absl::StrCat("costs ", cost, " node-seconds, and says ", said);
    for (size_t k = 0; k < plans.size(); ++k) {
      if (std::string wrong = Writing(k); !wrong.empty()) return wrong;
    }
    return Granted(plans);
  }

 private:
  struct Leaver {
    const JobView* job = nullptr;
    const Option* option = nullptr;
    size_t by = 0;  // index of the first deadline by which it is gone
  };

  Duration Within(size_t k) const { return requests_[k].start_by - policy_.margin - snapshot_.now; }

  std::string Add(const PlanStep& step) {
    const std::string who = absl::StrCat("job ", step.job.value());
    if (step.early || !step.target.empty()) return who + " leaves in a way that is not judged here";
    const auto candidate = std::find_if(candidates_.begin(), candidates_.end(),
                                        [&](const Candidate& c) { return c.job->id == step.job; });
    if (candidate == candidates_.end()) return who + " is none of the jobs";
    if (!leaving_.insert(step.job).second) return who + " leaves twice";
    const auto option =
        std::find_if(candidate->options.begin(), candidate->options.end(), [&](const Option& o) {
          return !o.early && !o.migrates && o.method == step.method &&
                 (o.method != Method::kCheckpoint ||
                  (o.tier == step.tier && o.stays_in_ram == step.through_ram));
        });
    if (option == candidate->options.end()) return who + " cannot leave so";
    const Duration done = std::max(option->release, step.predicted_release - snapshot_.now - kRounding);
    size_t by = 0;
    while (by < requests_.size() && done > Within(by)) ++by;
    if (by == requests_.size()) return who + " is late";
    victims_.push_back({candidate->job, &*option, by});
    return "";
  }

  // All that is written by the deadline, one after another on each node's way to a tier.
  std::string Writing(size_t k) const {
    const double in_flight = static_cast<double>(snapshot_.shared.in_flight.value);
    double shared = 0;
    std::map<std::pair<NodeId, Tier>, Duration> busy;
    std::map<NodeId, Bytes> on_disk;
    for (const auto& [job, option, by] : victims_) {
      if (by > k) continue;
      shared += static_cast<double>(option->shared_bytes.value);
      for (size_t rank = 0; rank < job->nodes.size(); ++rank) {
        if (!option->by_rank.empty()) busy[{job->nodes[rank], option->tier}] += option->by_rank[rank];
        if (option->to_local_disk) on_disk[job->nodes[rank]] += job->memory[rank];
      }
    }
    const double most = snapshot_.shared.bytes_per_second * ToSeconds(Within(k));
    if (shared > 0 && shared + in_flight > most * (1 + 1e-9))
      return absl::StrCat("writes ", shared + in_flight, " bytes to shared storage, which can take ", most);
    for (const auto& [way, time] : busy) {
      if (time > Within(k) + kRounding)
        return absl::StrCat(way.first.value(), " writes for ", FormatDuration(time));
    }
    for (const auto& [node, bytes] : on_disk) {
      if (bytes > nodes_.at(node)->local_disk_free) return absl::StrCat(node.value(), "'s disk is too small");
    }
    return "";
  }

  std::string Granted(const std::vector<Plan>& plans) const {
    std::set<NodeId> granted;
    for (size_t k = 0; k < plans.size(); ++k) {
      if (static_cast<int>(plans[k].nodes.size()) != requests_[k].nodes) return "not as many nodes as needed";
      for (const NodeId& node : plans[k].nodes) {
        if (!granted.insert(node).second) return absl::StrCat(node.value(), " is granted twice");
        if (!IsFree(node, k)) return absl::StrCat(node.value(), " is not free by then");
      }
    }
    return "";
  }

  bool IsFree(const NodeId& id, size_t k) const {
    const NodeView& node = *nodes_.at(id);
    const Resources& wanted = requests_[k].per_node;
    Resources free = node.free;
    for (const JobView& job : snapshot_.jobs) {
      const bool ours = !job.releasing_at || job.releasing_for == JobId() ||
                        std::any_of(requests_.begin(), requests_.end(),
                                    [&](const Request& request) { return request.id == job.releasing_for; });
      const std::optional<Time> at = job.releasing_at ? job.releasing_at : job.ends_at;
      if (!ours || !at || *at - snapshot_.now > Within(k)) continue;
      for (const NodeId& its : job.nodes) {
        if (its == id) free += job.releasing_to_ram ? FreedByFreezing(job.per_node) : job.per_node;
      }
    }
    if (!node.usable || !node.capacity.Covers(wanted)) return false;
    if (free.Covers(wanted)) return true;
    Bytes frozen;
    for (const auto& [job, option, by] : victims_) {
      for (size_t rank = 0; rank < job->nodes.size() && by <= k; ++rank) {
        if (job->nodes[rank] != id) continue;
        free += option->stays_in_ram ? FreedByFreezing(job->per_node) : job->per_node;
        if (option->stays_in_ram) frozen += job->memory[rank];
      }
    }
    return free.Covers(wanted) && (frozen == Bytes{0} || frozen + wanted.memory <= node.ram_available);
  }

  const Snapshot& snapshot_;
  const std::vector<Request>& requests_;
  const Policy& policy_;
  std::vector<Candidate> candidates_;
  std::map<NodeId, const NodeView*> nodes_;
  std::set<JobId> leaving_;
  std::vector<Leaver> victims_;
};

}  // namespace

std::string WhatIsWrong(const Snapshot& snapshot, const std::vector<Request>& requests, const Policy& policy,
                        const std::vector<Plan>& plans) {
  return Judge(snapshot, requests, policy).Examine(plans);
}

}  // namespace siding
