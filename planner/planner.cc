// The way of a plan: guards and options (options.h) -> which nodes are worth looking at (core.h), and what
// combinations free them by when (frontier.h) -> the cheapest selection (cover.h) -> steps, nodes and words.
//
// Time enters in one place: within = start_by - margin - arrival. A way of leaving is possible if its own
// predicted time is within that; a job that is left alone for a while counts from then on, so that time is
// part of it, and one that will have ended by then is not in the way. All of them together may write to
// shared storage what its aggregate rate can take in that time, less what is being written already. When
// `within` grows nothing that was possible becomes impossible, so the earliest feasible start is found by
// bisection.
//
// What the shared tier has room for is no part of the search. A plan whose images take more together than is
// free there is made once more: then room is given to one job after another, first to those that the plan has
// chosen, and whoever gets none has no image there.
#include "planner/planner.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "planner/baselines.h"
#include "planner/explain.h"
#include "planner/frontier.h"
#include "planner/nodes.h"
#include "planner/options.h"
#include "planner/write_plans.h"

namespace siding {
namespace {

constexpr Duration kEarliestPrecision = std::chrono::milliseconds(10);
constexpr size_t kMostNamed = 3;  // of those who are in the way

// One or several requests for nodes of one kind, in the order of their deadlines.
class Planner {
 public:
  Planner(const Snapshot& snapshot, std::vector<Request> requests, const Policy& policy)
      : snapshot_(snapshot),
        requests_(std::move(requests)),
        policy_(policy),
        arrival_(ArrivalOf(snapshot, requests_.front())),
        candidates_(MakeCandidates(snapshot, CommonRequest(requests_), policy)) {
    // Any order of the snapshot's jobs gives the same plan: candidates are looked at by id.
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.job->id < b.job->id; });
    for (const NodeView& node : snapshot.nodes) {
      if (IsEligible(node, per_node())) eligible_.insert(node.id);
    }
  }

  std::vector<Plan> Make() {
    std::vector<Plan> plans(requests_.size());
    for (size_t i = 0; i < plans.size(); ++i) plans[i].request = requests_[i].id;
    const Problem problem = MakeProblem();
    if (static_cast<int>(eligible_.size()) < problem.deadlines.back().nodes) {
      if (plans.size() == 1) Refuse(plans.front(), nullptr);
      return plans;
    }
    Effort effort;
    Frontier frontier = MakeFrontier(problem, effort);
    Solution solution = Solve(frontier);
    if (solution.found && SharedRoomOf(solution.victims) > snapshot_.shared.free) {
      ShareOutRoom(solution.victims);
      frontier = MakeFrontier(problem, effort);
      solution = Solve(frontier);
      solution.exact = false;
    }
    for (Plan& plan : plans) plan.exact = solution.exact;
    if (solution.found) {
      const auto& victims = solution.victims;
      WritePlans(problem, requests_, frontier.exact ? victims : Trimmed(problem, victims), plans);
    } else if (plans.size() == 1) {
      Refuse(plans.front(), &frontier);
    }
    return plans;
  }

 private:
  const Resources& per_node() const { return requests_.front().per_node; }
  Duration Within(const Request& request) const {
    return std::max(Duration(0), request.start_by - policy_.margin - arrival_);
  }

  // ---- the problem and its solution ----

  Problem MakeProblem() const {
    std::vector<Deadline> deadlines;
    int nodes = 0;
    for (const Request& request : requests_)
      deadlines.push_back(DeadlineAt(Within(request), nodes += request.nodes));
    return ProblemWith(std::move(deadlines));
  }

  Problem ProblemWith(std::vector<Deadline> deadlines) const {
    std::vector<JobId> ids;
    for (const Request& request : requests_) ids.push_back(request.id);
    const double lead = SharedBytes(snapshot_.now, arrival_) - InFlight();
    return {snapshot_, candidates_,          per_node(),    std::move(ids),
            arrival_,  std::move(deadlines), BudgetOf(lead)};
  }

  Deadline DeadlineAt(Duration within, int nodes) const {
    // What is being written now is written by the arrival, or continues after it.
    const double left = std::max(0.0, InFlight() - SharedBytes(snapshot_.now, arrival_));
    return {within, nodes, BudgetOf(SharedBytes(arrival_, arrival_ + within) - left)};
  }

  double InFlight() const { return static_cast<double>(snapshot_.shared.in_flight.value); }
  double SharedBytes(Time from, Time to) const {
    return snapshot_.shared.bytes_per_second * ToSeconds(to - from);
  }
  Budget BudgetOf(double bytes) const {
    return {policy_.budget_steps, std::max(0.0, bytes) / policy_.budget_steps};
  }

  // ---- room in the shared tier ----

  Bytes SharedRoomOf(const std::vector<Victim>& victims) const {
    Bytes sum;
    for (const Victim& v : victims) sum += RoomOf(v);
    return sum;
  }
  Bytes RoomOf(const Victim& v) const {
    const Candidate& candidate = candidates_[v.candidate];
    return siding::SharedRoomOf(*candidate.job, candidate.options[v.option]);
  }

  // To these victims first, the smallest image first, so that most get some; then to the others by their ids.
  void ShareOutRoom(const std::vector<Victim>& victims) {
    struct Turn {
      bool is_other;
      Bytes image;  // of a victim
      size_t candidate;
    };
    std::vector<Turn> turns;
    std::unordered_set<size_t> had;
    for (const Victim& v : victims) {
      if (RoomOf(v) == Bytes{0}) continue;
      turns.push_back({false, RoomOf(v), static_cast<size_t>(v.candidate)});
      had.insert(turns.back().candidate);
    }
    for (size_t c = 0; c < candidates_.size(); ++c) {
      if (!had.contains(c)) turns.push_back({true, Bytes{0}, c});
    }
    std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
      return std::tie(a.is_other, a.image, a.candidate) < std::tie(b.is_other, b.image, b.candidate);
    });
    Bytes left = snapshot_.shared.free;
    for (const Turn& turn : turns) left -= GiveRoom(candidates_[turn.candidate], left);
  }

  // What it takes of it.
  static Bytes GiveRoom(Candidate& candidate, Bytes left) {
    Bytes needed;
    const auto room_of = [&](const Option& option) { return siding::SharedRoomOf(*candidate.job, option); };
    for (const Option& option : candidate.options) needed = std::max(needed, room_of(option));
    if (needed <= left) return needed;
    std::erase_if(candidate.options, [&](const Option& option) { return room_of(option) > Bytes{0}; });
    candidate.no_room = WhyNoSharedRoom(left, needed, "the images of other jobs");
    if (candidate.options.empty()) NoteNoOptions(candidate);
    return Bytes{0};
  }

  // ---- refusal ----

  // `frontier`: in which there is no solution; nullptr: there was no need to look.
  void Refuse(Plan& plan, const Frontier* frontier) const {
    const Request& request = requests_.front();
    for (const Candidate& candidate : candidates_) {
      const std::optional<PlanKeep> late = WhyLate(candidate, Within(request));
      plan.kept.push_back(late ? *late : WhyUntouched(*candidate.job));
    }
    const size_t all = snapshot_.nodes.size(), eligible = eligible_.size();
    if (static_cast<size_t>(request.nodes) > all) {
      plan.refusal = absl::StrCat("needs ", CountNodes(request.nodes), ", the cluster has ", all);
      return;
    }
    if (frontier == nullptr) {
      plan.refusal =
          absl::StrCat("needs ", CountNodes(request.nodes), " that are up and large enough; there ",
                       eligible == 1 ? "is " : "are ", eligible);
      return;
    }
    plan.refusal = absl::StrCat("only ", MostNodes(*frontier), " of ", CountNodes(request.nodes),
                                " can be free by then");
    const auto [earliest, exact] = FindEarliest();
    plan.earliest = earliest;
    plan.exact &= exact;
    const bool lacks_room = std::any_of(
        candidates_.begin(), candidates_.end(),
        [](const Candidate& candidate) { return candidate.options.empty() && !candidate.no_room.empty(); });
    if (!earliest) {
      absl::StrAppend(&plan.refusal, lacks_room ? ", nor later as long as images have no room"
                                     : exact    ? ", nor later: not all the jobs in the way can be preempted"
                                                : ", and no later start was found");
    }
    plan.refusal += InTheWay();
  }

  // Those who will be there at the deadline and cannot be asked to leave before, and until when: first those
  // who go first, at last those who never do.
  std::string InTheWay() const {
    const Problem problem = MakeProblem();
    const Duration within = problem.deadlines.back().within;
    std::vector<std::pair<Time, const Candidate*>> those;
    for (const Candidate& candidate : candidates_) {
      const JobView& job = *candidate.job;
      const bool is_there = std::any_of(job.nodes.begin(), job.nodes.end(),
                                        [&](const NodeId& id) { return eligible_.contains(id); });
      if (!is_there || LeavesBy(problem, job, within)) continue;
      const Time from = candidate.why_not.empty() ? arrival_ + LeastWait(candidate) : kForGood;
      if (from - arrival_ <= within) continue;
      those.emplace_back(std::min(from, LeavesAt(problem, job).value_or(kForGood)), &candidate);
    }
    std::stable_sort(those.begin(), those.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (size_t i = 0; i < std::min(kMostNamed, those.size()); ++i) {
      const auto& [until, candidate] = those[i];
      absl::StrAppend(&text, i == 0 ? "; in the way: job " : ", job ", candidate->job->id.value(),
                      until == kForGood ? absl::StrCat(" (", candidate->why_not, ")")
                                        : absl::StrCat(" until ", FormatTime(until)));
    }
    if (those.size() > kMostNamed) absl::StrAppend(&text, " and ", those.size() - kMostNamed, " more");
    return text;
  }

  static Duration LeastWait(const Candidate& candidate) {
    const auto by_wait = [](const Option& a, const Option& b) { return a.wait < b.wait; };
    return std::min_element(candidate.options.begin(), candidate.options.end(), by_wait)->wait;
  }

  // The first row of its demand is of nodes, as there are not enough of them.
  int MostNodes(const Frontier& frontier) const {
    const std::vector<CoverGroup> groups = GroupsOf(frontier);
    std::vector<int> demand = frontier.demand;
    const int free = requests_.front().nodes - demand.front();
    int low = 0, high = demand.front() - 1;
    while (low < high) {
      demand.front() = (low + high + 1) / 2;
      if (SolveCover(groups, demand).found) {
        low = demand.front();
      } else {
        high = demand.front() - 1;
      }
    }
    return free + low;
  }

  struct Earliest {
    std::optional<Time> at;
    bool exact = true;
  };

  // Later than the request asked for: by then they cannot be freed.
  Earliest FindEarliest() const {
    const Request& request = requests_.front();
    Effort effort;
    bool exact = true;
    const auto can_free = [&](Duration within) {
      const auto can = CanMeetDemand(ProblemWith({DeadlineAt(within, request.nodes)}), effort);
      exact &= can.has_value();
      return can.value_or(false);
    };
    Duration early = Within(request), late = std::max(Latest(), early);
    if (!can_free(late)) return {std::nullopt, exact};
    while (late - early > std::max(kEarliestPrecision, late / 100)) {
      exact &= effort.left > 0;
      if (effort.left <= 0) break;
      const Duration middle = early + (late - early) / 2;
      (can_free(middle) ? late : early) = middle;
    }
    return {arrival_ + late + policy_.margin, exact};
  }

  // By then every way has been walked to its end, and all writing is over, even one after another.
  Duration Latest() const {
    Duration late = std::chrono::seconds(1), writing{0}, before{0};
    double bytes = InFlight();
    for (const Candidate& candidate : candidates_) {
      Bytes most;
      Duration longest{0};
      for (const Option& option : candidate.options) {
        late = std::max(late, option.release);
        longest = std::max(longest, option.release - option.wait);
        before = std::max({before, option.wait, option.before_writing});
        most = std::max(most, option.shared_bytes);
      }
      writing += longest + Duration(1);  // each is rounded up
      bytes += static_cast<double>(most.value);
      for (const std::optional<Time>& at : {candidate.job->releasing_at, candidate.job->ends_at}) {
        if (at) late = std::max(late, *at - arrival_);
      }
    }
    late = std::max(late, before + writing);
    if (snapshot_.shared.bytes_per_second > 0) {
      // Rounding up may cost each victim a step, so the budget has to hold that many steps more.
      const double rounding = 1 + static_cast<double>(candidates_.size()) / policy_.budget_steps;
      late = std::max(late, before + FromSeconds(bytes / snapshot_.shared.bytes_per_second * rounding * 2));
    }
    return late;
  }

  const Snapshot& snapshot_;
  const std::vector<Request> requests_;
  const Policy& policy_;
  const Time arrival_;
  std::vector<Candidate> candidates_;
  std::unordered_set<NodeId> eligible_;  // nodes
};

}  // namespace

Plan MakePlan(const Snapshot& snapshot, const Request& request, const Policy& policy) {
  if (policy.strategy != Strategy::kLeastLoss) return MakeBaselinePlan(snapshot, request, policy);
  return std::move(Planner(snapshot, {request}, policy).Make().front());
}

bool CanPlanTogether(const Snapshot& snapshot, const std::vector<Request>& requests) {
  return !requests.empty() && requests.size() <= kMostTogether &&
         std::all_of(requests.begin(), requests.end(), [&](const Request& request) {
           return request.per_node == requests.front().per_node && request.not_before <= snapshot.now;
         });
}

std::vector<Plan> MakePlans(const Snapshot& snapshot, const std::vector<Request>& requests,
                            const Policy& policy) {
  if (!CanPlanTogether(snapshot, requests)) {
    std::vector<Plan> none(requests.size());
    for (size_t i = 0; i < none.size(); ++i) none[i].request = requests[i].id;
    return none;
  }
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(requests[a].start_by, requests[a].id) < std::tie(requests[b].start_by, requests[b].id);
  });
  std::vector<Request> by_deadline;
  by_deadline.reserve(order.size());
  for (size_t i : order) by_deadline.push_back(requests[i]);
  std::vector<Plan> made = Planner(snapshot, by_deadline, policy).Make();
  std::vector<Plan> plans(requests.size());
  for (size_t i = 0; i < order.size(); ++i) plans[order[i]] = std::move(made[i]);
  return plans;
}

}  // namespace siding
