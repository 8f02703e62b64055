// The way of a plan: guards and options (options.h) -> what combinations free which nodes in time
// (frontier.h)
// -> the cheapest selection (knapsack.h) -> trim -> words.
//
// Time enters in one place: within = start_by - margin - now. A way of leaving is possible if its own
// predicted time is within that. All of them together may write to shared storage what its aggregate rate can
// take in that time, less what is being written already. When `within` grows nothing that was possible
// becomes impossible, so the earliest feasible start is found by bisection.
#include "planner/planner.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/frontier.h"
#include "planner/knapsack.h"
#include "planner/options.h"

namespace siding {
namespace {

// Costs order first by loss, then by the number of victims.
constexpr int64_t kVictimWeight = 1024;
constexpr Duration kEarliestPrecision = std::chrono::milliseconds(10);

struct Solution {
  std::vector<ChosenOption> victims;
  std::vector<int> nodes;  // that will be free, all of them
  bool exact = true;       // nothing better exists
};

std::string NodeSeconds(double s) { return absl::StrFormat("%.1f node-seconds", s); }
std::string Nodes(size_t n) { return absl::StrCat(n, n == 1 ? " node" : " nodes"); }

class Planner {
 public:
  Planner(const Snapshot& snapshot, const Request& request, const Policy& policy)
      : snapshot_(snapshot),
        request_(request),
        policy_(policy),
        candidates_(MakeCandidates(snapshot, policy)) {
    // Any order of the snapshot's jobs gives the same plan: candidates are looked at by id.
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.job->id < b.job->id; });
    for (const NodeView& node : snapshot.nodes) eligible_ += IsEligible(node, request);
  }

  Plan Make() const {
    Plan plan;
    plan.request = request_.id;
    const Duration within = request_.start_by - policy_.margin - snapshot_.now;
    const auto solution = eligible_ >= request_.nodes ? Solve(within) : std::nullopt;
    if (solution) {
      Fill(plan, Trim(*solution, within), within);
    } else {
      Refuse(plan, within);
    }
    return plan;
  }

 private:
  Budget BudgetFor(Duration within) const {
    const double bytes = snapshot_.shared.bytes_per_second * ToSeconds(std::max(Duration(0), within)) -
                         static_cast<double>(snapshot_.shared.in_flight.value);
    return {policy_.budget_steps, std::max(0.0, bytes) / policy_.budget_steps};
  }

  std::optional<Solution> Solve(Duration within) const {
    if (within < Duration(0)) within = Duration(0);
    const Budget budget = BudgetFor(within);
    const Frontier frontier = MakeFrontier(snapshot_, request_, candidates_, within, budget);
    std::vector<KnapsackGroup> groups;
    for (const auto& choices : frontier.groups) {
      KnapsackGroup group;
      for (const FrontierChoice& choice : choices) {
        group.push_back({static_cast<int>(choice.nodes.size()), choice.steps,
                         choice.loss_ms * kVictimWeight + static_cast<int64_t>(choice.victims.size())});
      }
      groups.push_back(std::move(group));
    }
    const int need = request_.nodes - static_cast<int>(frontier.free_nodes.size());
    const auto answer = SolveKnapsack(groups, need, budget.steps);
    if (!answer) return std::nullopt;
    Solution solution;
    solution.exact = frontier.exact;
    solution.nodes = frontier.free_nodes;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (answer->chosen[g] < 0) continue;
      const FrontierChoice& choice = frontier.groups[g][answer->chosen[g]];
      solution.victims.insert(solution.victims.end(), choice.victims.begin(), choice.victims.end());
      solution.nodes.insert(solution.nodes.end(), choice.nodes.begin(), choice.nodes.end());
    }
    return solution;
  }

  // A victim without which there are still enough nodes is put back, the most expensive first. An exact
  // solution has none: it counts victims too, so leaving one out would have been cheaper.
  Solution Trim(Solution solution, Duration within) const {
    if (solution.exact) return solution;
    std::vector<ChosenOption> order = solution.victims;
    std::sort(order.begin(), order.end(), [&](const ChosenOption& a, const ChosenOption& b) {
      const auto key = [&](const ChosenOption& v) {
        return std::tuple(-OptionOf(v).loss_ms, -candidates_[v.candidate].job->priority,
                          candidates_[v.candidate].job->id);
      };
      return key(a) < key(b);
    });
    for (const ChosenOption& victim : order) {
      std::vector<ChosenOption> without;
      for (const ChosenOption& v : solution.victims) {
        if (v.candidate != victim.candidate) without.push_back(v);
      }
      std::vector<int> nodes = FreedBy(without, within);
      if (static_cast<int>(nodes.size()) >= request_.nodes)
        solution = {std::move(without), std::move(nodes), false};
    }
    return solution;
  }

  // The nodes that are free if just these leave.
  std::vector<int> FreedBy(const std::vector<ChosenOption>& victims, Duration within) const {
    std::vector<Candidate> only(candidates_.size());
    for (size_t c = 0; c < candidates_.size(); ++c) only[c].job = candidates_[c].job;
    for (const ChosenOption& v : victims) only[v.candidate].options = {OptionOf(v)};
    const Frontier frontier = MakeFrontier(snapshot_, request_, only, within, BudgetFor(within));
    std::vector<int> nodes = frontier.free_nodes;
    for (const auto& choices : frontier.groups) {
      const auto most = std::max_element(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
        return a.nodes.size() < b.nodes.size();
      });
      nodes.insert(nodes.end(), most->nodes.begin(), most->nodes.end());
    }
    return nodes;
  }

  const Option& OptionOf(const ChosenOption& v) const { return candidates_[v.candidate].options[v.option]; }

  void Fill(Plan& plan, const Solution& solution, Duration within) const {
    plan.feasible = true;
    Steps(plan, solution.victims);
    const std::map<NodeId, std::vector<Release>> releases = Releases(plan, solution.victims);
    std::vector<std::pair<Time, NodeId>> nodes;
    for (int n : solution.nodes) {
      const NodeView& node = snapshot_.nodes[n];
      auto it = releases.find(node.id);
      nodes.emplace_back(FreeAt(node, it == releases.end() ? std::vector<Release>() : it->second), node.id);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.resize(request_.nodes);
    plan.predicted_start = snapshot_.now;
    for (const auto& [at, id] : nodes) {
      plan.nodes.push_back(id);
      plan.predicted_start = std::max(plan.predicted_start, at);
    }
    std::set<JobId> victims;
    for (const PlanStep& step : plan.steps) victims.insert(step.job);
    for (const Candidate& candidate : candidates_) {
      if (!victims.contains(candidate.job->id))
        plan.kept.push_back({candidate.job->id, WhyKept(candidate, within)});
    }
  }

  // Something that a node gets back, and when.
  struct Release {
    Time at;
    Resources resources;
  };

  // By node: jobs that are leaving already, and the plan's victims.
  std::map<NodeId, std::vector<Release>> Releases(const Plan& plan,
                                                  const std::vector<ChosenOption>& victims) const {
    std::map<NodeId, std::vector<Release>> releases;
    for (const JobView& job : snapshot_.jobs) {
      if (!job.releasing_at || (job.releasing_for != JobId() && job.releasing_for != request_.id)) continue;
      for (const NodeId& node : job.nodes) releases[node].push_back({*job.releasing_at, job.per_node});
    }
    std::map<JobId, Time> release_of;
    for (const PlanStep& step : plan.steps) release_of[step.job] = step.predicted_release;
    for (const ChosenOption& v : victims) {
      const JobView& job = *candidates_[v.candidate].job;
      const Resources back =
          OptionOf(v).stays_in_ram ? Resources{job.per_node.slots, Bytes{0}, 0} : job.per_node;
      for (const NodeId& node : job.nodes) releases[node].push_back({release_of[job.id], back});
    }
    return releases;
  }

  // The first moment at which the node has enough; what leaves later does not matter.
  Time FreeAt(const NodeView& node, std::vector<Release> releases) const {
    std::sort(releases.begin(), releases.end(),
              [](const Release& a, const Release& b) { return a.at < b.at; });
    Resources free = node.free;
    Time at = snapshot_.now;
    for (const Release& release : releases) {
      if (free.Covers(request_.per_node)) break;
      free += release.resources;
      at = std::max(at, release.at);
    }
    return at;
  }

  void Steps(Plan& plan, const std::vector<ChosenOption>& victims) const {
    Bytes shared;
    for (const ChosenOption& v : victims) shared += OptionOf(v).shared_bytes;
    for (const ChosenOption& v : victims) {
      const JobView& job = *candidates_[v.candidate].job;
      const Option& option = OptionOf(v);
      PlanStep step;
      step.job = job.id;
      step.method = option.method;
      step.tier = option.tier;
      step.nodes = job.nodes;
      step.predicted_release = snapshot_.now + Predicted(option, shared);
      if (option.method == Method::kCheckpoint) {
        for (Bytes size : job.memory) step.bytes += size;
      }
      step.loss_node_seconds = static_cast<double>(option.loss_ms) / 1000;
      step.reason = WhyChosen(candidates_[v.candidate], v.option);
      plan.loss_node_seconds += step.loss_node_seconds;
      plan.steps.push_back(std::move(step));
    }
    // What takes longest begins first.
    std::sort(plan.steps.begin(), plan.steps.end(), [](const PlanStep& a, const PlanStep& b) {
      return std::tuple(b.predicted_release, a.job) < std::tuple(a.predicted_release, b.job);
    });
  }

  // Those that write to shared storage at once share its rate.
  Duration Predicted(const Option& option, Bytes all_shared) const {
    if (option.shared_bytes == Bytes{0}) return option.release;
    const double bytes = static_cast<double>((all_shared + snapshot_.shared.in_flight).value);
    return std::max(option.release, FromSeconds(bytes / snapshot_.shared.bytes_per_second));
  }

  std::string WhyChosen(const Candidate& candidate, int chosen) const {
    const Option& option = candidate.options[chosen];
    std::string text =
        absl::StrCat("frees ", Nodes(candidate.job->nodes.size()), " in ", FormatDuration(option.release),
                     " for ", NodeSeconds(static_cast<double>(option.loss_ms) / 1000));
    const Option* dearest = nullptr;
    for (const Option& other : candidate.options) {
      if (other.method != option.method && other.loss_ms > option.loss_ms &&
          (dearest == nullptr || other.loss_ms > dearest->loss_ms))
        dearest = &other;
    }
    if (dearest != nullptr) {
      absl::StrAppend(&text, "; to ", ToString(dearest->method), " it would cost ",
                      NodeSeconds(static_cast<double>(dearest->loss_ms) / 1000));
    }
    return text;
  }

  std::string WhyKept(const Candidate& candidate, Duration within) const {
    if (!candidate.why_not.empty()) return candidate.why_not;
    const JobView& job = *candidate.job;
    const bool on_eligible = std::any_of(job.nodes.begin(), job.nodes.end(), [&](const NodeId& id) {
      return std::any_of(snapshot_.nodes.begin(), snapshot_.nodes.end(),
                         [&](const NodeView& node) { return node.id == id && IsEligible(node, request_); });
    });
    if (!on_eligible) return "is on no node that the request could use";
    const Option* cheapest = nullptr;
    const Option* fastest = nullptr;
    for (const Option& option : candidate.options) {
      if (fastest == nullptr || option.release < fastest->release) fastest = &option;
      if (option.release > within) continue;
      if (cheapest == nullptr || option.loss_ms < cheapest->loss_ms) cheapest = &option;
    }
    if (cheapest == nullptr) {
      return absl::StrCat("could not be gone in time: to ", ToString(fastest->method), " it takes ",
                          FormatDuration(fastest->release));
    }
    std::string text = absl::StrCat("not needed: would free ", Nodes(job.nodes.size()), " for ",
                                    NodeSeconds(static_cast<double>(cheapest->loss_ms) / 1000), " (",
                                    ToString(cheapest->method), ")");
    if (!job.methods_note.empty()) absl::StrAppend(&text, "; ", job.methods_note);
    return text;
  }

  void Refuse(Plan& plan, Duration within) const {
    for (const Candidate& candidate : candidates_) {
      plan.kept.push_back({candidate.job->id, candidate.why_not.empty()
                                                  ? "nothing is touched, as the request is refused"
                                                  : candidate.why_not});
    }
    const size_t all = snapshot_.nodes.size();
    if (static_cast<size_t>(request_.nodes) > all) {
      plan.refusal = absl::StrCat("needs ", Nodes(request_.nodes), ", the cluster has ", all);
      return;
    }
    if (eligible_ < request_.nodes) {
      plan.refusal = absl::StrCat("needs ", Nodes(request_.nodes), " that are up and large enough; there ",
                                  eligible_ == 1 ? "is " : "are ", eligible_);
      return;
    }
    plan.refusal =
        absl::StrCat("only ", MostNodes(within), " of ", Nodes(request_.nodes), " can be free by then");
    plan.earliest = Earliest();
    if (!plan.earliest)
      absl::StrAppend(&plan.refusal, ", nor later: the jobs in the way may not be preempted");
  }

  int MostNodes(Duration within) const {
    int low = 0, high = request_.nodes - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (Solved(middle, within)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  bool Solved(int nodes, Duration within) const {
    Request smaller = request_;
    smaller.nodes = nodes;
    return Planner(snapshot_, smaller, policy_).Solve(within).has_value();
  }

  std::optional<Time> Earliest() const {
    // By then every single way has been walked, and all writing is over.
    Duration late = std::chrono::seconds(1);
    double bytes = static_cast<double>(snapshot_.shared.in_flight.value);
    size_t victims = 0;
    for (const Candidate& candidate : candidates_) {
      Bytes most;
      for (const Option& option : candidate.options) {
        late = std::max(late, option.release);
        most = std::max(most, option.shared_bytes);
      }
      bytes += static_cast<double>(most.value);
      ++victims;
      if (candidate.job->releasing_at) late = std::max(late, *candidate.job->releasing_at - snapshot_.now);
    }
    if (snapshot_.shared.bytes_per_second > 0) {
      // Rounding up may cost each victim a step, so the budget has to hold that many steps more.
      late = std::max(late, FromSeconds(bytes / snapshot_.shared.bytes_per_second *
                                        (1 + static_cast<double>(victims) / policy_.budget_steps) * 2));
    }
    if (!Solve(late)) return std::nullopt;
    Duration early{0};
    if (Solve(early)) {
      late = early;
    } else {
      while (late - early > std::max(kEarliestPrecision, late / 100)) {
        const Duration middle = early + (late - early) / 2;
        (Solve(middle) ? late : early) = middle;
      }
    }
    return snapshot_.now + late + policy_.margin;
  }

  const Snapshot& snapshot_;
  const Request& request_;
  const Policy& policy_;
  std::vector<Candidate> candidates_;
  int eligible_ = 0;
};

}  // namespace

Plan MakePlan(const Snapshot& snapshot, const Request& request, const Policy& policy) {
  return Planner(snapshot, request, policy).Make();
}

}  // namespace siding
