#include "tests/simulation/kubernetes/hosted_pod.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "agent/task/ending.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

namespace {

constexpr int64_t kMemory = 256 << 20;
constexpr int kEndedByTerm = 143;

agent::TaskRecord NewRecord(const TaskId& id, const v1::Pod& pod) {
  agent::TaskRecord record;
  record.set_externally_managed(true);
  *record.mutable_pod()->mutable_pod() = pod;
  v1::TaskRef& ref = *record.mutable_report()->mutable_task();
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  return record;
}

}  // namespace

HostedPod::HostedPod(PodHost& host, const TaskId& id, const v1::Pod& pod)
    : HostedPod(host, id, NewRecord(id, pod)) {}

HostedPod::HostedPod(PodHost& host, const TaskId& id, agent::TaskRecord record)
    : TaskSteps(host.lab, std::move(record)), host_(host), id_(id) {
  record_.mutable_report()->set_pod_uid(uid());
}

// ---- Orders. ----

void HostedPod::Execute(const v1::ToAgent& command) {
  if (!command.has_pod_gone()) return Perform(machine_.Take(command, host_.lab.timeline.Now()));
  if (machine_.ended() || siding::IsOver(machine_.phase())) return Send();
  const bool stays = command.pod_gone().stays();
  const bool in_dump = machine_.phase() == v1::DUMPING || machine_.phase() == v1::PREPARED;
  if (stays && in_dump) return Send();
  record_.mutable_pod()->set_stays(stays);
  if (command.pod_gone().has_exit_code()) {
    exit_.emplace().set_code(command.pod_gone().exit_code());
  } else if (record_.killed()) {
    exit_.emplace().set_code(kEndedByTerm);
  }
  Observe(task::ShimEnded{});
}

void HostedPod::Perform(const TaskActions& actions) {
  for (const TaskAction& action : actions) {
    switch (action.kind) {
      case TaskAction::kRecord:
      case TaskAction::kRecordFirst:
      case TaskAction::kRecordStart:
      case TaskAction::kRecordDurably:
        Persist();
        break;
      case TaskAction::kSend:
        Send();
        break;
      case TaskAction::kWake:
        Notify();
        break;
      case TaskAction::kBegin:
        Begin(action.work, action.order);
        break;
      case TaskAction::kReleaseGpus:    // there are none
      case TaskAction::kAbandonDump:    // a dump looks at WhyStop() itself
      case TaskAction::kKillProcesses:  // its kubelet ends it
      case TaskAction::kFinalizeNow:
        break;
    }
  }
}

void HostedPod::Begin(TaskWork work, const v1::ToAgent& order) {
  switch (work) {
    case TaskWork::kNone:
    case TaskWork::kSave:
    case TaskWork::kFailStart:
      return Finish();
    case TaskWork::kStart:
      return order.has_restore() ? DoRestore(order) : DoStart(order);
    case TaskWork::kSuspend:
      return DoSuspend();
    case TaskWork::kResume:
      return DoResume();
    case TaskWork::kDump:
      return DoDump(order);
    case TaskWork::kKill:
      return DoKill();
    case TaskWork::kAdopt:
      return DoAdopt();
    case TaskWork::kFinalize:
      return Finalize();
  }
}

// ---- What siding-runc asks. ----

absl::StatusOr<std::optional<ImageName>> HostedPod::OnStarting(const std::string& container) {
  std::optional<ImageName> from;
  switch (machine_.phase()) {
    case v1::TASK_PHASE_UNSPECIFIED:
      return absl::UnavailableError("nothing has been ordered yet");
    case v1::LAUNCHING:
    case v1::RUNNING:
      break;
    case v1::RESTORING:
      if (!image_ && unsure_) {
        made_ = absl::UnavailableError("the agent ended during the restore");
        WakeAt(host_.lab.timeline.Now());
        return absl::FailedPreconditionError(std::string(made_->message()));
      }
      if (!image_) return absl::UnavailableError("its image is being verified");
      if (made_ && !made_->ok()) return absl::UnavailableError(std::string(made_->message()));
      from = image_;
      break;
    case v1::RESTORE_FAILED:
    case v1::LAUNCH_FAILED:
      return absl::UnavailableError(record_.report().error());
    default:
      return absl::FailedPreconditionError("the pod is to leave");
  }
  record_.mutable_pod()->set_id(container);
  unsure_ = false;
  Persist();
  return from;
}

void HostedPod::OnMade(const std::string& container, const absl::StatusOr<int>& made) {
  if (record_.pod().id() != container) return;
  if (made.ok()) {
    NoteMade(*made);
  } else if (machine_.phase() == v1::RESTORING) {
    made_ = made.status();
  }
  Notify();
}

void HostedPod::NoteMade(int pid) {
  record_.mutable_init()->set_pid(pid);
  Persist();
  unsure_ = false;
  made_ = absl::OkStatus();
}

void HostedPod::LookForContainer() {
  const Container* const container = host_.containers.Running(uid(), record_.pod().id());
  if (container != nullptr && unsure_) NoteMade(container->pid);
}

const Container* HostedPod::Running() const {
  const Container* const container = host_.containers.Running(uid(), record_.pod().id());
  return container != nullptr && container->pid == record_.init().pid() ? container : nullptr;
}

// ---- It starts. ----

void HostedPod::DoRestore(const v1::ToAgent& command) {
  Pause(1ms, 500ms, [this, command] {
    const v1::Restore& restore = command.restore();
    const ImageName name{"", restore.checkpoint(), id_.rank};
    const auto found = host_.lab.store.images.find(name);
    const bool there = found != host_.lab.store.images.end();
    if (there) found->second.damaged |= Draws(host_.lab.odds.image_rots);
    const bool damaged = there && (found->second.damaged || (!restore.image_digest().empty() &&
                                                             restore.image_digest() != found->second.digest));
    if (!there || damaged) {
      Observe(task::StartFailed{.error = there ? "pages-1.img: checksum differs" : "there is no such image",
                                .image_damaged = damaged,
                                .outside_problem = !there});
      return Finish();
    }
    image_ = name;
    record_.mutable_report()->set_image_bytes(kMemory);
    DoStart(command);
  });
}

void HostedPod::DoStart(const v1::ToAgent&) {
  host_.containers.Ring(host_.node);
  AwaitMade();
}

// As long as it takes.
void HostedPod::AwaitMade() {
  const auto decided = [this] { return machine_.ended() || machine_.interrupted() || made_; };
  Wait(unsure_ ? std::optional(In(1s)) : std::nullopt, decided, [this, decided] {
    if (unsure_) LookForContainer();
    if (!decided()) return AwaitMade();
    if (machine_.ended() || machine_.interrupted()) return Finish();
    if (made_->ok()) {
      record_.mutable_report()->set_started_us(ToMicros(host_.lab.timeline.Now()));
      Observe(task::Started{});
    } else {
      const bool node_problem = absl::IsUnavailable(*made_);
      Observe(task::StartFailed{.error = std::string(made_->message()),
                                .node_problem = node_problem,
                                .outside_problem = !node_problem});
    }
    Finish();
  });
}

// ---- It is frozen, and thawed. ----

void HostedPod::ThawIfFrozen() {
  if (record_.pod().id().empty()) return;
  if (host_.containers.Running(uid(), record_.pod().id()) != nullptr) host_.containers.Thaw(uid());
  if (record_.frozen()) {
    record_.set_frozen(false);
    Persist();
  }
}

void HostedPod::DoSuspend() {
  Pause(1ms, 200ms, [this] {
    const bool fails = Running() == nullptr || Draws(host_.lab.odds.freeze_fails);
    if (!fails) host_.containers.Freeze(uid());
    if (!machine_.ended()) Observe(task::SuspendEnded{!fails, fails ? "the processes do not freeze" : ""});
    Finish();
  });
}

void HostedPod::DoResume() {
  Pause(1ms, 50ms, [this] {
    const bool fails = Draws(host_.lab.odds.thaw_fails);
    if (!fails) ThawIfFrozen();
    Observe(task::ResumeEnded{fails ? "the processes do not thaw" : ""});
    Finish();
  });
}

// ---- A checkpoint in two phases. ----

ImageName HostedPod::NameOfImage() const { return {"", record_.dump().checkpoint(), id_.rank}; }

bool HostedPod::ImageIsVisible() const {
  return record_.dump().committing() && host_.lab.store.images.contains(NameOfImage());
}

void HostedPod::DoDump(const v1::ToAgent& command) {
  TakePatience(command);
  Pause(1ms, 50ms, [this, command] {
    if (Running() == nullptr) return EndDump(command, "its container does not run at the moment");
    host_.containers.Freeze(uid());
    done_when_frozen_ = Running()->done;
    WriteImage(command);
  });
}

void HostedPod::WriteImage(const v1::ToAgent& command) {
  Lab& lab = host_.lab;
  host_.lab.store.drafts[NameOfImage()] = NodeId(host_.node);
  Duration takes = host_.dump.For(Bytes{kMemory});
  if (Draws(lab.odds.dump_slow)) takes += lab.random.Between(10s, 120s);
  const bool fails = Draws(lab.odds.dump_fails);
  if (fails) takes = takes / 2;
  if (patience_ends_) WakeAt(*patience_ends_);
  const auto stops = [this] { return !WhyStop().empty(); };
  Wait(In(takes), stops, [this, command, fails, stops] {
    if (stops() || fails) return EndDump(command, fails ? "no space left on device" : WhyStop());
    Observe(task::Prepared{kMemory, kMemory, absl::StrFormat("%064x", ++host_.lab.store.digests)});
    const auto decided = [this, stops] { return machine_.decision() == Decision::kCommit || stops(); };
    Wait(patience_ends_, decided, [this, command] {
      if (machine_.decision() != Decision::kCommit) return EndDump(command, WhyStop());
      Commit(command);
    });
  });
}

void HostedPod::Commit(const v1::ToAgent& command) {
  Pause(0ms, 2ms, [this, command] {
    if (!IsFrozen()) return EndDump(command, "somebody has thawed the container");
    Observe(task::Committing{});
    Pause(0ms, 5ms, [this, command] {
      Lab& lab = host_.lab;
      const ImageName name = NameOfImage();
      lab.store.drafts.erase(name);
      lab.store.images[name] = {done_when_frozen_, id_.incarnation, false, record_.dump().image_digest()};
      const Container* const container = host_.containers.Find(uid());
      if (container != nullptr) host_.containers.OnImage(name, container->lineage);
      lab.trace(host_.node, "image ", ToString(name), " of task ", ToString(id_), " is in place, with ",
                ToSeconds(done_when_frozen_), " s");
      lab.on_image(name);
      Pause(0ms, 5ms, [this, command] {
        Observe(task::Committed{});
        if (command.dump().keep_running()) return EndDump(command, "");
        Leave();
      });
    });
  });
}

void HostedPod::EndDump(const v1::ToAgent& command, const std::string& failure) {
  const auto draft = host_.lab.store.drafts.find(NameOfImage());
  if (draft != host_.lab.store.drafts.end() && draft->second.value() == host_.node)
    host_.lab.store.drafts.erase(draft);
  const bool was_frozen = record_.dump().was_frozen();
  if (!was_frozen) ThawIfFrozen();
  if (!failure.empty()) host_.lab.trace(host_.node, "dump ", command.op(), ": ", failure);
  Observe(task::DumpEnded{was_frozen, false, failure});
  Finish();
}

void HostedPod::Leave() {
  record_.mutable_report()->set_leaves(true);
  Persist();
  Send();
  AwaitEnd();
}

// ---- It ends. ----

void HostedPod::AwaitEnd() {
  Wait(
      {}, [this] { return machine_.ended(); }, [this] { Finish(); });
}

void HostedPod::DoKill() {
  ThawIfFrozen();
  Observe(task::KillBegun{});
  AwaitEnd();
}

void HostedPod::Finalize() {
  Pause(0ms, 100ms, [this] {
    if (Running() != nullptr) {
      if (record_.pod().stays()) {
        ThawIfFrozen();
      } else {
        host_.containers.Kill(uid());
      }
    }
    const bool visible = ImageIsVisible() && !record_.pod().stays();
    record_.mutable_report()->set_leaves(false);
    const bool left = visible && !record_.dump().keep_running();
    Observe(task::Ended{exit_ && !left ? &*exit_ : nullptr, visible});
    Finish();
  });
}

// ---- Found again. ----

void HostedPod::Adopt() {
  if (siding::IsOver(machine_.phase()) || machine_.phase() == v1::TASK_PHASE_UNSPECIFIED) return;
  Observe(task::FoundAgain{true, task::FoundAgain::kLives});
}

void HostedPod::DoAdopt() {
  const v1::TaskPhase phase = machine_.phase();
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    unsure_ = !record_.pod().id().empty();
    if (phase == v1::RESTORING && !unsure_)
      made_ = absl::UnavailableError("the agent ended during the restore");
    return DoStart({});
  }
  // CRIU, if it is still there, ends its dump.
  Pause(1ms, 1s, [this, phase] {
    if (phase == v1::DUMPING && !record_.dump().keep_running() && ImageIsVisible()) return Leave();
    bool frozen = false;
    if (phase == v1::DUMPING) {
      frozen = record_.dump().was_frozen();
    } else if (phase == v1::SUSPENDED) {
      frozen = host_.containers.Running(uid(), record_.pod().id()) == nullptr || IsFrozen();
    }
    if (!frozen) ThawIfFrozen();
    Observe(task::AdoptEnded{frozen, ""});
    Finish();
  });
}

// ---- What is said. ----

void HostedPod::Send() {
  v1::FromAgent message;
  record_.mutable_report()->set_version(record_.report().version() + 1);
  *message.mutable_report() = record_.report();
  host_.send(std::move(message));
}

v1::TaskReport HostedPod::Report() {
  v1::TaskReport& report = *record_.mutable_report();
  const bool runs = Running() != nullptr;
  if (runs) report.set_memory(kMemory);
  report.set_cannot_checkpoint(
      !runs && report.phase() == v1::RUNNING ? "its container does not run at the moment" : "");
  return report;
}

bool HostedPod::CanForget() const { return siding::IsOver(machine_.phase()) && !machine_.busy(); }

}  // namespace siding::simulation::pods
