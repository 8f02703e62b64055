#include "agent/node/pod_task.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/dump_steps.h"
#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/repair.h"
#include "agent/checkpoint/tracers.h"
#include "agent/os/processes.h"
#include "agent/pods/pod_dump.h"
#include "agent/task/ending.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr char kMetadataContainer[] = "container";  // its name in the pod
constexpr Duration kPodUntracedPatience = std::chrono::seconds(10);
constexpr int kEndedByTerm = 128 + SIGTERM;

ContainerRef RefOf(const agent::PodRecord& pod) { return {pod.root(), pod.id(), pod.bundle()}; }

std::string WhyNotSaved(const Inspection& seen) {
  if (!seen.cannot_dump.empty()) return seen.cannot_dump;
  return seen.passing_again ? seen.passing : "";
}

// Of a dump that was broken off: for what, and what became of it.
absl::Status WhyEnded(const absl::Status& stopped, const absl::Status& ended) {
  return stopped.ok() ? ended : Annotate(ended, std::string(stopped.message()));
}

}  // namespace

PodTask::PodTask(HostContext& host, TaskId id, std::string folder, agent::TaskRecord record)
    : HostedTask(host, id, std::move(folder), std::move(record)), pod_(record_.pod().pod()) {
  record_.mutable_report()->set_pod_uid(pod_.uid());
  host_.container_starts.Offer(pod_.uid(), *this);
}

PodTask::~PodTask() {
  host_.container_starts.Withdraw(pod_.uid(), *this);
  StopWork();
}

void PodTask::Execute(const v1::ToAgent& command) {
  if (!command.has_pod_gone()) return HostedTask::Execute(command);
  MutexLock lock(mutex_);
  if (machine_.ended() || IsOver(machine_.phase())) return Send();
  const bool stays = command.pod_gone().stays();
  // In a dump nothing of it may run any more: it is told again afterwards, or the pod has left.
  const bool in_dump = machine_.phase() == v1::DUMPING || machine_.phase() == v1::PREPARED;
  if (stays && in_dump) return Send();
  record_.mutable_pod()->set_stays(stays);
  if (command.pod_gone().has_exit_code()) {
    exit_.emplace().set_code(command.pod_gone().exit_code());
  } else if (record_.killed()) {
    exit_.emplace().set_code(kEndedByTerm);
  }
  Observe(task::ShimEnded{}).IgnoreError();
}

// ---- What siding-runc asks. ----

absl::StatusOr<ContainerStart> PodTask::OnStarting(const StartingContainer& starting) {
  MutexLock lock(mutex_);
  agent::PodRecord& pod = *record_.mutable_pod();
  ContainerStart start;
  switch (machine_.phase()) {
    case v1::TASK_PHASE_UNSPECIFIED:
      return absl::UnavailableError("nothing has been ordered yet");
    case v1::LAUNCHING:
    case v1::RUNNING:  // its kubelet starts it again
      break;
    case v1::RESTORING:
      if (!image_ && unsure_) {
        // Its runtime tries again: what an earlier agent began has failed, and that agent knew the image.
        made_ = absl::UnavailableError("the agent ended during the restore");
        changed_.NotifyAll();
        return absl::UnavailableError(std::string(made_->message()));
      }
      if (!image_) return absl::UnavailableError("its image is being verified");
      if (made_ && !made_->ok()) return absl::UnavailableError(std::string(made_->message()));
      // Such as an init container's.
      if (starting.name != image_container_) return start;
      start.image_folder = *image_;
      break;
    case v1::RESTORE_FAILED:
    case v1::LAUNCH_FAILED:
      // To say no would be a failed try of the Job whose pod it is, and its last one perhaps. The controller
      // removes the pod, or orders something else for it.
      return absl::UnavailableError(record_.report().error());
    default:
      return absl::FailedPreconditionError(
          "its container ended while siding was about to freeze or save it; the pod is to leave");
  }
  pod.set_container(starting.name);
  pod.set_root(starting.container.root);
  pod.set_id(starting.container.id);
  pod.set_bundle(starting.container.bundle);
  unsure_ = false;
  // An agent that finds it again knows where to look for it.
  SIDING_RETURN_IF_ERROR(TryPersist());
  return start;
}

void PodTask::OnMade(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) {
  MutexLock lock(mutex_);
  if (record_.pod().id() != starting.container.id) return;
  if (made.ok()) {
    NoteMade(*made);
  } else if (!absl::IsAborted(made.status())) {
    unsure_ = true;
  } else if (machine_.phase() == v1::RESTORING) {
    made_ = made.status();
  }
  if (!made.ok())
    spdlog::warn("task {}: its container {}: {}", name_, unsure_ ? "may have been made" : "was not made",
                 std::string(made.status().message()));
  changed_.NotifyAll();
}

void PodTask::NoteMade(pid_t init) {
  const auto stat = ReadProcessStat(init);
  record_.mutable_init()->set_pid(init);
  record_.mutable_init()->set_start_time(stat ? stat->start_time : 0);
  Persist();
  unsure_ = false;
  made_ = absl::OkStatus();
}

void PodTask::LookForContainer() {
  const ContainerRef container = RefOf(Record().pod());
  const absl::StatusOr<pid_t> init = host_.containers->InitOf(container);
  MutexLock lock(mutex_);
  if (init.ok() && unsure_ && record_.pod().id() == container.id) NoteMade(*init);
}

// ---- Work. ----

void PodTask::Do(const TaskAction& work) {
  switch (work.work) {
    case TaskWork::kNone:
    case TaskWork::kSave:  // pods are not asked to save themselves
      return;
    case TaskWork::kStart:
      return DoStart(work.order);
    case TaskWork::kFailStart: {
      MutexLock lock(mutex_);
      Observe(task::StartFailed{.error = work.error, .node_problem = true}).IgnoreError();
      return;
    }
    case TaskWork::kSuspend:
      return DoSuspend(work.order);
    case TaskWork::kResume:
      return DoResume();
    case TaskWork::kDump:
      return DoDump(work.order);
    case TaskWork::kKill:
      return DoKill();
    case TaskWork::kAdopt:
      return DoAdopt();
    case TaskWork::kFinalize:
      return Finalize();
  }
}

// Its kubelet ends the pod; there is nothing to be done beside it.
void PodTask::KillProcesses() {}

void PodTask::DoStart(const v1::ToAgent& command) {
  if (command.has_restore()) {
    bool damaged = false;
    const absl::StatusOr<std::string> image = PrepareImage(command, damaged);
    MutexLock lock(mutex_);
    if (!image.ok()) {
      const bool outside = absl::IsNotFound(image.status());
      Observe(task::StartFailed{.error = std::string(image.status().message()),
                                .image_damaged = damaged,
                                .node_problem = !damaged && !outside,
                                .outside_problem = !damaged && outside})
          .IgnoreError();
      return;
    }
    image_ = *image;
  }
  const auto begun = std::chrono::steady_clock::now();
  host_.container_starts.Ring();
  const absl::Status made = AwaitMade();
  if (absl::IsCancelled(made)) return;
  if (made.ok() && command.has_restore()) {
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
    host_.rates->Add(MediumOf(command.restore().tier()), Transfer::kRestore,
                     Bytes{Record().report().image_bytes()}, took);
  }
  {
    MutexLock lock(mutex_);
    if (made.ok()) {
      record_.mutable_report()->set_started_us(ToMicros(host_.clock.Now()));
      Observe(task::Started{}).IgnoreError();
    } else {
      const bool node_problem = absl::IsUnavailable(made);
      Observe(task::StartFailed{.error = std::string(made.message()),
                                .node_problem = node_problem,
                                .outside_problem = !node_problem})
          .IgnoreError();
    }
  }
  std::error_code error;
  std::filesystem::remove_all(PlainFolder(), error);
}

absl::Status PodTask::AwaitMade() {
  for (;;) {
    bool unsure = false;
    {
      MutexLock lock(mutex_);
      unsure = unsure_;
    }
    if (unsure) LookForContainer();
    MutexLock lock(mutex_);
    if (machine_.ended() || Interrupted()) return absl::CancelledError("the start is over");
    if (made_) return *made_;
    // As long as it takes: images of containers are pulled meanwhile. Woken by OnMade(), and by the end.
    changed_.WaitFor(mutex_, std::chrono::milliseconds(unsure_ ? 1000 : 200));
  }
}

// The folder of its files.
absl::StatusOr<std::string> PodTask::PrepareImage(const v1::ToAgent& command, bool& damaged) {
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.restore: a pod's image is about to be verified">());
  const v1::Restore& restore = command.restore();
  SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(restore.tier()));
  const ImageKey key{CheckpointId(restore.checkpoint()), id_.rank};
  const absl::StatusOr<Manifest> verified = store->Verify(
      key, {.progress = [this](Bytes) { return !Interrupted(); }, .digest = restore.image_digest()});
  damaged = absl::IsDataLoss(verified.status());
  if (!verified.ok()) return verified.status();
  const auto container = verified->metadata.find(kMetadataContainer);
  if (container == verified->metadata.end())
    return absl::FailedPreconditionError("the image is not that of a pod");
  if (const std::string why = host_.WhyNotRestored(verified->metadata); !why.empty())
    return absl::FailedPreconditionError(why);
  {
    MutexLock lock(mutex_);
    record_.mutable_report()->set_image_bytes(verified->TotalSize().value);
    image_container_ = container->second;
  }
  absl::StatusOr<std::string> folder = store->Decrypt(key, PlainFolder());
  if (!folder.ok()) {
    damaged = absl::IsDataLoss(folder.status());
    MutexLock lock(mutex_);
    record_.mutable_report()->set_no_key(absl::IsFailedPrecondition(folder.status()));
  }
  return folder;
}

absl::StatusOr<ContainerRef> PodTask::Container() {
  const agent::TaskRecord record = Record();
  if (record.pod().id().empty() || !IsAlive(record.init().pid(), record.init().start_time()))
    return absl::UnavailableError("its container does not run at the moment");
  return RefOf(record.pod());
}

absl::Status PodTask::ThawIfFrozen() {
  const agent::TaskRecord record = Record();
  if (record.pod().id().empty()) return absl::OkStatus();
  absl::Status status = host_.containers->Resume(RefOf(record.pod()));
  if (absl::IsNotFound(status)) status = absl::OkStatus();
  FaultHere<"agent.pod.thawed: a pod is thawed, which is not yet remembered">();
  MutexLock lock(mutex_);
  if (status.ok() && record_.frozen()) {
    record_.set_frozen(false);
    Persist();
  }
  return status;
}

bool PodTask::FreezeAgain() {
  const absl::StatusOr<ContainerRef> container = Container();
  if (!container.ok()) return true;
  const absl::Status paused = host_.containers->Pause(*container);
  if (paused.ok() || absl::IsNotFound(paused)) return true;
  spdlog::error("task {}: it is not frozen again: {}", name_, std::string(paused.message()));
  return false;
}

void PodTask::DoSuspend(const v1::ToAgent& command) {
  bool frozen = false;
  const auto freeze = [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const ContainerRef container, Container());
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.suspend: a pod is about to be frozen">());
    absl::Status status = host_.containers->Pause(container);
    if (status.ok()) status = FaultAt<"agent.pod.suspended: a pod is frozen, nobody has been told">();
    frozen = status.ok();
    if (frozen) return status;
    const absl::Status undone = host_.containers->Resume(container);
    // Nobody would resume what is said to run.
    frozen = !undone.ok() && !absl::IsNotFound(undone);
    if (!frozen) return status;
    return Annotate(status, absl::StrCat("it cannot be thawed (", std::string(undone.message()), ")"));
  };
  const absl::Status status = freeze();
  MutexLock lock(mutex_);
  if (machine_.ended()) return;
  if (!status.ok())
    spdlog::warn("task {}: suspend {}: {}", name_, command.op(), std::string(status.message()));
  Observe(task::SuspendEnded{frozen, host_.stopping ? "" : std::string(status.message())}).IgnoreError();
}

void PodTask::DoResume() {
  absl::Status status = FaultAt<"agent.pod.resume: a pod is about to be thawed">();
  if (status.ok()) status = ThawIfFrozen();
  MutexLock lock(mutex_);
  if (!status.ok()) spdlog::warn("task {}: resume: {}", name_, std::string(status.message()));
  Observe(task::ResumeEnded{std::string(status.message())}).IgnoreError();
}

void PodTask::DoDump(const v1::ToAgent& command) {
  const auto ordered = std::chrono::steady_clock::now();
  const bool was_frozen = Record().dump().was_frozen();
  const bool leaves = !command.dump().keep_running();
  const auto run = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.pod.dump: the dump of a pod is about to begin">());
    if (!host_.criu) return absl::UnavailableError("no checkpoint on this node: " + host_.criu_problem);
    SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(command.dump().tier()));
    SIDING_ASSIGN_OR_RETURN(const ContainerRef container, Container());
    SIDING_RETURN_IF_ERROR(PauseWithNothingQueued(*host_.containers, container, was_frozen));
    PodDumpPlan plan;
    plan.key = {CheckpointId(command.dump().checkpoint()), id_.rank};
    plan.container = container;
    plan.criu = host_.CriuFor(0, 0);
    plan.work_folder = folder_;
    plan.commit_patience = CommitPatience(Record().spec().nodes() > 1, !leaves);
    plan.metadata[kMetadataIncarnation] = std::to_string(id_.incarnation);
    plan.metadata[kMetadataNode] = host_.options.node;
    plan.metadata[kMetadataContainer] = Record().pod().container();
    Dumper dumper(*this, command, ordered);
    const absl::Status done = RunPodDump(*host_.containers, *store, plan, dumper, abandon_);
    return done.ok() || !abandon_ ? done : WhyEnded(dumper.WhyStopped(), done);
  };
  absl::Status status = run();
  if (status.ok() && leaves) return Leave();
  const bool tier_problem = IsTierProblem(status);
  const bool cut_short = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || abandon_;
  bool frozen = was_frozen && FreezeAgain();
  if (!frozen) {
    const absl::Status thawed = ThawIfFrozen();
    status.Update(thawed);
    frozen = !thawed.ok();
  }
  MutexLock lock(mutex_);
  if (!status.ok()) spdlog::warn("task {}: dump {}: {}", name_, command.op(), std::string(status.message()));
  Observe(task::DumpEnded{frozen, cut_short, std::string(status.message()), tier_problem}).IgnoreError();
}

void PodTask::Leave() {
  KillAll(false);
  {
    MutexLock lock(mutex_);
    record_.mutable_report()->set_leaves(true);
    Persist();
    Send();
  }
  FaultHere<"agent.pod.leaves: a pod's image counts, and the pod is to be removed">();
  AwaitEnd();
}

void PodTask::AwaitEnd() {
  MutexLock lock(mutex_);
  while (!machine_.ended() && !host_.stopping) changed_.WaitFor(mutex_, std::chrono::seconds(1));
}

// The pod is evicted by the controller, with the time to end that it asks for.
void PodTask::DoKill() {
  if (const absl::Status status = ThawIfFrozen(); !status.ok())
    spdlog::warn("task {}: {}", name_, std::string(status.message()));
  {
    MutexLock lock(mutex_);
    Observe(task::KillBegun{}).IgnoreError();
  }
  AwaitEnd();
}

void PodTask::KillAll(bool init_too) {
  const agent::ProcessRef init = Init();
  if (!IsAlive(init.pid(), init.start_time())) return;
  for (const pid_t pid : ProcessTree(init.pid())) {
    if (init_too || pid != init.pid()) kill(pid, SIGKILL);
  }
}

void PodTask::Finalize() {
  FaultHere<"agent.pod.end: a pod is gone, what that means is not yet judged">();
  const auto gone = [this] {
    const agent::TaskRecord record = Record();
    if (host_.stopping || !IsAlive(record.init().pid(), record.init().start_time())) return true;
    if (record.pod().stays()) return ThawIfFrozen().ok();
    KillAll(true);
    // Frozen processes end when they are thawed.
    host_.containers->Resume(RefOf(record.pod())).IgnoreError();
    return false;
  };
  while (!PollUntil(gone, kEndPatience)) spdlog::error("task {}: some processes do not end", name_);
  if (host_.stopping) return;
  const bool visible = ImageIsVisible() && !Record().pod().stays();
  MutexLock lock(mutex_);
  record_.mutable_report()->set_leaves(false);
  // Nothing of it ran behind its image: what its kubelet saw is how the frozen rest was ended.
  const bool left = visible && !record_.dump().keep_running();
  Observe(task::Ended{exit_ && !left ? &*exit_ : nullptr, visible}).IgnoreError();
}

// ---- Found again. ----

void PodTask::Adopt() {
  MutexLock lock(mutex_);
  if (IsOver(machine_.phase())) return;
  using Shim = task::FoundAgain;
  // A pod lives as long as the controller does not say otherwise, also over a restart of the machine: its
  // kubelet starts its container again.
  if (machine_.phase() == v1::TASK_PHASE_UNSPECIFIED) return;
  Observe(task::FoundAgain{true, Shim::kLives}).IgnoreError();
}

void PodTask::DoAdopt() {
  FaultHere<"agent.pod.adopt: a pod of an earlier agent's is found">();
  const agent::TaskRecord record = Record();
  const v1::TaskPhase phase = record.report().phase();
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    v1::ToAgent order;
    order.mutable_launch();
    const bool asked = !record.pod().id().empty();
    {
      MutexLock lock(mutex_);
      unsure_ = asked;
      // It cannot be told which image it was; the controller orders anew what is to be done.
      if (phase == v1::RESTORING && !asked)
        made_ = absl::UnavailableError("the agent ended during the restore");
    }
    return DoStart(order);
  }
  // CRIU, if it is still there, ends its dump; the processes stay frozen meanwhile.
  const pid_t init = record.init().pid();
  if (IsAlive(init, record.init().start_time())) {
    if (const absl::Status status = AwaitCriuGone(init, folder_, kPodUntracedPatience); !status.ok())
      spdlog::error("task {}: {}", name_, std::string(status.message()));
    EndRepair(init);  // of a CRIU that has been ended with the agent
  }
  if (phase == v1::DUMPING && !record.dump().keep_running() && ImageIsVisible()) return Leave();
  // What is observed counts: frozen or about to be, and nothing says how far that went. One whose container
  // is gone stays frozen: it is not to be made again.
  bool frozen = false;
  if (phase == v1::DUMPING) {
    frozen = record.dump().was_frozen() && FreezeAgain();
  } else if (phase == v1::SUSPENDED) {
    const auto paused = host_.containers->IsPaused(RefOf(record.pod()));
    frozen = !paused.ok() || *paused;
  }
  absl::Status back;
  if (!frozen) back = ThawIfFrozen();
  MutexLock lock(mutex_);
  if (!back.ok()) spdlog::error("task {}: {}", name_, std::string(back.message()));
  Observe(task::AdoptEnded{frozen || !back.ok(), std::string(back.message())}).IgnoreError();
}

// ---- Reports. ----

v1::TaskReport PodTask::Report(std::chrono::steady_clock::time_point until) {
  const agent::TaskRecord record = Record();
  const v1::TaskPhase phase = record.report().phase();
  InspectionRequest asked;
  if (IsAlive(record.init().pid(), record.init().start_time())) asked.init = record.init().pid();
  asked.bundle = record.pod().bundle();
  asked.criu = host_.CriuFor(0, 0);
  const auto [inspection, hangs] = inspections_.Look(asked, until);
  const Bytes resident = !hangs.empty() ? TreeResident(asked.init) : Bytes{};
  MutexLock lock(mutex_);
  v1::TaskReport& report = *record_.mutable_report();
  if (asked.init > 0 && !hangs.empty())
    report.set_memory(resident.value);
  else if (asked.init > 0 && inspection)
    report.set_memory(inspection->memory.value);
  // Of one that is about to leave it is not said anew: CRIU is at work on it, or has been.
  if (report.phase() != phase || (phase != v1::RUNNING && phase != v1::SUSPENDED && host_.criu))
    return report;
  std::string why;
  if (!host_.criu)
    why = host_.criu_problem;
  else if (asked.init <= 0)
    why = phase == v1::RUNNING ? "its container does not run at the moment" : "";
  else if (!hangs.empty())
    why = hangs;
  else if (inspection)
    why = WhyNotSaved(*inspection);
  report.set_cannot_checkpoint(why);
  report.set_timer(asked.init > 0 && inspection ? inspection->timer : "");
  return report;
}

void PodTask::RemoveTraces() {
  std::error_code error;
  std::filesystem::remove_all(PlainFolder(), error);
  std::filesystem::remove_all(folder_, error);
  if (error) spdlog::warn("task {}: remove {}: {}", name_, folder_, error.message());
}

}  // namespace siding
