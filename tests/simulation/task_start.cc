// Launch, restore, and a task that is found again: agent/node/task_start.cc and task_adopt.cc.
#include "agent/task/ending.h"
#include "controller/wire/wire.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

using namespace std::chrono_literals;

// True: nothing starts on this node.
bool Task::FailsByNode() {
  if (host_.machine.fault.empty()) return false;
  Observe(task::StartFailed{.error = host_.machine.fault, .node_problem = true});
  Finish();
  return true;
}

void Task::DoLaunch(const v1::ToAgent& command) {
  if (FailsByNode()) return;
  const v1::JobSpec& spec = command.launch().spec();
  Lab& lab = host_.lab;
  Machine::Start start{ProgramOf(lab.programs, spec.command(1)), FromProto(spec.per_node())};
  const auto saved = lab.store.own_saves.find({id_.job, id_.rank});
  if (command.launch().restart_after_save() && saved != lab.store.own_saves.end()) start.from = saved->second;
  start.alone = spec.keep_connections();
  start.takes = lab.random.Between(1ms, 300ms);
  if (Draws(lab.odds.launch_fails)) start.fails_with = "the command could not be started";
  host_.machine.StartShim(id_, start);
  AwaitStart();
}

void Task::DoRestore(const v1::ToAgent& command) {
  if (FailsByNode()) return;
  Lab& lab = host_.lab;
  const v1::Restore& restore = command.restore();
  const ImageName name = NameImage(restore.tier(), host_.machine.node(), restore.checkpoint(), id_.rank);
  const auto fail = [this](const std::string& why, bool damaged) {
    Observe(task::StartFailed{.error = why, .image_damaged = damaged, .outside_problem = !damaged});
    Finish();
  };
  const auto found = lab.store.images.find(name);
  if (found == lab.store.images.end()) return fail("there is no image " + ToString(name), false);
  found->second.damaged |= Draws(lab.odds.image_rots);
  if (found->second.damaged) return fail("pages-1.img: checksum differs", true);
  if (!restore.image_digest().empty() && restore.image_digest() != found->second.digest)
    return fail("the image has been replaced", true);
  const v1::JobSpec& spec = restore.spec();
  Machine::Start start{ProgramOf(lab.programs, spec.command(1)), FromProto(spec.per_node())};
  start.from = found->second.work;
  start.alone = start.restores = spec.keep_connections();
  record_.mutable_report()->set_image_bytes(start.program.memory.value);
  start.takes = host_.restore.For(start.program.memory);
  if (Draws(lab.odds.restore_fails)) start.fails_with = "criu: a pid is in use";
  if (found->second.refused) {
    start.fails_with = "criu: Can't restore mapping";
    start.refused = true;
  }
  if (lab.timeline.Now() < lab.files_away_until) {
    start.fails_with = "file /data/log has vanished since the checkpoint";
    start.fails_outside = true;
    start.refused = false;
  }
  host_.machine.StartShim(id_, start);
  AwaitStart();
}

// False: it is known, or there is none.
bool Task::NoteNetwork(int number) {
  if (!record_.spec().keep_connections() || record_.report().has_endpoint()) return false;
  v1::GangEndpoint& endpoint = *record_.mutable_report()->mutable_endpoint();
  endpoint.set_rank(id_.rank);
  endpoint.set_address(host_.machine.node().value());
  endpoint.set_vni(number);
  Persist();
  return true;
}

void Task::AwaitStart() {
  const auto decided = [this] {
    if (Folder().running || Folder().failed || machine_.ended()) return true;
    if (Folder().restored > 0 && NoteNetwork(Folder().restored)) Send();
    if (machine_.interrupted()) host_.machine.KillAll(id_);
    return Folder().failed.has_value();
  };
  Wait({}, decided, [this] {
    if (const auto& running = Folder().running) {
      *record_.mutable_init() = running->init();
      record_.mutable_report()->set_started_us(running->started_us());
      NoteNetwork(running->init().pid());
      Observe(task::Started{});
    } else if (const auto& failed = Folder().failed) {
      Observe(task::StartFailed{.error = failed->message(),
                                .outside_problem = failed->outside_problem(),
                                .image_refused = failed->image_refused()});
    } else {
      host_.machine.KillAll(id_);  // what it has left
      Observe(task::StartFailed{.error = "siding-shim ended without a word"});
    }
    Finish();
  });
}

void Task::Adopt() {
  using Shim = task::FoundAgain;
  const bool same_boot = record_.boot_id() == std::to_string(host_.machine.boot());
  Observe(task::FoundAgain{same_boot, host_.machine.HasShim(id_) ? Shim::kLives : Shim::kGone});
}

void Task::DoAdopt() {
  const v1::TaskPhase phase = machine_.phase();
  if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
    const bool word = Folder().running || Folder().failed;
    if (machine_.ended() && !word) return Finish();
    return AwaitStart();
  }
  if (machine_.ended()) return Finish();
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
    Observe(task::AdoptEnded{is_frozen || was_frozen, ""});
    Finish();
  });
}

}  // namespace siding::simulation
