#include "controller/platform/slurm/reconcile/steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/marks.h"
#include "controller/platform/slurm/reconcile/siblings.h"

namespace siding::slurm {
namespace {

bool IsOurs(const std::string& reservation) { return absl::StartsWith(reservation, kReservationPrefix); }
std::string ReservationFor(JobNumber job) { return absl::StrCat(kReservationPrefix, job.value()); }

// Slurm has an order of its own.
std::vector<NodeId> Sorted(std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// The steps for one job.
class JobSteps {
 public:
  JobSteps(const QueueJob& job, const DesiredState::Job* desired, const Siblings& siblings, bool keeps_nodes)
      : job_(job),
        desired_(desired),
        siblings_(siblings),
        waits_(job.phase == JobPhase::kPending),
        mark_(MarkOf(job.admin_comment)) {
    step_.target = absl::StrCat("job ", job.id.value());
    step_.job = job.id;
    reservation_ = keeps_nodes && waits_ ? ReservationFor(job.id) : "";
  }

  // Ends with no calls where all is as it should be.
  Step Make() {
    if (job_.phase == JobPhase::kEnded) return std::move(step_);
    const std::optional<Mark> wanted = DesiredMark();
    // Until it is undone, what is about to be undone stays marked: a mark may say too much, never too little.
    std::optional<Mark> meanwhile = wanted ? wanted : mark_;
    if (meanwhile && mark_) {
      meanwhile->pinned |= mark_->pinned;
      meanwhile->suspended |= mark_->suspended;
      if (!meanwhile->nice) meanwhile->nice = mark_->nice;
    }
    if (meanwhile != mark_) Say(meanwhile, mark_);
    Move();
    Choose(wanted && wanted->pinned);
    Suspend(wanted && wanted->suspended);
    if (wanted != meanwhile) Say(wanted, meanwhile);
    return std::move(step_);
  }

 private:
  // Neither a choice of nodes nor a suspension by somebody else becomes siding's.
  std::optional<Mark> DesiredMark() const {
    const std::optional<Mark::Nice> nice = DesiredNice();
    if (desired_ == nullptr) {
      if (!nice) return {};
      return Mark{.why = mark_->why, .nice = nice};
    }
    if (desired_->why.empty() && !desired_->suspended && desired_->nodes.empty() && !nice) return {};
    Mark mark;
    mark.why = desired_->why;
    mark.suspended =
        desired_->suspended && (job_.phase == JobPhase::kRunning ||
                                (job_.phase == JobPhase::kSuspended && mark_ && mark_->suspended));
    const bool free_to_choose = job_.only_on.empty() || (mark_ && mark_->pinned);
    mark.pinned = waits_ && !desired_->nodes.empty() && free_to_choose && job_.array == JobNumber();
    mark.nice = nice;
    if (mark.why.empty()) mark.why = "continues before others of its array";
    return mark;
  }

  std::optional<Mark::Nice> DesiredNice() const {
    const std::optional<Mark::Nice> now = mark_ ? mark_->nice : std::nullopt;
    // It is held or suspended. With another nice value Slurm would give it a priority again.
    if (job_.priority == 0) return now;
    const bool before = desired_ != nullptr && desired_->before_siblings && waits_ &&
                        job_.array != JobNumber() && job_.array_tasks.empty();
    if (!before) return {};
    // Somebody has given it another one meanwhile, or set its priority, with which Slurm ignores nice values.
    if (now && job_.nice != now->to) return now;
    const int64_t nice = now ? now->from : job_.nice;
    const int64_t lowered = nice - job_.nice;
    const auto to = siblings_.NiceBefore(job_.array, nice, int64_t{job_.priority} - lowered, lowered);
    if (!to || (now && *to >= now->to)) return now;
    return Mark::Nice{nice, *to};
  }

  void Add(Call call, std::string action) {
    step_.calls.push_back(std::move(call));
    step_.actions.push_back(std::move(action));
  }

  // The nice value goes with its mark, in one request: so the mark alone says whether Slurm was asked for it.
  void Say(const std::optional<Mark>& mark, const std::optional<Mark>& before) {
    JobChange change;
    change.admin_comment = WithMark(job_.admin_comment, mark);
    std::string action = mark ? "marked: " + mark->why : "mark removed";
    const std::optional<Mark::Nice> to = mark ? mark->nice : std::nullopt;
    const std::optional<Mark::Nice> from = before ? before->nice : std::nullopt;
    if (to != from) {
      if (to) change.nice = to->to;
      if (!to && job_.nice == from->to) change.nice = from->from;
      if (change.nice) absl::StrAppend(&action, ", nice ", *change.nice);
    }
    Add(change, std::move(action));
  }

  void Move() {
    if (!waits_ || job_.reservation == reservation_) return;
    if (reservation_.empty() && !IsOurs(job_.reservation)) return;
    if (!job_.reservation.empty() && !IsOurs(job_.reservation)) return;  // its user's choice
    JobChange change;
    change.reservation = reservation_;
    Add(change,
        reservation_.empty() ? "out of reservation " + job_.reservation : "into reservation " + reservation_);
  }

  void Choose(bool pin) {
    if (!waits_) return;
    JobChange change;
    if (pin && Sorted(job_.only_on) != Sorted(desired_->nodes)) {
      change.only_on = desired_->nodes;
      Add(change, "to start on " + JoinHostlist(desired_->nodes));
    } else if (!pin && mark_ && mark_->pinned && !job_.only_on.empty()) {
      change.only_on.emplace();
      Add(change, "free to run on any node");
    }
  }

  void Suspend(bool suspend) {
    const bool suspended = job_.phase == JobPhase::kSuspended;
    if (suspend && !suspended) Add(Verb::kSuspend, "suspended");
    if (!suspend && suspended && mark_ && mark_->suspended) Add(Verb::kResume, "resumed");
  }

  const QueueJob& job_;
  const DesiredState::Job* desired_;
  const Siblings& siblings_;
  const bool waits_;
  const std::optional<Mark> mark_;
  std::string reservation_;  // that it is to be in; empty: none of ours
  Step step_;
};

Step Deletion(const std::string& name) { return {"reservation " + name, {"deleted"}, {}, {name}}; }

Step Creation(const std::string& name, const DesiredState::Kept& kept, Time now) {
  return {"reservation " + name,
          {absl::StrCat("keeps ", JoinHostlist(kept.nodes), " for ", kept.user)},
          {},
          {Reservation{name, kept.nodes, {kept.user}, now, kept.until}}};
}

}  // namespace

std::vector<Step> StepsTowards(const DesiredState& desired, const std::vector<QueueJob>& jobs,
                               const std::vector<Reservation>& reservations, Time now, int64_t by_age) {
  std::map<std::string, std::vector<NodeId>> there;
  for (const Reservation& reservation : reservations) there[reservation.name] = Sorted(reservation.nodes);
  std::set<JobNumber> started;
  for (const QueueJob& job : jobs) {
    if (job.phase != JobPhase::kPending) started.insert(job.id);
  }
  std::vector<Step> leave, make, enter;
  for (const auto& [name, nodes] : there) {
    if (IsOurs(name)) leave.push_back(Deletion(name));
  }
  // Those that are as they should be stay; one with other nodes is made again when its job has left it.
  std::map<JobNumber, bool> ready;
  for (const auto& [id, kept] : desired.kept) {
    const JobNumber job(id.value());
    const std::string name = ReservationFor(job);
    const auto found = there.find(name);
    ready[job] = found == there.end() || found->second == Sorted(kept.nodes);
    if (found == there.end() && !started.contains(job)) make.push_back(Creation(name, kept, now));
    if (found != there.end() && ready[job])
      std::erase_if(leave, [&](const Step& step) { return step.target == "reservation " + name; });
  }
  const Siblings siblings(desired, jobs, by_age);
  for (const QueueJob& job : jobs) {
    const auto wanted = desired.jobs.find(JobId(job.id.value()));
    const auto kept = ready.find(job.id);
    Step step = JobSteps(job, wanted == desired.jobs.end() ? nullptr : &wanted->second, siblings,
                         kept != ready.end() && kept->second)
                    .Make();
    if (!step.calls.empty()) enter.push_back(std::move(step));
  }
  // Made before jobs enter them, deleted after jobs have left them.
  std::vector<Step> steps = std::move(make);
  steps.insert(steps.end(), enter.begin(), enter.end());
  steps.insert(steps.end(), leave.begin(), leave.end());
  return steps;
}

absl::Status Apply(Client& client, const Step& step) {
  struct Caller {
    Client& client;
    JobNumber job;
    absl::Status operator()(const JobChange& change) { return client.Update(job, change); }
    absl::Status operator()(Verb verb) { return client.Do(job, verb); }
    absl::Status operator()(const Reservation& reservation) { return client.CreateReservation(reservation); }
    absl::Status operator()(const std::string& name) { return client.DeleteReservation(name); }
  };
  for (const Call& call : step.calls) SIDING_RETURN_IF_ERROR(std::visit(Caller{client, step.job}, call));
  return absl::OkStatus();
}

}  // namespace siding::slurm
