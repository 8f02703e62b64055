#include "controller/engine/decide/admission.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/decide/tentative_plan.h"
#include "controller/engine/state/predicates.h"
#include "controller/wire/spec_limits.h"

namespace siding {
namespace {

// A job is in the cluster manager's queue a moment after it was promised, or was never submitted.
constexpr Duration kPromised = std::chrono::minutes(5);
constexpr size_t kMostPromises = 10'000;
constexpr int kMostPromisesOfUser = 100;  // beyond them the user's own oldest is forgotten, no other user's
// A client that got no answer asks again within seconds.
constexpr Duration kKeyKept = std::chrono::hours(1);

absl::Status CheckDeadline(const JobSpec& spec, Time now) {
  if (spec.start_by > now) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("start_by ", FormatTime(spec.start_by),
                                                 " has passed; it is ", FormatTime(now),
                                                 " on the controller's clock"));
}

std::string RefusalText(const Plan& plan) {
  if (!plan.earliest) return plan.refusal;
  return absl::StrCat(plan.refusal, "; the earliest start would be ", FormatTime(*plan.earliest));
}

absl::Status Refused(JobId id, const Plan& plan) {
  return absl::FailedPreconditionError(
      absl::StrCat("request ", id.value(), " is refused: ", RefusalText(plan)));
}

double Hours(Duration d) { return ToSeconds(d) / 3600; }

// "2.0", and "0.0028".
std::string HoursText(double hours) {
  return hours == 0 || hours >= 1 ? absl::StrFormat("%.1f", hours) : absl::StrFormat("%.2g", hours);
}

}  // namespace

absl::StatusOr<std::optional<Engine::Submitted>> Admission::AnswerAtOnce(
    const Caller& caller, const JobSpec& spec, const std::string& request_key) const {
  if (const std::string manager = platform_.manager(); !manager.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("on this site jobs are submitted to ", manager, ", which has the queue"));
  }
  if (const JobRecord* before = AnsweredBefore(spec.uid, request_key)) {
    if (before->plans.empty()) return Engine::Submitted{before->id, std::nullopt};
    const Plan& plan = before->plans.front();
    if (!plan.feasible && !plan.queued) return Refused(before->id, plan);
    return Engine::Submitted{before->id, plan};
  }
  SIDING_RETURN_IF_ERROR(CheckMethods(spec));
  SIDING_RETURN_IF_ERROR(CheckGraces(spec));
  SIDING_RETURN_IF_ERROR(CheckEverFits(spec));
  SIDING_RETURN_IF_ERROR(CheckConnections(spec));
  SIDING_RETURN_IF_ERROR(CheckCount(caller));
  const bool is_protected = spec.methods.Has(Method::kCheckpoint) && policy_.MostLostWork(spec) > Duration(0);
  if (spec.auto_checkpoint_interval && policy_.node_failures_per_year <= 0 && !is_protected) {
    return absl::InvalidArgumentError(
        "checkpoint_interval: expected a duration, as the site's policy says neither how often nodes fail "
        "(node_failures_per_year) nor how much work may be lost (most_lost_work)");
  }
  return std::nullopt;
}

JobId Admission::NextNumber() const {
  std::set<JobId> taken;
  for (const auto& [node, observed] : state_.observed_nodes) {
    for (const auto& [id, cluster] : observed.foreign) taken.insert(id.job);
  }
  for (const auto& [node, tasks] : state_.observed_tasks) {
    for (const auto& [id, task] : tasks)
      if (id.job > state_.last_job) taken.insert(id.job);
  }
  JobId next(state_.last_job.value() + 1);
  while (taken.contains(next)) next = JobId(next.value() + 1);
  return next;
}

absl::StatusOr<Engine::Submitted> Admission::Submit(const Caller& caller, JobSpec spec,
                                                    const std::string& request_key,
                                                    std::optional<TentativePlan> tentative, bool earliest) {
  SIDING_ASSIGN_OR_RETURN(auto answer, AnswerAtOnce(caller, spec, request_key));
  if (answer) return *std::move(answer);
  if (spec.gpu_collectives == GpuCollectives::kUnsaid && spec.per_node.gpus > 0)
    spec.gpu_collectives = policy_.gpu_collectives;
  spec.allow_io_uring |= policy_.allow_io_uring;
  const JobId id = NextNumber();
  if (spec.kind == JobKind::kBatch) {
    recorder_.Record(id, JobSubmitted{std::move(spec), request_key});
    return Engine::Submitted{id, std::nullopt};
  }
  SIDING_RETURN_IF_ERROR(CheckDeadline(spec, clock_.Now()));
  SIDING_RETURN_IF_ERROR(CheckRule(spec));
  // A refusal is still right a moment later, and takes by far the longest, because it searches for the
  // earliest start. A promise must hold for the present state.
  std::vector<Plan> plans;
  SharedTask task;
  if (tentative && (!tentative->plans.front().feasible || planning_.StillGood(*tentative, spec))) {
    plans = std::move(tentative->plans);
    plans.front().request = id;
    task = std::move(tentative->task);
  } else {
    task = planning_.TaskFor(id, spec);
    plans = MakeFirstPlans(*task);
  }
  Plan& plan = plans.front();
  if (!plan.feasible) SIDING_RETURN_IF_ERROR(AgentsAreBack(plan));
  if (!plan.feasible && !Postpone(spec, plan)) {
    if (plan.earliest) plan.earliest = WithSlack(*plan.earliest, clock_.Now());
    if (earliest) return absl::FailedPreconditionError(absl::StrCat("refused: ", RefusalText(plan)));
    const absl::Status refused = Refused(id, plan);
    DropAllButCommand(spec);
    recorder_.Record(id, RequestRefused{std::move(spec), ForTheRecord(std::move(plan)), request_key});
    return refused;
  }
  Engine::Submitted submitted{id, ForTheRecord(plan)};
  recorder_.Record(id, JobSubmitted{std::move(spec), request_key});
  requests_.Adopt(std::move(plans), std::move(task));
  return submitted;
}

absl::StatusOr<SharedTask> Admission::DryRun(const JobSpec& spec) const {
  if (spec.kind != JobKind::kOnDemand) return absl::InvalidArgumentError("start_by: a plan needs a deadline");
  SIDING_RETURN_IF_ERROR(CheckMethods(spec));
  SIDING_RETURN_IF_ERROR(CheckGraces(spec));
  SIDING_RETURN_IF_ERROR(CheckDeadline(spec, clock_.Now()));
  SIDING_RETURN_IF_ERROR(CheckRule(spec));
  return planning_.TaskFor(JobId(0), spec);
}

absl::StatusOr<Time> Admission::EarliestFor(const JobSpec& probe, const Plan& plan) const {
  const Time now = clock_.Now();
  if (plan.feasible) return WithSlack(std::max(plan.predicted_start, probe.not_before) + policy_.margin, now);
  SIDING_RETURN_IF_ERROR(AgentsAreBack(plan));
  if (plan.earliest) return WithSlack(*plan.earliest, now);
  if (policy_.when_late != WhenLate::kRefuse && planning_.CouldEverFit(probe)) return probe.start_by;
  return absl::FailedPreconditionError(absl::StrCat("refused: ", plan.refusal));
}

absl::Status Admission::TakesDeadlines() const {
  if (platform_.steers()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this site takes no deadlines: ", platform_.manager(), " itself decides who makes way"));
}

absl::Status Admission::KnowsTheQueue() const {
  if (manager_.IsHeard()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(platform_.manager(), " does not answer siding's controller",
                                             state_.queue.seen ? "" : " yet"));
}

absl::StatusOr<Time> Admission::Promise(const JobSpec& spec, Plan plan) {
  const Time now = clock_.Now();
  if (!plan.feasible && !Postpone(spec, plan)) {
    if (plan.earliest) plan.earliest = WithSlack(*plan.earliest, now);
    return absl::FailedPreconditionError(RefusalText(plan));
  }
  // What waits its turn was promised nothing.
  if (!plan.feasible) return plan.predicted_start;
  while (!promises_.empty() &&
         (promises_.size() >= kMostPromises || promises_.front().made < now - kPromised))
    promises_.pop_front();
  const auto is_users = [&](const Promised& promise) { return promise.uid == spec.uid; };
  if (std::count_if(promises_.begin(), promises_.end(), is_users) >= kMostPromisesOfUser)
    promises_.erase(std::find_if(promises_.begin(), promises_.end(), is_users));
  promises_.push_back({spec.uid, spec.start_by, now});
  return plan.predicted_start;
}

bool Admission::TakePromise(const JobSpec& spec) {
  const auto promise = std::find_if(promises_.begin(), promises_.end(), [&](const Promised& p) {
    return p.uid == spec.uid && p.start_by == spec.start_by;
  });
  if (promise == promises_.end()) return false;
  promises_.erase(promise);
  return true;
}

absl::Status Admission::CheckRule(const JobSpec& spec) const {
  if (policy_.on_demand.empty()) return absl::OkStatus();
  const OnDemandRule* rule = policy_.RuleFor(spec);
  if (rule == nullptr || !rule->allowed) {
    return absl::PermissionDeniedError(
        absl::StrCat("the site's policy does not let ", spec.user, " ask for on-demand jobs"));
  }
  if (rule->max_nodes && spec.nodes > *rule->max_nodes) {
    return absl::ResourceExhaustedError(absl::StrCat("nodes: the site's policy lets ", spec.user, " ask for ",
                                                     *rule->max_nodes, " at most, got ", spec.nodes));
  }
  if (!rule->node_hours_per_day) return absl::OkStatus();
  const double used = NodeHoursOf(spec.uid), wants = spec.nodes * Hours(HoldOf(spec));
  if (used + wants <= *rule->node_hours_per_day) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this would take ", HoursText(wants), " node-hours; of the ",
                   HoursText(*rule->node_hours_per_day), " a day that the site's policy allows ", spec.user,
                   ", ", HoursText(std::max(0.0, *rule->node_hours_per_day - used)), " are left"));
}

bool Admission::Postpone(const JobSpec& spec, Plan& plan) const {
  if (policy_.when_late == WhenLate::kBestEffort && plan.earliest) {
    Plan late = MakeLatePlan(*planning_.TaskFor(plan.request, spec), plan);
    if (late.feasible) {
      plan = std::move(late);
      return true;
    }
  }
  return policy_.when_late != WhenLate::kRefuse && planning_.Queue(spec, plan);
}

double Admission::NodeHoursOf(uint32_t uid) const {
  const Time now = clock_.Now();
  double hours = 0;
  const auto add = [&](const JobRecord& job) {
    if (job.spec.uid != uid || job.spec.kind != JobKind::kOnDemand) return;
    if (job.ended && !job.first_started) return;
    const Time from = std::max(job.first_started.value_or(now), now - kQuotaWindow);
    // It does not count from the time when it makes way for others.
    std::optional<Time> until = job.preemptible_since ? job.preemptible_since : job.ended;
    // Nor while it has no nodes, after it had some.
    if (!until && job.first_started && !HoldsNodes(job.state))
      until = job.stopped_at.value_or(job.state_since);
    const Duration wants = until ? Duration(0) : HoldOf(job.spec);
    hours += job.spec.nodes * Hours(std::max(until.value_or(now) - from, wants));
  };
  for (const auto& [id, job] : state_.unfinished) add(*job);
  for (auto it = state_.ended.lower_bound({now - kQuotaWindow, JobId()}); it != state_.ended.end(); ++it)
    add(state_.jobs.at(it->second));
  return hours;
}

Duration Admission::HoldOf(const JobSpec& spec) const {
  return spec.hold > Duration(0) ? spec.hold : policy_.expected_hold;
}

// A job that is never preempted cannot choose how. By some policies it can be after its walltime.
absl::Status Admission::CheckMethods(const JobSpec& spec) const {
  if (spec.kind == JobKind::kBatch || spec.methods.empty() ||
      policy_.after_walltime == AfterWalltime::kPreemptible)
    return absl::OkStatus();
  return BadField(
      "preemptible",
      "nothing: an on-demand job makes way for nobody, and by the site's policy is ended when its "
      "walltime is over (after_walltime: end)");
}

// However cheap a victim is, its nodes are granted only after it has left them.
absl::Status Admission::CheckGraces(const JobSpec& spec) const {
  const auto check = [](const char* field, Duration value, const char* limit, Duration most) {
    if (value <= most) return absl::OkStatus();
    return BadField(field, absl::StrCat("at most ", FormatDuration(most), ", got ", FormatDuration(value),
                                        " (the site's policy: ", limit, ")"));
  };
  SIDING_RETURN_IF_ERROR(check("kill_grace", spec.kill_grace, "max_kill_grace", policy_.max_kill_grace));
  SIDING_RETURN_IF_ERROR(check("notice", spec.notice, "max_notice", policy_.max_notice));
  return spec.app ? check("app.grace", spec.app->grace, "max_notice", policy_.max_notice) : absl::OkStatus();
}

// Any node may become one of its.
absl::Status Admission::CheckConnections(const JobSpec& spec) const {
  if (!spec.keep_connections) return absl::OkStatus();
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (observed.hello.keeps_connections() || !cluster_.InUse(node)) continue;
    const std::string& why = observed.hello.no_network();
    return absl::FailedPreconditionError(
        absl::StrCat("connections: they cannot be kept on node ", node.value(), ": ",
                     why.empty() ? "its agent is of an earlier version" : why));
  }
  return absl::OkStatus();
}

// On all known nodes, as if they were empty and up. Requests are refused by their plans.
absl::Status Admission::CheckEverFits(const JobSpec& spec) const {
  if (spec.kind == JobKind::kOnDemand) return absl::OkStatus();
  const Resources& need = spec.per_node;
  Resources most{0, Bytes{0}, 0};
  int fitting = 0;
  for (const auto& [node, observed] : state_.observed_nodes) {
    if (state_.IsLost(node)) continue;
    const Resources has = cluster_.CapacityOf(node, observed);
    most = {std::max(most.slots, has.slots), std::max(most.memory, has.memory),
            std::max(most.gpus, has.gpus)};
    fitting += has.Covers(need);
  }
  if (fitting >= spec.nodes || MayHaveUnknownNodes()) return absl::OkStatus();
  const auto at_most = [](const char* field, const auto& has, const auto& wants) {
    return BadField(field, absl::StrCat("at most ", has, ", what a node of this cluster has, got ", wants));
  };
  if (need.slots > most.slots) return at_most("slots", most.slots, need.slots);
  if (need.gpus > most.gpus) return at_most("gpus", most.gpus, need.gpus);
  if (need.memory > most.memory) return at_most("memory", FormatBytes(most.memory), FormatBytes(need.memory));
  return BadField("nodes", absl::StrCat("at most ", fitting, ", so many nodes of this cluster have ",
                                        Words(need), ", got ", spec.nodes));
}

absl::Status Admission::CheckCount(const Caller& caller) const {
  if (caller.is_operator) return absl::OkStatus();
  const size_t count = state_.index.CountOf(caller.uid);
  if (count < static_cast<size_t>(policy_.max_jobs_per_user)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(caller.user, " has ", count,
                                                   " jobs that wait or run; the site's policy allows ",
                                                   policy_.max_jobs_per_user, " (max_jobs_per_user)"));
}

const JobRecord* Admission::AnsweredBefore(uint32_t uid, const std::string& request_key) const {
  const auto keyed = state_.keyed.find({uid, request_key});
  if (keyed == state_.keyed.end()) return nullptr;
  const JobRecord& job = state_.jobs.at(keyed->second);
  return job.submitted >= clock_.Now() - kKeyKept ? &job : nullptr;
}

// No request is refused or delayed because agents have not dialled yet.
absl::Status Admission::AgentsAreBack(const Plan& refused) const {
  if (clock_.Now() >= startup_.agents_back_at) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this controller was started ", FormatDuration(clock_.Now() - startup_.started),
                   " ago, and agents still dial it. With those that are there: ", refused.refusal,
                   ". Ask again in a moment"));
}

// The journal names nodes whose agents have not reported yet: what they have is not known.
bool Admission::MayHaveUnknownNodes() const {
  if (state_.observed_nodes.empty() ||
      clock_.Now() < std::max(startup_.agents_back_at, startup_.started + kAgentsDial))
    return true;
  const auto unknown = [&](const NodeId& node) {
    return !state_.observed_nodes.contains(node) && !state_.IsLost(node);
  };
  const auto some_unknown = [&](const std::vector<NodeId>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), unknown);
  };
  return std::any_of(state_.nodes.begin(), state_.nodes.end(),
                     [&](const auto& node) { return unknown(node.first); }) ||
         std::any_of(state_.jobs.begin(), state_.jobs.end(), [&](const auto& job) {
           return some_unknown(job.second.nodes) || some_unknown(job.second.last_nodes);
         });
}

}  // namespace siding
