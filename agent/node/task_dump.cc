#include <chrono>

#include "agent/checkpoint/dump.h"
#include "agent/checkpoint/dump_steps.h"
#include "agent/checkpoint/held_files.h"
#include "agent/checkpoint/recreated_names.h"
#include "agent/checkpoint/shared_memory.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/shim/shim.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
void Task::DoDump(v1::ToAgent command) {
  const auto ordered = std::chrono::steady_clock::now();
  // What a dump changes of it is not looked at here, but for its GPUs.
  const agent::TaskRecord record = Record();
  const v1::JobSpec& spec = record.spec();
  const pid_t init = record.init().pid();
  const auto run = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump: a dump is about to begin">());
    if (!host_.criu) return absl::UnavailableError("no checkpoint on this node: " + host_.criu_problem);
    if (const std::string why = host_.WhyNoCriuFor(spec.uid()); !why.empty())
      return absl::FailedPreconditionError(why);
    // One after which it continues loses nothing, and may be rehearsed again.
    if (!record.no_restore().empty() && !command.dump().keep_running())
      return absl::FailedPreconditionError(record.no_restore());
    SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(command.dump().tier()));
    if (const std::string why = WhyNoScript(init); !why.empty()) return absl::FailedPreconditionError(why);
    if (!record.dump().was_frozen()) SIDING_RETURN_IF_ERROR(GiveNotice(Duration(command.dump().notice_us())));
    SIDING_RETURN_IF_ERROR(ThawIfFrozen());
    SIDING_RETURN_IF_ERROR(LeaveGpus(Duration(command.dump().lock_patience_us())));
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.ready: the task runs, and is off its GPUs">());
    const Account user = User();
    // Asked again when it is frozen. Now it costs no dump, and no other thread waits if the task blocks it.
    SIDING_RETURN_IF_ERROR(InTime([init, user]() -> absl::Status {
      AwaitMemory(init);
      SIDING_RETURN_IF_ERROR(Annotate(CheckHeldFiles(init, user), "it could not be restored"));
      return Annotate(CheckRecreatedNames(init, user), "it could not be restored");
    }));
    DumpPlan plan;
    plan.account = user;
    plan.shared_mark = NamesIn(record).SharedMemoryMark();
    plan.key = {CheckpointId(command.dump().checkpoint()), id_.rank};
    plan.init = init;
    plan.criu = host_.CriuFor(spec.uid(), spec.gid());
    plan.contents = &host_.contents;
    plan.work_folder = folder_;
    SIDING_RETURN_IF_ERROR(
        freezer().MakeCgroup(outside_).status());  // an earlier version made none for shims
    plan.cgroup = freezer().ShimCgroupPath(outside_);
    plan.hold = freezer().HoldCgroup(outside_);
    if (record.report().has_endpoint() && plan.criu.kind != CriuKind::kOurs)
      return absl::FailedPreconditionError(host_.no_network);
    // One that an agent of an earlier version has started uses the node's network.
    if (record.report().has_endpoint()) plan.packets = this;
    exited_ = {command.dump().exited().begin(), command.dump().exited().end()};
    plan.keep_running = command.dump().keep_running();
    // What was taken off GPUs or frozen is put back when all is done. A controller of an earlier version
    // dumps ranks of a job one by one: they stay where they were stopped until all have been.
    const bool together = command.dump().together();
    plan.finish_behind =
        plan.keep_running && (together || spec.nodes() == 1) && !UsesGpus() && !record.dump().was_frozen();
    plan.together = plan.finish_behind && together;
    plan.holds_together = plan.packets != nullptr && together;
    plan.leaves_together = command.dump().leaves_together();
    const bool on_its_tier = record.base().tier() == command.dump().tier();
    if (on_its_tier && !record.base().checkpoint().empty())
      plan.base = ImageKey{CheckpointId(record.base().checkpoint()), id_.rank};
    // A controller of an earlier version does not say so.
    const bool others_follow = command.dump().others_follow() || spec.checkpoint_interval_us() > 0 ||
                               spec.auto_checkpoint_interval();
    // A rehearsal needs the whole image, while the task is frozen.
    if (others_follow && !IsToBeRehearsed(record, command.dump())) plan.tracking = &tracking_;
    if (const auto local = host_.Store(v1::LOCAL); local.ok()) plan.near_store = *local;
    plan.commit_patience = CommitPatience(spec.nodes() > 1 && !plan.leaves_together, plan.keep_running);
    plan.user = host_.UserFor(spec);
    if (!spec.command_checksum().empty()) plan.metadata[kMetadataCommand] = spec.command_checksum();
    if (!record.begun_in().empty()) plan.metadata[kMetadataCluster] = record.begun_in();
    plan.metadata[kMetadataIncarnation] = std::to_string(id_.incarnation);
    plan.metadata[kMetadataNode] = host_.options.node;
    plan.metadata[kMetadataUser] = std::to_string(spec.uid());
    if (UsesGpus()) {
      SIDING_ASSIGN_OR_RETURN(plan.metadata[kMetadataGpu], ToJson(Record().gpu()));
    }
    RaiseFence(RoomForDump(init));
    Dumper::Rehearse rehearse;
    if (IsToBeRehearsed(record, command.dump())) {
      rehearse = [&](const std::string& image, Duration most, const std::function<bool()>& stop) {
        return Rehearse(record, image, most, stop);
      };
    }
    Dumper dumper(*this, command, ordered, std::move(rehearse));
    return RunDump(*host_.criu, *store, plan, dumper, abandon_);
  };
  absl::Status status = run();
  const bool runs_on = Record().report().runs_on();
  const auto seen = [&](bool frozen, bool tier_problem) {
    const bool cut_short = !runs_on && (absl::IsUnavailable(status) || abandon_);
    return task::DumpEnded{frozen, cut_short, std::string(status.message()), tier_problem};
  };
  // It ended just as this began, or meanwhile: its end is told, and not a dump that has failed.
  const bool has_ended = !status.ok() && !IsAlive(init, record.init().start_time());
  const bool speaks_out = has_ended && record.report().has_endpoint() && !AwaitLastWords();
  if (has_ended && !speaks_out && AwaitWord(record.init(), kEndPatience)) {
    MutexLock lock(mutex_);
    if (machine_.ended()) Observe(seen(false, false)).IgnoreError();
    return;  // Work() concludes
  }
  if (speaks_out) status = LastWordsOnTheirWay();
  const bool tier_problem = IsTierProblem(status);
  const bool ends = status.ok() && !command.dump().keep_running();
  if (ends && AwaitWord(record.init(), kEndPatience)) return;  // Work() concludes
  if (ends) status = absl::InternalError("the processes did not end after the checkpoint");
  // As it was before: on its GPUs, or frozen.
  bool frozen = false;
  if (record.dump().was_frozen()) {
    frozen = FreezeAgain();
  } else if (absl::Status back = ReturnToGpus(); !back.ok()) {
    status.Update(back);
    frozen = FreezeAgain();
  }
  MutexLock lock(mutex_);
  if (!status.ok()) spdlog::warn("task {}: dump {}: {}", name_, command.op(), std::string(status.message()));
  Observe(seen(frozen, tier_problem)).IgnoreError();
}

}  // namespace siding
