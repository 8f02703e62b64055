#include "planner/write_plans.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "planner/explain.h"
#include "planner/nodes.h"

namespace siding {
namespace {

class Writer {
 public:
  Writer(const Problem& problem, const std::vector<Request>& requests, const std::vector<Victim>& victims)
      : problem_(problem), snapshot_(problem.snapshot), requests_(requests), victims_(victims) {
    PredictWriting();
  }

  void Write(std::vector<Plan>& plans) const {
    std::map<NodeId, size_t> plan_of;
    HandOut(plans, plan_of);
    AddSteps(plan_of, plans);
    AddKept(plans);
  }

 private:
  const Candidate& CandidateOf(const Victim& v) const { return problem_.candidates[v.candidate]; }
  const JobView& JobOf(const Victim& v) const { return *CandidateOf(v).job; }
  const Option& OptionOf(const Victim& v) const { return CandidateOf(v).options[v.option]; }

  // ---- when ----

  struct Leaving {
    Time begin;
    Time release;
  };
  // One thing that is written over: a node's way to a tier, or the shared tier itself. In advance apart.
  using Channel = std::tuple<NodeId, Tier, bool>;

  // Those who have to be gone by an earlier deadline write first. A later one begins after them, unless it
  // would then not be done in time by itself.
  void PredictWriting() {
    std::map<Channel, std::map<int, Duration>> writing;  // by deadline
    SharedWriting shared;
    for (const Victim& v : victims_) {
      const Option& option = OptionOf(v);
      const Duration notice = option.early ? Duration(0) : option.notice;
      for (size_t rank = 0; rank < option.by_rank.size(); ++rank)
        writing[{JobOf(v).nodes[rank], option.tier, option.early}][v.by] += notice + option.by_rank[rank];
      if (!option.early) shared[v.by][notice] += static_cast<double>(option.shared_bytes.value);
    }
    for (const Victim& v : victims_) {
      const Option& option = OptionOf(v);
      Duration before{0}, with{0};  // until those who come earlier are done, and until this one is too
      for (size_t rank = 0; rank < option.by_rank.size(); ++rank) {
        const auto& its = writing[{JobOf(v).nodes[rank], option.tier, option.early}];
        before = std::max(before, SumBelow(its, v.by, Duration(0)));
        with = std::max(with, SumBelow(its, v.by + 1, Duration(0)));
      }
      if (option.early) {
        early_writing_.push_back(with);
        leaving_.push_back({problem_.arrival, problem_.arrival + option.release});
        continue;
      }
      early_writing_.push_back(Duration(0));
      if (option.shared_bytes > Bytes{0}) {
        before = std::max(before, SharedDone(shared, v.by));
        with = std::max(with, SharedDone(shared, v.by + 1));
      }
      const Duration latest = std::max(Duration(0), problem_.deadlines[v.by].within - option.release);
      const Duration begin = std::min(before, latest);
      leaving_.push_back(
          {problem_.arrival + begin, problem_.arrival + std::max(begin + option.release, with)});
    }
  }

  // Bytes to the shared tier: by deadline, and by the notice that they follow.
  using SharedWriting = std::map<int, std::map<Duration, double>>;

  // From the arrival until all that is written for the deadlines before `end` is there; 0 for nothing. What
  // follows a notice takes at least the notice and then the time of all that follows one as long or longer.
  Duration SharedDone(const SharedWriting& shared, int end) const {
    std::map<Duration, double, std::greater<>> by_notice;
    for (auto it = shared.begin(); it != shared.lower_bound(end); ++it) {
      for (const auto& [notice, bytes] : it->second) by_notice[notice] += bytes;
    }
    const double rate = snapshot_.shared.bytes_per_second;
    double sum = 0;
    Duration done{0};
    for (const auto& [notice, bytes] : by_notice) {
      sum += bytes;
      if (sum > 0) done = std::max(done, notice + FromSeconds(sum / rate));
    }
    if (sum == 0) return Duration(0);
    const double in_flight = std::max(0.0, static_cast<double>(snapshot_.shared.in_flight.value) -
                                               rate * ToSeconds(problem_.arrival - snapshot_.now));
    return std::max(done, FromSeconds((in_flight + sum) / rate));
  }

  template <typename T>
  static T SumBelow(const std::map<int, T>& by_deadline, int end, T sum) {
    for (auto it = by_deadline.begin(); it != by_deadline.lower_bound(end); ++it) sum += it->second;
    return sum;
  }

  // Something that a node gets back, and when.
  struct Release {
    Time at;
    Resources resources;
  };

  // When each of these nodes is predicted to be free.
  std::unordered_map<int, Time> WhenFree(const std::vector<int>& nodes) const {
    std::unordered_map<NodeId, std::vector<Release>> of_node;
    for (const JobView& job : snapshot_.jobs) {
      if (!job.releasing_at || !LeavesForUs(problem_, job)) continue;
      for (const NodeId& node : job.nodes) of_node[node].push_back({*job.releasing_at, GivesBack(job)});
    }
    for (size_t i = 0; i < victims_.size(); ++i) {
      const JobView& job = JobOf(victims_[i]);
      const Resources back =
          OptionOf(victims_[i]).stays_in_ram ? FreedByFreezing(job.per_node) : job.per_node;
      for (const NodeId& node : job.nodes) of_node[node].push_back({leaving_[i].release, back});
    }
    std::unordered_map<int, Time> when;
    for (int n : nodes) {
      const NodeView& node = snapshot_.nodes[n];
      auto it = of_node.find(node.id);
      when[n] = FreeAt(node, it == of_node.end() ? std::vector<Release>() : it->second);
    }
    return when;
  }

  // The first moment at which the node has enough; what leaves later does not matter.
  Time FreeAt(const NodeView& node, std::vector<Release> releases) const {
    std::sort(releases.begin(), releases.end(),
              [](const Release& a, const Release& b) { return a.at < b.at; });
    Resources free = node.free;
    Time at = problem_.arrival;
    for (const Release& release : releases) {
      if (free.Covers(problem_.per_node)) break;
      free += release.resources;
      at = std::max(at, release.at);
    }
    return at;
  }

  // ---- who gets what ----

  // Each request takes, of the nodes that are free by its own deadline, those that are free first.
  void HandOut(std::vector<Plan>& plans, std::map<NodeId, size_t>& plan_of) const {
    const auto free_by = FreeNodes(problem_, victims_);
    const auto when = WhenFree(free_by.back());
    for (size_t i = 0; i < plans.size(); ++i) {
      std::vector<int> free = free_by[i];
      std::erase_if(free, [&](int n) { return plan_of.contains(snapshot_.nodes[n].id); });
      std::sort(free.begin(), free.end(), [&](int a, int b) {
        return std::tie(when.at(a), snapshot_.nodes[a].id) < std::tie(when.at(b), snapshot_.nodes[b].id);
      });
      plans[i].feasible = true;
      plans[i].predicted_start = problem_.arrival;
      for (int n = 0; n < requests_[i].nodes; ++n) {
        plans[i].nodes.push_back(snapshot_.nodes[free[n]].id);
        plans[i].predicted_start = std::max(plans[i].predicted_start, when.at(free[n]));
        plan_of[plans[i].nodes.back()] = i;
      }
    }
  }

  // ---- what is done ----

  // A victim's steps stand in the plan of the first request that gets one of its nodes.
  void AddSteps(const std::map<NodeId, size_t>& plan_of, std::vector<Plan>& plans) const {
    std::set<int> taken;  // nodes that somebody migrates to
    for (size_t i = 0; i < victims_.size(); ++i) {
      size_t owner = plans.size() - 1;
      for (const NodeId& node : JobOf(victims_[i]).nodes) {
        if (auto it = plan_of.find(node); it != plan_of.end()) owner = std::min(owner, it->second);
      }
      Plan& plan = plans[owner];
      const Option& option = OptionOf(victims_[i]);
      PlanStep step = StepOf(i, taken);
      plan.loss_node_seconds += step.loss_node_seconds;
      plan.cost_node_seconds += static_cast<double>(option.cost_ms) / 1000;
      if (option.early) plan.steps.push_back(EarlyStep(step, early_writing_[i]));
      plan.steps.push_back(std::move(step));
    }
    // Images in advance first; then what may begin first, and of that what takes longest.
    for (Plan& plan : plans) {
      std::sort(plan.steps.begin(), plan.steps.end(), [](const PlanStep& a, const PlanStep& b) {
        return std::tuple(b.early, a.begin, b.predicted_release, a.job) <
               std::tuple(a.early, b.begin, a.predicted_release, b.job);
      });
    }
  }

  PlanStep StepOf(size_t i, std::set<int>& taken) const {
    const JobView& job = JobOf(victims_[i]);
    const Option& option = OptionOf(victims_[i]);
    PlanStep step;
    step.job = job.id;
    step.method = option.early ? Method::kKill : option.method;
    step.tier = option.tier;
    step.through_ram = option.method == Method::kCheckpoint && option.stays_in_ram;
    step.nodes = job.nodes;
    if (option.migrates) step.target = Targets(job, taken);
    step.begin = leaving_[i].begin > snapshot_.now ? leaving_[i].begin : Time{};
    step.predicted_release = leaving_[i].release;
    if (option.method == Method::kCheckpoint)
      step.bytes = std::accumulate(job.memory.begin(), job.memory.end(), Bytes{0});
    step.loss_node_seconds = static_cast<double>(option.loss_ms) / 1000;
    step.reason = WhyChosen(CandidateOf(victims_[i]), option);
    return step;
  }

  // Twice the time that all images taken in advance on its nodes need is left for it: enough for a second
  // try.
  PlanStep EarlyStep(PlanStep step, Duration writing) const {
    step.method = Method::kCheckpoint;
    step.early = true;
    step.begin = std::max(snapshot_.now, problem_.arrival - 2 * writing);
    step.predicted_release = step.begin + writing;
    step.loss_node_seconds = 0;  // stands with the step that ends the job
    step.reason = "its image is taken in advance, while it runs on";
    return step;
  }

  std::vector<NodeId> Targets(const JobView& job, std::set<int>& taken) const {
    std::vector<NodeId> targets;
    for (int n : SpareNodes(snapshot_, problem_.per_node, job)) {
      if (targets.size() < job.nodes.size() && taken.insert(n).second)
        targets.push_back(snapshot_.nodes[n].id);
    }
    return targets;
  }

  void AddKept(std::vector<Plan>& plans) const {
    std::unordered_set<NodeId> eligible;
    for (const NodeView& node : snapshot_.nodes) {
      if (IsEligible(node, problem_.per_node)) eligible.insert(node.id);
    }
    std::set<int> leaving;
    for (const Victim& v : victims_) leaving.insert(v.candidate);
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (leaving.contains(static_cast<int>(c))) continue;
      const Candidate& candidate = problem_.candidates[c];
      const bool useful = std::any_of(candidate.job->nodes.begin(), candidate.job->nodes.end(),
                                      [&](const NodeId& id) { return eligible.contains(id); });
      const PlanKeep keep{candidate.job->id, WhyKept(candidate, problem_.deadlines.back().within, useful)};
      for (Plan& plan : plans) plan.kept.push_back(keep);
    }
  }

  const Problem& problem_;
  const Snapshot& snapshot_;
  const std::vector<Request>& requests_;
  const std::vector<Victim>& victims_;
  std::vector<Leaving> leaving_;         // by victim
  std::vector<Duration> early_writing_;  // by victim: of all images in advance on its busiest node
};

}  // namespace

void WritePlans(const Problem& problem, const std::vector<Request>& requests,
                const std::vector<Victim>& victims, std::vector<Plan>& plans) {
  Writer(problem, requests, victims).Write(plans);
}

}  // namespace siding
