#include "planner/write_plans.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
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

  void Write(std::vector<Plan>& plans) {
    std::map<NodeId, size_t> plan_of;
    HandOut(plans, plan_of);
    for (size_t i = 0; i < plans.size(); ++i) {
      Time last;
      std::tie(plans[i].awaited, last) = Awaited(plans[i].nodes);
      if (!plans[i].awaited.empty()) BeginTogether(i, plan_of, plans[i].predicted_start, last);
    }
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
  // One thing that is written over: a node's way to a tier, or (of no node) the shared tier itself. In
  // advance apart.
  using Channel = std::tuple<NodeId, Tier, bool>;
  // Microseconds of writing, by what they follow.
  using Work = std::map<Duration, double, std::greater<>>;

  static Channel SharedTier() { return {NodeId(), Tier::kShared, false}; }

  std::set<Channel> ChannelsOf(const Victim& v) const {
    const Option& option = OptionOf(v);
    std::set<Channel> channels;
    for (size_t rank = 0; rank < option.by_rank.size(); ++rank)
      channels.insert({JobOf(v).nodes[rank], option.tier, option.early});
    if (!option.early && option.shared_bytes > Bytes{0}) channels.insert(SharedTier());
    return channels;
  }

  void CountWriting() {
    for (const Victim& v : victims_) {
      const Option& option = OptionOf(v);
      const Duration before = option.early ? Duration(0) : option.before_writing;
      for (size_t rank = 0; rank < option.by_rank.size(); ++rank) {
        writing_[{JobOf(v).nodes[rank], option.tier, option.early}][v.by][before] +=
            static_cast<double>(option.by_rank[rank].count());
      }
      if (!option.early && option.shared_bytes > Bytes{0})
        writing_[SharedTier()][v.by][before] += MicrosToShare(static_cast<double>(option.shared_bytes.value));
    }
    for (int end = 0; end <= static_cast<int>(problem_.deadlines.size()); ++end)
      shared_done_.push_back(Done(SharedTier(), end));
  }

  double MicrosToShare(double bytes) const { return bytes / snapshot_.shared.bytes_per_second * 1e6; }

  // At the arrival, of what was being written before.
  double MicrosInFlight() const {
    if (snapshot_.shared.in_flight == Bytes{0}) return 0;
    const auto lead = static_cast<double>((problem_.arrival - snapshot_.now).count());
    return std::max(0.0, MicrosToShare(static_cast<double>(snapshot_.shared.in_flight.value)) - lead);
  }

  // From the arrival until all that is written there for the deadlines before `end` is done; 0 for nothing.
  // What follows a wait takes at least the wait and then the time of all that follows one as long or longer.
  Duration Done(const Channel& channel, int end) const {
    const auto found = writing_.find(channel);
    if (found == writing_.end()) return Duration(0);
    Work work;
    for (auto it = found->second.begin(); it != found->second.lower_bound(end); ++it) {
      for (const auto& [before, micros] : it->second) work[before] += micros;
    }
    double sum = 0;
    Duration done{0};
    for (const auto& [before, micros] : work) {
      sum += micros;
      if (sum > 0) done = std::max(done, before + Duration(std::llround(sum)));
    }
    if (sum == 0 || channel != SharedTier()) return done;
    return std::max(done, Duration(std::llround(sum + MicrosInFlight())));
  }
  Duration DoneBy(const Channel& channel, int end) const {
    return channel == SharedTier() ? shared_done_[end] : Done(channel, end);
  }

  // All that is written there, without a pause.
  Duration Busy(const Channel& channel) const {
    double sum = channel == SharedTier() ? MicrosInFlight() : 0;
    for (const auto& [by, work] : writing_.at(channel)) {
      for (const auto& [before, micros] : work) sum += micros;
    }
    return Duration(std::llround(sum));
  }

  // Those who have to be gone by an earlier deadline write first. A later one begins after them, unless it
  // would then not be done in time by itself.
  void PredictWriting() {
    CountWriting();
    for (const Victim& v : victims_) {
      const Option& option = OptionOf(v);
      Duration before{0}, with{0};  // until those who come earlier are done, and until this one is too
      for (const Channel& channel : ChannelsOf(v)) {
        before = std::max(before, DoneBy(channel, v.by));
        with = std::max(with, DoneBy(channel, v.by + 1));
      }
      early_writing_.push_back(option.early ? with : Duration(0));
      if (option.early) {
        leaving_.push_back({problem_.arrival + option.wait, problem_.arrival + option.release});
        continue;
      }
      const Duration takes = option.release - option.wait;
      const Duration latest = std::max(Duration(0), problem_.deadlines[v.by].within - takes);
      const Duration begin = std::max(option.wait, std::min(before, latest));
      leaving_.push_back({problem_.arrival + begin, problem_.arrival + std::max(begin + takes, with)});
    }
  }

  // While others cannot leave yet no victim is stopped: one that need not begin at once begins when the last
  // may, or so early before `start` that all writing beside it can follow. What a kill loses would grow. Who
  // leaves for another plan as well, or writes where others of another plan do, goes at once: that one counts
  // on it.
  void BeginTogether(size_t plan, const std::map<NodeId, size_t>& plan_of, Time start, Time last) {
    std::map<Channel, Duration> busy;
    std::set<Channel> of_others;
    for (const auto& [channel, work] : writing_) busy[channel] = Busy(channel);
    for (const Victim& v : victims_) {
      if (PlansOf(v, plan_of) != std::set{plan}) of_others.merge(ChannelsOf(v));
    }
    for (size_t i = 0; i < victims_.size(); ++i) {
      const Option& option = OptionOf(victims_[i]);
      if (option.early || option.method == Method::kKill || leaving_[i].release > start) continue;
      const std::set<Channel> channels = ChannelsOf(victims_[i]);
      if (PlansOf(victims_[i], plan_of) != std::set{plan} ||
          std::any_of(channels.begin(), channels.end(), [&](const auto& c) { return of_others.contains(c); }))
        continue;
      Duration needs = option.release - option.wait;
      for (const Channel& channel : channels) needs = std::max(needs, busy[channel]);
      const Time begin = std::min(last, start - needs);
      if (begin > leaving_[i].begin) leaving_[i] = {begin, begin + needs};
    }
  }

  // Those that get nodes of this victim.
  std::set<size_t> PlansOf(const Victim& v, const std::map<NodeId, size_t>& plan_of) const {
    std::set<size_t> plans;
    for (const NodeId& node : JobOf(v).nodes) {
      if (auto it = plan_of.find(node); it != plan_of.end()) plans.insert(it->second);
    }
    return plans;
  }

  // Who is waited for by those who get these nodes: victims that may leave only later, and jobs that end. And
  // when the last of them goes, or may.
  std::pair<std::vector<JobId>, Time> Awaited(const std::vector<NodeId>& nodes) const {
    const std::unordered_set<NodeId> its(nodes.begin(), nodes.end());
    std::vector<JobId> awaited;
    Time last = problem_.arrival;
    const auto add = [&](const JobView& job, Time until) {
      if (std::none_of(job.nodes.begin(), job.nodes.end(), [&](const NodeId& n) { return its.contains(n); }))
        return;
      awaited.push_back(job.id);
      last = std::max(last, until);
    };
    for (const Victim& v : victims_) {
      if (OptionOf(v).wait > Duration(0)) add(JobOf(v), problem_.arrival + OptionOf(v).wait);
    }
    for (const JobView& job : snapshot_.jobs) {
      if (!job.releasing_at && LeavesBy(problem_, job, problem_.deadlines.back().within))
        add(job, *job.ends_at);
    }
    std::sort(awaited.begin(), awaited.end());
    return {awaited, last};
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
      const std::optional<Time> at = LeavesAt(problem_, job);
      if (!at || !LeavesBy(problem_, job, problem_.deadlines.back().within)) continue;
      for (const NodeId& node : job.nodes) of_node[node].push_back({*at, GivesBack(job)});
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
    std::set<int> taken;  // nodes that victims migrate to
    for (size_t i = 0; i < victims_.size(); ++i) {
      const std::set<size_t> its_plans = PlansOf(victims_[i], plan_of);
      Plan& plan = its_plans.empty() ? plans.back() : plans[*its_plans.begin()];
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
      const PlanKeep why = WhyKept(candidate, problem_.deadlines.back().within, useful);
      for (Plan& plan : plans) {
        const bool awaited = std::binary_search(plan.awaited.begin(), plan.awaited.end(), candidate.job->id);
        plan.kept.push_back(awaited ? WhyAwaited(*candidate.job) : why);
      }
    }
  }

  const Problem& problem_;
  const Snapshot& snapshot_;
  const std::vector<Request>& requests_;
  const std::vector<Victim>& victims_;
  std::map<Channel, std::map<int, Work>> writing_;  // by deadline
  std::vector<Duration> shared_done_;               // by deadline, of those before it
  std::vector<Leaving> leaving_;                    // by victim
  std::vector<Duration> early_writing_;             // by victim: of all images in advance on its busiest node
};

}  // namespace

void WritePlans(const Problem& problem, const std::vector<Request>& requests,
                const std::vector<Victim>& victims, std::vector<Plan>& plans) {
  Writer(problem, requests, victims).Write(plans);
}

}  // namespace siding
