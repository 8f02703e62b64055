#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/action_text.h"
#include "cli/job_file.h"
#include "cli/verbs/verbs.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding::cli {
namespace {

struct AdminFlags {
  int64_t job = 0;
  std::vector<int64_t> jobs;
  std::string node, tier = "shared", to;
  bool no_wait = false, running = false, dry_run = false;
  int64_t if_unchanged = 0;
};

using Verb = std::function<absl::StatusOr<int>()>;

// Nothing is under way with it. An order is recorded before the controller answers, so a job that is seen
// resting after that has come to rest because of it.
bool IsResting(const v1::Job& job) {
  return job.state() == "running" || job.state() == "suspended" || job.state() == "parked" ||
         job.state() == "pending" || HasEnded(job);
}

// Follows the job until it rests. Any state but `good` is a failure.
absl::StatusOr<int> Await(Session& session, int64_t id, const std::vector<std::string>& good,
                          const std::string& done) {
  SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, id, IsResting));
  if (std::find(good.begin(), good.end(), job.state()) != good.end()) {
    session.Done(done);
    return 0;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id, " is ", job.state(), job.reason().empty() ? "" : ": ", job.reason(),
                   job.methods_note().empty() ? "" : "; ", job.methods_note()));
}

CLI::App* AddVerb(CLI::App& app, Session& session, const std::string& name, const std::string& help,
                  const Verb& run) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->callback([&session, run] { session.run = run; });
  return verb;
}

void AddJob(CLI::App& verb, AdminFlags& flags) {
  verb.add_option("job", flags.job, "the job's id")->required();
}
void AddNoWait(CLI::App& verb, AdminFlags& flags) {
  verb.add_flag("--no-wait", flags.no_wait, "return when it is ordered, not when it is done");
}

std::vector<std::string> NodesTo(const AdminFlags& flags) {
  if (flags.to.empty()) return {};
  return absl::StrSplit(flags.to, ',');
}

// What the verb would do, which is not done.
absl::StatusOr<int> PlanVerb(Session& session, const std::string& verb, const AdminFlags& flags,
                             int64_t job) {
  v1::ActionRequest request;
  request.set_verb(verb);
  if (verb == "cordon") {
    request.set_node(flags.node);
  } else {
    request.set_job(job);
  }
  if (verb == "checkpoint" || verb == "vacate") {
    SIDING_ASSIGN_OR_RETURN(const v1::Tier tier, ParseTierName(flags.tier));
    request.set_tier(tier);
  }
  for (std::string& node : NodesTo(flags)) request.add_nodes(std::move(node));
  SIDING_ASSIGN_OR_RETURN(const v1::ActionPlan plan, session.client().PlanAction(request));
  session.Print(plan, ActionText(plan));
  return 0;
}

// The verb, or with --dry-run its plan.
Verb OrPlan(Session& session, const std::string& verb, const std::shared_ptr<AdminFlags>& flags, Verb run) {
  return [&session, verb, flags, run = std::move(run)]() -> absl::StatusOr<int> {
    if (flags->if_unchanged != 0 && flags->jobs.size() > 1)
      return absl::InvalidArgumentError("--if-unchanged: expected one job, as a plan is of one");
    if (!flags->dry_run) return run();
    if (verb != "kill") return PlanVerb(session, verb, *flags, flags->job);
    SIDING_RETURN_IF_ERROR(
        ForEachJob(flags->jobs, [&](int64_t id) { return PlanVerb(session, verb, *flags, id).status(); }));
    return 0;
  };
}

void AddPlanning(CLI::App& verb, AdminFlags& flags) {
  CLI::Option* dry_run = verb.add_flag(
      "--dry-run", flags.dry_run, "say what it would do, what that costs, and what becomes of deadlines");
  CLI::Option* unchanged =
      verb.add_option("--if-unchanged", flags.if_unchanged,
                      "the number that --dry-run printed: refused if that no longer holds");
  unchanged->check(CLI::PositiveNumber)->excludes(dry_run);
  if (CLI::Option* no_wait = verb.get_option_no_throw("--no-wait"); no_wait != nullptr)
    dry_run->excludes(no_wait);
}

// Why what was ordered after that event has not been done: as it waited, and was taken back or could not be
// begun; what the job says itself; or, where nothing is held against it, why its dump failed.
std::string WhyNot(Session& session, const v1::Job& job, int64_t since) {
  if (HasEnded(job)) return WhyNotText(job);
  v1::EventsRequest request;
  request.set_job(job.id());
  request.set_after_seq(since);
  std::string withdrawn, failed;
  // The failure of one that was under way before is not this one's.
  bool is_dumped = false;
  const absl::Status read = session.client().Events(request, [&](const v1::Event& event) {
    if (event.kind() == "order-withdrawn") withdrawn = event.text();
    is_dumped |= event.kind() == "order-dump";
    if (event.kind() == "dump-failed" && is_dumped) {
      failed = event.text();
      withdrawn.clear();
    }
    return true;
  });
  if (read.ok() && !withdrawn.empty()) return withdrawn;
  const size_t why = failed.find(": ");
  const bool says_itself = !job.methods_note().empty() || !job.reason().empty();
  return !read.ok() || says_itself || why == std::string::npos ? WhyNotText(job) : failed.substr(why + 2);
}

absl::StatusOr<int> Checkpoint(Session& session, const AdminFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::Tier tier, ParseTierName(flags.tier));
  SIDING_ASSIGN_OR_RETURN(const v1::SiteInfo site, session.client().Site());
  SIDING_ASSIGN_OR_RETURN(std::string id, session.client().Checkpoint(flags.job, tier, flags.if_unchanged));
  const std::string done = absl::StrCat("checkpoint ", id);
  if (flags.no_wait) {
    session.Done(done + " ordered");
    return 0;
  }
  // Running again: it is durable then, or it failed.
  SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, flags.job, IsResting));
  if (job.checkpoint() == id) {
    session.Done(done);
    return 0;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job ", flags.job, " was not checkpointed: ", WhyNot(session, job, site.newest_event())));
}

// Nothing is under way with it where it is. One that was frozen when it was told to leave has begun to before
// the controller answers, so this one was frozen by an order in that one's place.
bool StaysThere(const v1::Job& job) { return job.state() == "running" || job.state() == "suspended"; }

// Of a job that was told to leave its nodes: it did with a new checkpoint, and not because a node died.
absl::Status LeftWithItsWork(const v1::Job& before, const v1::Job& job) {
  if (HasEnded(job) && job.incarnation() == before.incarnation())
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id(), " has not moved: ", WhyNotText(job)));
  // The checkpoints of one that has ended are gone.
  if (HasEnded(job) || job.checkpoint() != before.checkpoint()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id(), " has left its nodes without a new checkpoint: ", WhyNotText(job)));
}

absl::StatusOr<int> Vacate(Session& session, const AdminFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::Tier tier, ParseTierName(flags.tier));
  SIDING_ASSIGN_OR_RETURN(v1::Job before, session.client().Job(flags.job));
  SIDING_ASSIGN_OR_RETURN(const v1::SiteInfo site, session.client().Site());
  SIDING_RETURN_IF_ERROR(session.client().Vacate(flags.job, tier, flags.if_unchanged));
  if (flags.no_wait) {
    session.Done("ordered");
    return 0;
  }
  // It may be placed again so soon that "parked" is never seen.
  const auto over = [&](const v1::Job& job) {
    return job.state() == "parked" || job.state() == "restoring" || HasEnded(job) || StaysThere(job);
  };
  SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, flags.job, over));
  if (StaysThere(job) && job.incarnation() == before.incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", flags.job, job.state() == "running" ? " continues: " : " is suspended: ",
                     WhyNot(session, job, site.newest_event())));
  }
  if (job.state() == "done") {
    session.Done(absl::StrCat("job ", flags.job, " has ended"));
    return 0;
  }
  SIDING_RETURN_IF_ERROR(LeftWithItsWork(before, job));
  session.Done(absl::StrCat("job ", flags.job, " has left its nodes"));
  return 0;
}

absl::StatusOr<int> Migrate(Session& session, const AdminFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::Job before, session.client().Job(flags.job));
  SIDING_ASSIGN_OR_RETURN(const v1::SiteInfo site, session.client().Site());
  v1::MigrateRequest request;
  request.set_id(flags.job);
  request.set_if_unchanged(flags.if_unchanged);
  for (std::string& node : NodesTo(flags)) request.add_nodes(std::move(node));
  SIDING_RETURN_IF_ERROR(session.client().Migrate(request));
  if (flags.no_wait) {
    session.Done("ordered");
    return 0;
  }
  const auto over = [](const v1::Job& job) { return HasEnded(job) || StaysThere(job); };
  SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, flags.job, over));
  if (job.incarnation() == before.incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", flags.job, " stays where it is: ", WhyNot(session, job, site.newest_event())));
  }
  SIDING_RETURN_IF_ERROR(LeftWithItsWork(before, job));
  const std::set<std::string> wanted(request.nodes().begin(), request.nodes().end());
  if (!wanted.empty() && !HasEnded(job) &&
      wanted != std::set<std::string>(job.nodes().begin(), job.nodes().end())) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", flags.job, " runs on ", absl::StrJoin(job.nodes(), ","), ", and not on ",
                     flags.to, job.reason().empty() ? "" : ": ", job.reason()));
  }
  session.Done(HasEnded(job) ? absl::StrCat("job ", flags.job, " has moved, and is ", job.state())
                             : absl::StrCat("job ", flags.job, " runs on ", absl::StrJoin(job.nodes(), ",")));
  return 0;
}

// All are ordered before one is waited for.
absl::StatusOr<int> OrderEach(Session& session, const AdminFlags& flags, const JobOrder& order,
                              const std::vector<std::string>& good, const std::string& done) {
  std::vector<int64_t> ordered;
  const absl::Status refused = ForEachJob(flags.jobs, [&](int64_t id) {
    SIDING_RETURN_IF_ERROR(order(id));
    ordered.push_back(id);
    if (flags.no_wait) session.Done(absl::StrCat("job ", id, ": ordered"));
    return absl::OkStatus();
  });
  if (flags.no_wait) ordered.clear();
  const absl::Status failed = ForEachJob(ordered, [&](int64_t id) {
    return Await(session, id, good, absl::StrCat("job ", id, " ", done)).status();
  });
  if (!refused.ok() && !failed.ok()) std::cerr << failed.message() << "\n";
  if (!refused.ok()) return refused;
  if (!failed.ok()) return failed;
  return 0;
}

absl::StatusOr<int> Restart(Session& session, const AdminFlags& flags) {
  const auto order = [&](int64_t id) {
    v1::RestartRequest request;
    request.set_id(id);
    request.set_running(flags.running);
    return session.client().Restart(request);
  };
  return OrderEach(session, flags, order, {"pending", "running", "done"}, "starts from the beginning");
}

// For whoever suspends it: what the planner would have looked at.
void NoteTimer(Session& session, int64_t id) {
  const absl::StatusOr<v1::Job> job = session.client().Job(id);
  const std::string text = job.ok() ? TimerText(*job) : "";
  if (!text.empty()) std::cerr << "note: job " << id << ": " << OneLogLine(text) << "\n";
}

}  // namespace

void AddAdmin(CLI::App& app, Session& session) {
  auto flags = std::make_shared<AdminFlags>();
  const auto finish = [&session, flags](const absl::Status& status, const std::vector<std::string>& states,
                                        const std::string& done) -> absl::StatusOr<int> {
    if (!status.ok()) return status;
    if (!flags->no_wait) return Await(session, flags->job, states, done);
    session.Done("ordered");
    return 0;
  };

  CLI::App* suspend = AddVerb(
      app, session, "suspend", "freeze a job in place; its memory stays in RAM",
      OrPlan(session, "suspend", flags, [=, &session]() -> absl::StatusOr<int> {
        SIDING_RETURN_IF_ERROR(session.client().Suspend(flags->job, flags->if_unchanged));
        NoteTimer(session, flags->job);
        return finish(absl::OkStatus(), {"suspended"}, absl::StrCat("job ", flags->job, " is frozen"));
      }));
  CLI::App* resume = AddVerb(app, session, "resume",
                             "let a frozen job continue; try again to restore a parked one", [=, &session] {
                               return finish(session.client().Resume(flags->job), {"running"},
                                             absl::StrCat("job ", flags->job, " runs"));
                             });
  CLI::App* restart =
      AddVerb(app, session, "restart", "start parked jobs from their beginning, without their checkpoints",
              [=, &session] { return Restart(session, *flags); });
  restart->add_flag("--running", flags->running,
                    "also jobs that run or are suspended, if they allow that: they are ended first");
  restart->footer(
      "For a job that cannot be restored, and does not start over by itself (submit --on-node-failure). Its "
      "earlier checkpoints are not used any more. With --running for one that is to be run again: it keeps "
      "its number, and has to allow it, by kill in --preemptible or by --on-node-failure=requeue.");
  const auto end = [=, &session] {
    return OrderEach(
        session, *flags, [&](int64_t id) { return session.client().Kill(id, flags->if_unchanged); },
        {"cancelled", "done", "failed"}, "has ended");
  };
  CLI::App* kill = AddVerb(app, session, "kill", "end jobs for good", OrPlan(session, "kill", flags, end));
  CLI::App* checkpoint =
      AddVerb(app, session, "checkpoint", "make a durable checkpoint; the job continues to run",
              OrPlan(session, "checkpoint", flags, [=, &session] { return Checkpoint(session, *flags); }));
  CLI::App* vacate =
      AddVerb(app, session, "vacate", "checkpoint a job and take it off its nodes; it queues for others",
              OrPlan(session, "vacate", flags, [=, &session] { return Vacate(session, *flags); }));
  CLI::App* migrate =
      AddVerb(app, session, "migrate", "checkpoint a job and restore it on other nodes",
              OrPlan(session, "migrate", flags, [=, &session] { return Migrate(session, *flags); }));
  for (CLI::App* verb : {suspend, resume, checkpoint, vacate, migrate}) AddJob(*verb, *flags);
  for (CLI::App* verb : {suspend, resume, restart, kill, checkpoint, vacate, migrate})
    AddNoWait(*verb, *flags);
  for (CLI::App* verb : {suspend, kill, checkpoint, vacate, migrate}) AddPlanning(*verb, *flags);
  for (CLI::App* verb : {restart, kill}) verb->add_option("job", flags->jobs, "the jobs' ids")->required();
  for (CLI::App* verb : {checkpoint, vacate}) {
    verb->add_option("--tier", flags->tier,
                     "local (only this node can restore it, until it has been copied) or shared")
        ->capture_default_str();
  }
  migrate->add_option("--to", flags->to,
                      "node names by rank, separated by commas; default: any others with room");
  vacate->footer(
      "The job is restored as soon as there is room for it: on other nodes, or, if no others are free, on "
      "the "
      "same ones at once. To empty a node, cordon it first.");
  migrate->footer("example: sidingctl migrate 7 --to n3,n4");

  for (const bool cordon : {true, false}) {
    CLI::App* verb = AddVerb(
        app, session, cordon ? "cordon" : "uncordon",
        cordon ? "place nothing new on a node" : "place jobs on a node again",
        OrPlan(session, "cordon", flags, [=, &session]() -> absl::StatusOr<int> {
          SIDING_RETURN_IF_ERROR(session.client().Cordon(flags->node, cordon, flags->if_unchanged));
          session.Done(absl::StrCat("node ", flags->node, cordon ? " takes nothing new" : " takes jobs"));
          return 0;
        }));
    if (cordon) AddPlanning(*verb, *flags);
    verb->add_option("node", flags->node, "the node's name")->required();
  }

  CLI::App* lost =
      AddVerb(app, session, "lost", "say that a node is gone for good: its jobs continue elsewhere",
              [=, &session]() -> absl::StatusOr<int> {
                SIDING_RETURN_IF_ERROR(session.client().Lose(flags->node));
                session.Done(absl::StrCat("node ", flags->node, " is lost"));
                return 0;
              });
  lost->add_option("node", flags->node, "the node's name")->required();
  lost->footer(
      "Only if nothing runs there any more: jobs that still do would run twice. Taken back when its agent "
      "dials.");

  CLI::App* wait = AddVerb(app, session, "wait",
                           "wait until jobs have ended; exits with the first exit code that is not 0",
                           [=, &session]() -> absl::StatusOr<int> {
                             int code = 0;
                             v1::ListJobsResponse ended;
                             for (int64_t id : flags->jobs) {
                               SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, id, HasEnded));
                               if (code == 0) code = ExitCodeOf(job);
                               *ended.add_jobs() = std::move(job);
                             }
                             if (session.json) session.Print(ended, "");
                             return code;
                           });
  wait->add_option("job", flags->jobs, "the jobs' ids")->required();
}

}  // namespace siding::cli
