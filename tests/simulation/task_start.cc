// Launch, restore, and a task that is found again: agent/host/task_start.cc and task_adopt.cc.
#include "agent/task/ending.h"
#include "controller/wire/wire.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

using namespace std::chrono_literals;

void Task::DoLaunch(const v1::ToAgent& command) {
  const v1::JobSpec& spec = command.launch().spec();
  Lab& lab = host_.lab;
  Machine::Start start{ProgramOf(lab.programs, spec.command(1)), FromProto(spec.per_node())};
  const auto saved = lab.store.own_saves.find({id_.job, id_.rank});
  if (command.launch().restart_after_save() && saved != lab.store.own_saves.end()) start.from = saved->second;
  start.takes = lab.random.Between(1ms, 300ms);
  if (Draws(lab.odds.launch_fails)) start.fails_with = "the command could not be started";
  host_.machine.StartShim(id_, start);
  AwaitStart(v1::LAUNCH_FAILED);
}

void Task::DoRestore(const v1::ToAgent& command) {
  Lab& lab = host_.lab;
  const v1::Restore& restore = command.restore();
  const ImageName name = NameImage(restore.tier(), host_.machine.node(), restore.checkpoint(), id_.rank);
  const auto fail = [this](const std::string& why, bool damaged) {
    record_.mutable_report()->set_error(why);
    record_.mutable_report()->set_image_damaged(damaged);
    record_.mutable_report()->set_outside_problem(!damaged);
    SetPhase(v1::RESTORE_FAILED);
    Finish();
  };
  const auto found = lab.store.images.find(name);
  if (found == lab.store.images.end()) return fail("there is no image " + ToString(name), false);
  found->second.damaged |= Draws(lab.odds.image_rots);
  if (found->second.damaged) return fail("pages-1.img: checksum differs", true);
  const v1::JobSpec& spec = restore.spec();
  Machine::Start start{ProgramOf(lab.programs, spec.command(1)), FromProto(spec.per_node())};
  start.from = found->second.work;
  record_.mutable_report()->set_image_bytes(start.program.memory.value);
  start.takes = host_.restore.For(start.program.memory);
  if (Draws(lab.odds.restore_fails)) start.fails_with = "criu: a pid is in use";
  if (lab.timeline.Now() < lab.files_away_until) {
    start.fails_with = "file /data/log has vanished since the checkpoint";
    start.fails_outside = true;
  }
  host_.machine.StartShim(id_, start);
  AwaitStart(v1::RESTORE_FAILED);
}

void Task::AwaitStart(v1::TaskPhase failed) {
  const auto decided = [this] {
    if (Folder().running || Folder().failed || ended_) return true;
    if (interrupt_) host_.machine.KillAll(id_);
    return Folder().failed.has_value();
  };
  Wait({}, decided, [this, failed] {
    v1::TaskReport& report = *record_.mutable_report();
    if (const auto& running = Folder().running) {
      *record_.mutable_init() = running->init();
      report.set_started_us(running->started_us());
      SetPhase(v1::RUNNING);
    } else {
      report.set_error(Folder().failed ? Folder().failed->message() : "siding-shim ended without a word");
      report.set_outside_problem(Folder().failed && Folder().failed->outside_problem());
      SetPhase(failed);
    }
    Finish();
  });
}

void Task::Adopt() {
  const v1::TaskPhase phase = record_.report().phase();
  if (IsOver(phase)) return;
  if (record_.boot_id() != std::to_string(host_.machine.boot()) || phase == v1::TASK_PHASE_UNSPECIFIED) {
    record_.clear_init();
    if (phase == v1::TASK_PHASE_UNSPECIFIED) record_.mutable_report()->set_phase(v1::LAUNCHING);
    return Conclude();
  }
  if (phase == v1::PREPARED) record_.mutable_report()->set_phase(v1::DUMPING);
  ended_ = !host_.machine.HasShim(id_);
  Begin({}, [this] { DoAdopt(); });
}

void Task::DoAdopt() {
  const v1::TaskPhase phase = record_.report().phase();
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    const bool word = Folder().running || Folder().failed;
    if (ended_ && !word) return Finish();
    return AwaitStart(phase == v1::LAUNCHING ? v1::LAUNCH_FAILED : v1::RESTORE_FAILED);
  }
  if (ended_) return Finish();
  // CRIU finds that nobody answers and undoes the dump; or it was answered, and ends the processes.
  const auto let_go = [this] {
    const Process* process = InMachine();
    return process == nullptr || (!process->seized && !process->dumped);
  };
  Wait({}, let_go, [this, phase] {
    if (InMachine() == nullptr) return Finish();
    const bool was_frozen = phase == v1::DUMPING && record_.dump().was_frozen();
    const bool is_frozen = record_.frozen() && phase == v1::SUSPENDED && InMachine()->frozen;
    if (!is_frozen) ThawIfFrozen(was_frozen);
    if (was_frozen) {
      record_.set_frozen(true);
      host_.machine.Freeze(id_, true);
    }
    record_.mutable_dump()->set_committing(false);
    if (!EndsBySaving(record_.spec().app())) record_.set_saving(false);
    if (phase == v1::DUMPING) {
      Fail(record_.dump().op(), "the agent ended during the checkpoint");
      record_.mutable_report()->clear_checkpoint();
      record_.mutable_report()->clear_image_bytes();
    }
    SetPhase(is_frozen || was_frozen ? v1::SUSPENDED : v1::RUNNING);
    Finish();
  });
}

}  // namespace siding::simulation
