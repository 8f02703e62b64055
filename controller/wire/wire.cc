#include "controller/wire/wire.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/wire/check.h"
#include "controller/wire/spec_limits.h"

namespace siding {
namespace {

// Of a walltime, and between two checkpoints on schedule: jobs are looked at once a second.
constexpr Duration kLeastTime = std::chrono::seconds(1);

int64_t WalltimeOf(const v1::JobSpec& spec) {
  return spec.walltime_us() != 0 ? spec.walltime_us() : spec.hold_us();
}

absl::Status CheckWalltime(Duration walltime) {
  if (walltime == Duration(0) || walltime >= kLeastTime) return absl::OkStatus();
  return BadField("walltime", "1s or more, got " + FormatDuration(walltime));
}

absl::Status CheckShape(const v1::JobSpec& spec) {
  if (spec.command_size() == 0 || spec.command(0).empty()) return BadField("command", "a program to run");
  if (spec.nodes() < 1) return BadField("nodes", absl::StrCat("1 or more, got ", spec.nodes()));
  if (spec.per_node().slots() < 1)
    return BadField("slots", absl::StrCat("1 or more, got ", spec.per_node().slots()));
  if (spec.per_node().memory() < 0) return BadField("memory", "no negative size");
  if (spec.per_node().gpus() < 0) return BadField("gpus", "0 or more");
  if (spec.workdir().empty() || spec.workdir()[0] != '/') return BadField("workdir", "an absolute path");
  if (spec.output().empty() || spec.output()[0] != '/') return BadField("output", "an absolute path");
  if (spec.kill_grace_us() < 0) return BadField("kill_grace", "no negative duration");
  const Duration interval(spec.checkpoint_interval_us());
  if (interval != Duration(0) && interval < kLeastTime)
    return BadField("checkpoint_interval", "1s or more, or 0s for none, got " + FormatDuration(interval));
  if (spec.has_max_preemptions() && spec.max_preemptions() < 0)
    return BadField("max_preemptions", "0 or more");
  const bool earliest = spec.start_by_earliest();
  if (spec.on_demand() && spec.start_by_us() <= 0 && !earliest)
    return BadField("start_by", "a time: an on-demand job has a deadline");
  if (earliest && spec.start_by_us() != 0) return BadField("start_by", "either a time or earliest");
  if (!spec.on_demand() && (spec.start_by_us() != 0 || earliest))
    return BadField("start_by", "nothing: only on-demand jobs have a deadline");
  if (spec.hold_us() < 0) return BadField("hold", "no negative duration");
  if (!spec.on_demand() && (spec.hold_us() != 0 || spec.not_before_us() != 0))
    return BadField(spec.not_before_us() != 0 ? "not_before" : "hold",
                    "nothing: only on-demand jobs say when they will need nodes");
  SIDING_RETURN_IF_ERROR(CheckWalltime(Duration(WalltimeOf(spec))));
  if (spec.not_before_us() > spec.start_by_us() && !earliest)
    return BadField("not_before", "a time no later than start_by");
  for (const auto& [name, value] : spec.env()) {
    if (name.empty() || name.find('=') != std::string::npos)
      return BadField("env", "names without '=', got '" + name + "'");
  }
  return absl::OkStatus();
}

absl::StatusOr<AppMethod> AppFromProto(const v1::AppMethod& app) {
  if (app.signal() < 1 || app.signal() >= NSIG)
    return BadField("app.signal", app.signal() == 0
                                      ? std::string("the signal that tells the program to save itself")
                                      : absl::StrCat("a signal number, got ", app.signal()));
  if (app.signal() == SIGKILL || app.signal() == SIGSTOP)
    return BadField("app.signal", "a signal that a program can catch");
  if (app.grace_us() <= 0) return BadField("app.grace", "more than 0");
  if (!app.marker().empty() && app.marker()[0] != '/') return BadField("app.marker", "an absolute path");
  AppMethod out;
  out.signal = app.signal();
  out.marker = app.marker();
  out.grace = Duration(app.grace_us());
  out.restart_command.assign(app.restart_command().begin(), app.restart_command().end());
  return out;
}

}  // namespace

v1::Method ToProto(Method method) {
  switch (method) {
    case Method::kSuspend:
      return v1::SUSPEND;
    case Method::kCheckpoint:
      return v1::CHECKPOINT;
    case Method::kApp:
      return v1::APP;
    case Method::kKill:
      return v1::KILL;
  }
  return v1::METHOD_UNSPECIFIED;
}

v1::Tier ToProto(Tier tier) { return tier == Tier::kLocal ? v1::LOCAL : v1::SHARED; }

v1::Resources ToProto(const Resources& resources) {
  v1::Resources out;
  out.set_slots(resources.slots);
  out.set_memory(resources.memory.value);
  out.set_gpus(resources.gpus);
  return out;
}

v1::AppMethod ToProto(const AppMethod& app) {
  v1::AppMethod out;
  out.set_signal(app.signal);
  out.set_marker(app.marker);
  out.set_grace_us(app.grace.count());
  out.mutable_restart_command()->Assign(app.restart_command.begin(), app.restart_command.end());
  return out;
}

v1::JobSpec ToProto(const JobSpec& spec) {
  v1::JobSpec out;
  out.set_name(spec.name);
  out.set_on_demand(spec.kind == JobKind::kOnDemand);
  out.set_uid(spec.uid);
  out.set_gid(spec.gid);
  out.set_user(spec.user);
  out.set_nodes(spec.nodes);
  *out.mutable_per_node() = ToProto(spec.per_node);
  out.set_priority(spec.priority);
  out.mutable_command()->Assign(spec.command.begin(), spec.command.end());
  out.mutable_env()->insert(spec.env.begin(), spec.env.end());
  out.set_workdir(spec.workdir);
  out.set_output(spec.output);
  for (Method m : kAllMethods) {
    if (spec.methods.Has(m)) out.add_methods(ToProto(m));
  }
  if (spec.app) *out.mutable_app() = ToProto(*spec.app);
  out.set_kill_grace_us(spec.kill_grace.count());
  out.set_notice_us(spec.notice.count());
  // The enumerations have the same order.
  out.set_gpu_collectives(static_cast<v1::GpuCollectives>(spec.gpu_collectives));
  out.set_allow_io_uring(spec.allow_io_uring);
  out.set_append_files(spec.append_files);
  out.set_keep_connections(spec.keep_connections);
  out.set_on_node_failure(static_cast<v1::OnNodeFailure>(spec.on_node_failure));
  out.set_checkpoint_interval_us(spec.checkpoint_interval.count());
  out.set_auto_checkpoint_interval(spec.auto_checkpoint_interval);
  if (spec.max_preemptions) out.set_max_preemptions(*spec.max_preemptions);
  out.set_start_by_us(ToMicros(spec.start_by));
  out.mutable_labels()->insert(spec.labels.begin(), spec.labels.end());
  out.set_not_before_us(ToMicros(spec.not_before));
  out.set_hold_us(spec.hold.count());
  out.set_walltime_us(spec.walltime.count());
  out.set_cluster_manager(spec.cluster_manager);
  return out;
}

v1::PlanKeep ToProto(const PlanKeep& keep) {
  v1::PlanKeep out;
  out.set_job(keep.job.value());
  out.set_reason(keep.reason);
  out.set_rule(static_cast<v1::KeepRule>(keep.rule));
  out.set_policy_key(keep.policy_key);
  out.set_job_class(keep.job_class);
  out.set_from_us(ToMicros(keep.from));
  out.set_way(keep.way);
  out.set_release_us(keep.release.count());
  out.set_loss_node_seconds(keep.loss_node_seconds);
  out.set_nodes(keep.nodes);
  out.set_note(keep.note);
  return out;
}

v1::KeptGroup ToProto(const KeptGroup& group) {
  v1::KeptGroup out;
  out.set_rule(static_cast<v1::KeepRule>(group.rule));
  out.set_policy_key(group.policy_key);
  out.set_job_class(group.job_class);
  out.set_jobs(group.jobs);
  return out;
}

v1::Plan ToProto(const Plan& plan) {
  v1::Plan out;
  out.set_request(plan.request.value());
  out.set_feasible(plan.feasible);
  out.set_exact(plan.exact);
  for (const PlanStep& step : plan.steps) {
    v1::PlanStep& s = *out.add_steps();
    s.set_job(step.job.value());
    s.set_method(ToProto(step.method));
    if (step.method == Method::kCheckpoint) s.set_tier(ToProto(step.tier));
    for (const NodeId& node : step.nodes) s.add_nodes(node.value());
    if (step.begin != Time{}) s.set_begin_us(ToMicros(step.begin));
    s.set_early(step.early);
    s.set_through_ram(step.through_ram);
    s.set_predicted_release_us(ToMicros(step.predicted_release));
    s.set_bytes(step.bytes.value);
    s.set_loss_node_seconds(step.loss_node_seconds);
    s.set_reason(step.reason);
  }
  for (const NodeId& node : plan.nodes) out.add_nodes(node.value());
  for (const PlanKeep& keep : plan.kept) *out.add_kept() = ToProto(keep);
  for (const KeptGroup& group : plan.kept_groups.empty() ? GroupKept(plan.kept) : plan.kept_groups)
    *out.add_kept_groups() = ToProto(group);
  for (const PlanWithout& without : plan.without) {
    v1::PlanWithout& w = *out.add_without();
    w.set_job(without.spared.value());
    w.set_feasible(without.feasible);
    for (const JobId job : without.jobs) w.add_jobs(job.value());
    w.set_loss_node_seconds(without.loss_node_seconds);
    w.set_next_best(without.next_best);
  }
  out.set_predicted_start_us(ToMicros(plan.predicted_start));
  out.set_loss_node_seconds(plan.loss_node_seconds);
  out.set_refusal(plan.refusal);
  out.set_queued(plan.queued);
  if (plan.decided != Time{}) out.set_decided_us(ToMicros(plan.decided));
  if (plan.earliest) out.set_earliest_us(ToMicros(*plan.earliest));
  return out;
}

absl::StatusOr<Method> FromProto(v1::Method method) {
  switch (method) {
    case v1::SUSPEND:
      return Method::kSuspend;
    case v1::CHECKPOINT:
      return Method::kCheckpoint;
    case v1::APP:
      return Method::kApp;
    case v1::KILL:
      return Method::kKill;
    default:
      return BadField(
          "methods", absl::StrCat("suspend, checkpoint, app or kill, got number ", static_cast<int>(method)));
  }
}

Tier FromProto(v1::Tier tier) { return tier == v1::LOCAL ? Tier::kLocal : Tier::kShared; }

Resources FromProto(const v1::Resources& resources) {
  return Resources{resources.slots(), Bytes{resources.memory()}, resources.gpus()};
}

namespace {

constexpr Duration kMostNotice = std::chrono::hours(24);

absl::StatusOr<JobSpec> FieldsOf(const v1::JobSpec& spec) {
  SIDING_RETURN_IF_ERROR(CheckNumbers(spec));
  JobSpec out;
  out.name = spec.name();
  out.kind = spec.on_demand() ? JobKind::kOnDemand : JobKind::kBatch;
  out.uid = spec.uid();
  out.gid = spec.gid();
  out.user = spec.user();
  out.nodes = spec.nodes();
  out.per_node = FromProto(spec.per_node());
  out.priority = spec.priority();
  out.command.assign(spec.command().begin(), spec.command().end());
  out.env.insert(spec.env().begin(), spec.env().end());
  out.workdir = spec.workdir();
  out.output = spec.output();
  for (int method : spec.methods()) {
    SIDING_ASSIGN_OR_RETURN(Method m, FromProto(static_cast<v1::Method>(method)));
    out.methods.Add(m);
  }
  if (spec.has_app()) {
    SIDING_ASSIGN_OR_RETURN(out.app, AppFromProto(spec.app()));
  }
  if (out.methods.Has(Method::kApp) != out.app.has_value()) {
    return BadField("app", "a signal if, and only if, the method app is allowed");
  }
  out.labels.insert(spec.labels().begin(), spec.labels().end());
  if (spec.not_before_us() != 0) out.not_before = FromMicros(spec.not_before_us());
  out.walltime = Duration(WalltimeOf(spec));
  if (spec.on_demand()) out.hold = out.walltime;
  if (spec.has_kill_grace_us()) out.kill_grace = Duration(spec.kill_grace_us());
  out.checkpoint_interval = Duration(spec.checkpoint_interval_us());
  out.auto_checkpoint_interval = spec.auto_checkpoint_interval();
  if ((out.checkpoint_interval > Duration(0) || out.auto_checkpoint_interval) &&
      !out.methods.Has(Method::kCheckpoint) && !(out.app && ContinuesAfterSave(*out.app))) {
    return BadField("checkpoint_interval", "nothing, unless the job allows checkpoint, or app with a marker");
  }
  out.notice = Duration(spec.notice_us());
  if (out.notice < Duration(0) || out.notice > kMostNotice)
    return BadField("notice", "a duration of up to 24h");
  if (spec.gpu_collectives() != v1::GPU_COLLECTIVES_UNSPECIFIED && spec.gpu_collectives() != v1::AS_IS &&
      spec.gpu_collectives() != v1::DRAINABLE) {
    return BadField("gpu_collectives", absl::StrCat("as-is or drainable, got number ",
                                                    static_cast<int>(spec.gpu_collectives())));
  }
  out.gpu_collectives = static_cast<GpuCollectives>(spec.gpu_collectives());
  out.allow_io_uring = spec.allow_io_uring();
  out.append_files = spec.append_files();
  out.keep_connections = spec.keep_connections();
  if (out.keep_connections && spec.nodes() > kMostKeptRanks)
    return BadField("nodes", absl::StrCat("at most ", kMostKeptRanks, " with connections that are kept"));
  if (!v1::OnNodeFailure_IsValid(spec.on_node_failure())) {
    return BadField("on_node_failure",
                    absl::StrCat("requeue or park, got number ", static_cast<int>(spec.on_node_failure())));
  }
  out.on_node_failure = static_cast<OnNodeFailure>(spec.on_node_failure());
  if (spec.has_max_preemptions()) out.max_preemptions = spec.max_preemptions();
  out.start_by = spec.start_by_earliest() ? kEarliest : FromMicros(spec.start_by_us());
  return out;
}

}  // namespace

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& spec) {
  SIDING_RETURN_IF_ERROR(CheckShape(spec));
  SIDING_RETURN_IF_ERROR(CheckLimits(spec));
  if (!spec.cluster_manager().empty()) return BadField("cluster_manager", "nothing: agents say it");
  SIDING_ASSIGN_OR_RETURN(JobSpec out, FieldsOf(spec));
  if (out.notice > Duration(0) && !out.methods.Has(Method::kSuspend) && !out.methods.Has(Method::kCheckpoint))
    return BadField("notice", "nothing, unless the job allows suspend or checkpoint");
  return out;
}

absl::StatusOr<JobChange> FromProto(const v1::UpdateRequest& request) {
  SIDING_RETURN_IF_ERROR(CheckNumbers(request));
  if (!request.has_priority() && !request.has_walltime_us())
    return BadField("priority, walltime", "what is to be changed");
  JobChange change;
  if (request.has_priority()) change.priority = request.priority();
  if (!request.has_walltime_us()) return change;
  change.walltime = Duration(request.walltime_us());
  SIDING_RETURN_IF_ERROR(CheckWalltime(*change.walltime));
  return change;
}

absl::StatusOr<JobSpec> ManagedFromProto(const v1::JobSpec& spec) {
  if (spec.cluster_manager().empty()) return BadField("cluster_manager", "a name");
  SIDING_ASSIGN_OR_RETURN(JobSpec out, FieldsOf(spec));
  out.cluster_manager = spec.cluster_manager();
  return out;
}

static Rate FromProto(const v1::Rate& rate) {
  return {rate.bytes_per_second(), Duration(rate.overhead_us()), rate.spread()};
}

TierRates FromProto(const v1::TierRates& rates) {
  return {FromProto(rates.dump()), FromProto(rates.restore())};
}

}  // namespace siding
