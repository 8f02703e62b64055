#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/job_file.h"
#include "cli/moment.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding::cli {
namespace {

constexpr int64_t kDefaultKillGraceUs = 10'000'000;

// The flags of submit and plan. Empty or zero: not given.
struct SubmitFlags {
  std::string file, name, memory, start_by, preemptible, interval, app_signal, app_marker, restart_command,
      kill_grace, notice;
  std::string workdir, output;
  int nodes = 0, slots = 0, gpus = -1, priority = 0;
  std::optional<int> max_preemptions;
  bool not_preemptible = false, wait = false, all_kept = false;
  std::vector<std::string> env, labels, command;
  std::string walltime, hold, not_before, gpu_collectives, files, connections, on_node_failure;
  bool allow_io_uring = false;
};

using SetMicros = void (v1::JobSpec::*)(int64_t);

// Nothing if the flag was not given.
absl::Status SetTime(const std::string& text, const char* flag, Time now, v1::JobSpec& spec, SetMicros set) {
  if (text.empty()) return absl::OkStatus();
  const auto at = ParseComing(text, now);
  if (!at.ok()) return Annotate(at.status(), flag);
  (spec.*set)(ToMicros(*at));
  return absl::OkStatus();
}

absl::Status SetDuration(const std::string& text, const char* flag, v1::JobSpec& spec, SetMicros set) {
  if (text.empty()) return absl::OkStatus();
  const auto duration = ParseDuration(text);
  if (!duration.ok()) return Annotate(duration.status(), flag);
  (spec.*set)(duration->count());
  return absl::OkStatus();
}

absl::Status SetTimes(const SubmitFlags& flags, Time now, v1::JobSpec& spec) {
  using S = v1::JobSpec;
  if (!flags.start_by.empty()) {
    const absl::Status status = ParseStartBy(flags.start_by, now, spec);
    if (!status.ok()) return Annotate(status, "--start-by");
  }
  SIDING_RETURN_IF_ERROR(SetTime(flags.not_before, "--not-before", now, spec, &S::set_not_before_us));
  if (!flags.walltime.empty() && !flags.hold.empty())
    return absl::InvalidArgumentError("--hold: expected --walltime alone, of which it is the old name");
  const std::string& walltime = flags.walltime.empty() ? flags.hold : flags.walltime;
  SIDING_RETURN_IF_ERROR(SetDuration(walltime, "--walltime", spec, &S::set_walltime_us));
  if (!walltime.empty() && spec.walltime_us() == 0)
    return absl::InvalidArgumentError("--walltime: expected 1s or more; leave it out for no limit");
  SIDING_RETURN_IF_ERROR(SetDuration(flags.notice, "--notice", spec, &S::set_notice_us));
  if (!flags.interval.empty()) {
    const absl::Status status = ParseCheckpointInterval(flags.interval, spec);
    if (!status.ok()) return Annotate(status, "--checkpoint-interval");
  }
  return SetDuration(flags.kill_grace, "--kill-grace", spec, &S::set_kill_grace_us);
}

absl::Status SetPreemption(const SubmitFlags& flags, bool from_file, v1::JobSpec& spec) {
  if (!flags.preemptible.empty()) {
    spec.clear_methods();
    for (absl::string_view name : absl::StrSplit(flags.preemptible, ',')) {
      const auto method = ParseMethodName(std::string(name));
      if (!method.ok()) return Annotate(method.status(), "--preemptible");
      spec.add_methods(*method);
    }
  } else if (flags.not_preemptible) {
    spec.clear_methods();
  } else if (!from_file && !spec.on_demand()) {
    for (v1::Method method : {v1::SUSPEND, v1::CHECKPOINT, v1::KILL}) spec.add_methods(method);
  }
  if (!flags.app_signal.empty()) {
    const absl::Status status = ParseAppSignal(flags.app_signal, *spec.mutable_app());
    if (!status.ok()) return Annotate(status, "--app-signal");
  }
  if (!flags.app_marker.empty()) spec.mutable_app()->set_marker(flags.app_marker);
  if (!flags.restart_command.empty()) {
    const auto words = SplitCommand(flags.restart_command);
    if (!words.ok()) return Annotate(words.status(), "--restart-command");
    spec.mutable_app()->mutable_restart_command()->Assign(words->begin(), words->end());
  }
  if (!flags.files.empty()) {
    const absl::Status status = ParseFiles(flags.files, spec);
    if (!status.ok()) return Annotate(status, "--files");
  }
  if (!flags.connections.empty()) {
    const absl::Status status = ParseConnections(flags.connections, spec);
    if (!status.ok()) return Annotate(status, "--connections");
  }
  if (!flags.on_node_failure.empty()) {
    const absl::Status status = ParseOnNodeFailure(flags.on_node_failure, spec);
    if (!status.ok()) return Annotate(status, "--on-node-failure");
  }
  if (flags.max_preemptions) spec.set_max_preemptions(*flags.max_preemptions);
  return absl::OkStatus();
}

// NAME=VALUE, each. `flag` is what it was given with.
template <typename Map>
absl::Status SetPairs(const std::vector<std::string>& entries, const std::string& flag, Map& pairs) {
  for (const std::string& entry : entries) {
    const size_t at = entry.find('=');
    if (at == std::string::npos || at == 0) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " '", entry, "': expected NAME=VALUE"));
    }
    pairs[entry.substr(0, at)] = entry.substr(at + 1);
  }
  return absl::OkStatus();
}

// The job file, then the flags over it, then what is left to defaults.
// `now`: from which relative times count. `notes`: what the user should know; null: said already.
absl::StatusOr<v1::SubmitRequest> Build(const SubmitFlags& flags, Time now, std::ostream* notes = nullptr) {
  v1::SubmitRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  if (!flags.file.empty()) {
    SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(flags.file));
    std::vector<std::string> of_file;
    SIDING_RETURN_IF_ERROR(ParseJobFile(text, flags.file, now, spec, &of_file));
    for (const std::string& note : of_file) {
      if (notes != nullptr) *notes << "sidingctl: " << OneLogLine(note) << "\n";
    }
  }
  if (!flags.hold.empty() && notes != nullptr)
    *notes << "sidingctl: --hold: is now called --walltime; the next version does not know --hold\n";
  if (!flags.name.empty()) spec.set_name(flags.name);
  if (flags.nodes > 0) spec.set_nodes(flags.nodes);
  if (flags.slots > 0) spec.mutable_per_node()->set_slots(flags.slots);
  if (flags.gpus >= 0) spec.mutable_per_node()->set_gpus(flags.gpus);
  if (flags.priority != 0) spec.set_priority(flags.priority);
  if (!flags.memory.empty()) {
    const auto memory = ParseBytes(flags.memory);
    if (!memory.ok()) return Annotate(memory.status(), "--memory");
    spec.mutable_per_node()->set_memory(memory->value);
  }
  if (!flags.gpu_collectives.empty()) {
    const auto collectives = ParseCollectives(flags.gpu_collectives);
    if (!collectives.ok()) return Annotate(collectives.status(), "--gpu-collectives");
    spec.set_gpu_collectives(*collectives);
  }
  if (flags.allow_io_uring) spec.set_allow_io_uring(true);
  if (!flags.command.empty()) spec.mutable_command()->Assign(flags.command.begin(), flags.command.end());
  SIDING_RETURN_IF_ERROR(SetTimes(flags, now, spec));
  SIDING_RETURN_IF_ERROR(SetPreemption(flags, !flags.file.empty(), spec));
  SIDING_RETURN_IF_ERROR(SetPairs(flags.env, "--env", *spec.mutable_env()));
  SIDING_RETURN_IF_ERROR(SetPairs(flags.labels, "--label", *spec.mutable_labels()));
  if (!flags.workdir.empty()) spec.set_workdir(flags.workdir);
  if (!flags.output.empty()) spec.set_output(flags.output);

  if (spec.command().empty())
    return absl::InvalidArgumentError("no command: give one after --, or in a job file");
  if (spec.nodes() == 0) spec.set_nodes(1);
  if (spec.per_node().slots() == 0) spec.mutable_per_node()->set_slots(1);
  if (spec.name().empty()) spec.set_name(std::filesystem::path(spec.command(0)).filename().string());
  if (spec.workdir().empty()) spec.set_workdir(std::filesystem::current_path().string());
  if (spec.output().empty()) spec.set_output("siding-%j-%r.out");
  if (spec.output()[0] != '/') spec.set_output(absl::StrCat(spec.workdir(), "/", spec.output()));
  return request;
}

void AddFlags(CLI::App& verb, SubmitFlags& f) {
  verb.add_option("--file,-f", f.file, "job file; flags override it")->check(CLI::ExistingFile);
  verb.add_option("--name", f.name, "the job's name");
  verb.add_option("--nodes,-N", f.nodes, "nodes; one task runs on each")->check(CLI::Range(1, 1 << 20));
  verb.add_option("--slots", f.slots, "slots on each node")->check(CLI::Range(1, 1 << 20));
  verb.add_option("--memory", f.memory, "memory on each node, such as 2GiB");
  verb.add_option("--gpus", f.gpus, "GPUs on each node")->check(CLI::Range(0, 1024));
  verb.add_option("--priority", f.priority, "higher starts first");
  verb.add_option(
      "--start-by", f.start_by,
      "makes it on-demand: its deadline, +60s or 2026-05-01T12:00:00Z; earliest: as soon as can be "
      "promised");
  verb.add_option("--preemptible", f.preemptible,
                  "methods of preemption that it allows, of suspend,checkpoint,app,kill; default: "
                  "suspend,checkpoint,kill for a batch job without --file");
  verb.add_flag("--not-preemptible", f.not_preemptible, "it may not be preempted");
  verb.add_option("--checkpoint-interval", f.interval,
                  "checkpoint it this often while it runs, such as 30m; auto: by cost and failures");
  verb.add_option("--app-signal", f.app_signal,
                  "method app: the signal to save, and how long it may take: USR1@30s");
  verb.add_option("--app-marker", f.app_marker, "method app: file that the program writes when it has saved");
  verb.add_option("--restart-command", f.restart_command,
                  "method app: the command that continues from what was saved");
  verb.add_option("--kill-grace", f.kill_grace, "between SIGTERM and SIGKILL; default 10s");
  verb.add_option("--notice", f.notice, "it gets SIGURG this long before it is frozen or dumped for others");
  verb.add_option(
      "--files", f.files,
      "at a restore, a file that it was appending to: exact, it must be as it was; append, it may have "
      "been rotated or truncated; default exact");
  verb.add_option("--connections", f.connections,
                  "keep: its nodes get a network of their own, and connections in it survive a checkpoint; "
                  "as-is: it uses "
                  "the nodes' network; default as-is");
  verb.add_option("--max-preemptions", f.max_preemptions, "how often it may be preempted")
      ->check(CLI::Range(0, 1'000'000));
  verb.add_option(
      "--on-node-failure", f.on_node_failure,
      "if all that it had done is lost with its node: requeue, it starts over; park, it waits until somebody "
      "says so; default: requeue if it is on-demand or may be killed");
  verb.add_option("--not-before", f.not_before,
                  "on-demand: announced; it cannot start earlier, +10m or a time");
  verb.add_option("--walltime", f.walltime,
                  "how long it may run, such as 20m; then it is ended, or by the policy is preemptible");
  verb.add_option("--hold", f.hold, "")->group("");  // its older name
  verb.add_option("--gpu-collectives", f.gpu_collectives,
                  "drainable: set NCCL so that a job of several processes can be taken off its GPUs; as-is: "
                  "leave it; default: as the policy says");
  verb.add_flag("--allow-io-uring", f.allow_io_uring,
                "let it use io_uring, although it cannot be checkpointed while it does");
  verb.add_option("--label", f.labels, "NAME=VALUE that policies may match; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--env", f.env, "NAME=VALUE for its environment; may be repeated")->allow_extra_args(false);
  verb.add_option("--workdir", f.workdir, "its working folder; default: the current one");
  verb.add_option("--output", f.output,
                  "where its output goes; %j job id, %r rank; default siding-%j-%r.out");
  verb.add_option("command", f.command, "the program and its arguments, after --");
}

// What siding does unless it is told otherwise; a cluster manager has its own ways.
void SetOwnDefaults(v1::JobSpec& spec) {
  if (!spec.has_kill_grace_us()) spec.set_kill_grace_us(kDefaultKillGraceUs);
}

// The controller's time, which keeps the deadlines: this machine's clock may be another.
Time NowAt(const v1::SiteInfo& site) {
  return site.now_us() == 0 ? SystemClock().Now() : FromMicros(site.now_us());
}

absl::StatusOr<int> Submit(Session& session, const SubmitFlags& flags) {
  SIDING_RETURN_IF_ERROR(
      Build(flags, SystemClock().Now(), &std::cerr).status());  // what is wrong is said first
  SIDING_ASSIGN_OR_RETURN(const v1::SiteInfo site, session.client().Site());
  SIDING_ASSIGN_OR_RETURN(v1::SubmitRequest request, Build(flags, NowAt(site)));
  if (site.cluster_manager() == "slurm") return SubmitToSlurm(session, request.spec(), flags.wait);
  SetOwnDefaults(*request.mutable_spec());
  SIDING_ASSIGN_OR_RETURN(v1::SubmitResponse response, session.client().Submit(request));
  std::string text = absl::StrCat("job ", response.id(), "\n");
  if (response.has_plan()) text += PlanText(response.plan(), session.style());
  session.Print(response, text);
  if (!flags.wait) return 0;
  SIDING_ASSIGN_OR_RETURN(v1::Job job, Follow(session, response.id(), HasEnded));
  if (session.json) session.Print(job, "");
  return ExitCodeOf(job);
}

absl::StatusOr<int> Plan(Session& session, const SubmitFlags& flags) {
  SIDING_RETURN_IF_ERROR(Build(flags, SystemClock().Now(), &std::cerr).status());
  SIDING_ASSIGN_OR_RETURN(const v1::SiteInfo site, session.client().Site());
  SIDING_ASSIGN_OR_RETURN(v1::SubmitRequest request, Build(flags, NowAt(site)));
  SetOwnDefaults(*request.mutable_spec());
  request.set_compare(true);
  request.set_most_kept(flags.all_kept ? -1 : 0);
  SIDING_ASSIGN_OR_RETURN(v1::Plan plan, session.client().Plan(request));
  session.Print(plan, PlanText(plan, session.style(), flags.all_kept));
  return plan.feasible() ? 0 : 1;
}

}  // namespace

void AddSubmit(CLI::App& app, Session& session) {
  auto submit_flags = std::make_shared<SubmitFlags>();
  CLI::App* submit =
      app.add_subcommand("submit", "run a program: a batch job, or with --start-by an on-demand job");
  AddFlags(*submit, *submit_flags);
  submit->add_flag("--wait", submit_flags->wait, "wait until it has ended; exits with its exit code");
  submit->footer("example: sidingctl submit --nodes 2 --start-by +60s -- ./steer --input shot-12");
  submit->callback([&session, submit_flags] {
    session.run = [&session, submit_flags] { return Submit(session, *submit_flags); };
  });

  auto plan_flags = std::make_shared<SubmitFlags>();
  CLI::App* plan = app.add_subcommand("plan", "what would happen if this were submitted; nothing is changed");
  AddFlags(*plan, *plan_flags);
  plan->add_flag("--all,-a", plan_flags->all_kept,
                 "name every job that would be left alone, not only how many for each reason");
  plan->footer("example: sidingctl plan --nodes 2 --start-by +60s -- ./steer");
  plan->callback([&session, plan_flags] {
    session.run = [&session, plan_flags] { return Plan(session, *plan_flags); };
  });
}

}  // namespace siding::cli
