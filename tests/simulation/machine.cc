#include "tests/simulation/machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace siding::simulation {

using namespace std::chrono_literals;

void Machine::After(Duration delay, std::function<void()> what) {
  lab_.timeline.After(delay, [this, boot = boot_, what = std::move(what)] {
    if (boot == boot_) what();
  });
}

void Machine::Tell(const TaskId& id) {
  After(0us, [this, id] {
    if (watcher) watcher(id);
  });
}

void Machine::StartShim(const TaskId& id, const Start& start) {
  const int number = ++shims_started_;
  shims_[id] = {false, number};
  After(start.takes, [this, id, number, start] {
    const auto shim = shims_.find(id);
    if (shim == shims_.end() || shim->second.number != number || shim->second.gave_word) return;
    shim->second.gave_word = true;
    TaskFolder& folder = folders[id];
    if (start.fails_with) {
      folder.failed.emplace().set_message(*start.fails_with);
      folder.failed->set_outside_problem(start.fails_outside);
      folder.failed->set_image_refused(start.refused);
      shims_.erase(shim);
      Tell(id);
      return;
    }
    start.alone&& start.restores ? void(folder.restored = number) : Run(folder, number);
    const bool fails = start.program.fails_at_rank == id.rank;
    Process& process = processes_[id] = {start.program, id.rank,
                                         fails ? start.program.work / 2 : start.program.work, start.from};
    process.uses = start.uses;
    process.alone = start.alone;
    if (start.alone) lab_.networks[{node_.value(), number}] = id;
    process.total = std::max(process.total, process.work);
    lab_.trace(node_.value(), "task ", ToString(id), folder.running ? " runs from " : " waits for others at ",
               FormatDuration(start.from));
    GoOn(id, process);
    Tell(id);
  });
}

void Machine::Run(TaskFolder& folder, int number) {
  const Duration off = lab_.random.Chance(lab_.odds.clock_off) ? lab_.random.Between(-3h, 3h) : 0us;
  folder.running.emplace().set_started_us(ToMicros(lab_.timeline.Now() + off));
  folder.running->mutable_init()->set_pid(number);
}

Process* Machine::Find(const TaskId& id) {
  const auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : &found->second;
}

Duration Machine::WorkOf(const Process& process) const {
  return process.Runs() ? process.work + (lab_.timeline.Now() - process.since) : process.work;
}

void Machine::CountWork(Process& process) {
  process.work = WorkOf(process);
  process.since = lab_.timeline.Now();
  ++process.change;
}

void Machine::GoOn(const TaskId& id, Process& process) {
  process.since = lab_.timeline.Now();
  ++process.change;
  if (!process.Runs()) return;
  After(process.total - process.work, [this, id, change = process.change] {
    const Process* process = Find(id);
    if (process == nullptr || process->change != change) return;
    const bool fails = process->program.fails_at_rank == process->rank;
    if (!fails) lab_.finished[{id.job, id.rank}].insert(id.incarnation);
    End(id, fails ? 1 : 0, 0);
  });
  lab_.on_running();
}

void Machine::End(const TaskId& id, int code, int signal) {
  Process* process = Find(id);
  if (process == nullptr) return;
  lab_.trace(node_.value(), "task ", ToString(id), " ends after ", FormatDuration(WorkOf(*process)),
             signal != 0 ? " by signal " : " with ", signal != 0 ? signal : code);
  processes_.erase(id);
  if (shims_.erase(id) == 0) return;
  agent::ShimExit& exit = folders[id].exit.emplace();
  exit.set_code(code);
  exit.set_signal(signal);
  Tell(id);
}

void Machine::KillAll(const TaskId& id) {
  if (Find(id) != nullptr) return End(id, 0, SIGKILL);
  const auto shim = shims_.find(id);
  if (shim == shims_.end() || shim->second.gave_word) return;
  shims_.erase(shim);
  folders[id].failed.emplace().set_message("it was killed before it ran");
  Tell(id);
}

void Machine::Terminate(const TaskId& id) {
  Process* process = Find(id);
  if (process == nullptr || !process->program.heeds_sigterm) return;
  CountWork(*process);
  GoOn(id, *process);
  After(lab_.random.Between(1ms, 500ms), [this, id] {
    if (const Process* later = Find(id); later != nullptr && later->Runs()) End(id, 0, SIGTERM);
  });
}

void Machine::TellToSave(const TaskId& id) {
  const Process* process = Find(id);
  if (process == nullptr) return;
  After(process->program.save_takes, [this, id] {
    Process* process = Find(id);
    if (process == nullptr || !process->Runs()) return;
    lab_.store.own_saves[{id.job, id.rank}] = WorkOf(*process);
    ++process->saves;
    lab_.trace(node_.value(), "task ", ToString(id), " has saved itself at ",
               FormatDuration(WorkOf(*process)));
    if (process->program.exits_after_save) return End(id, 0, 0);
    Tell(id);
  });
}

void Machine::Freeze(const TaskId& id, bool parked) {
  if (Process* process = Find(id)) {
    CountWork(*process);
    process->frozen = true;
    process->parked |= parked;
  }
}

void Machine::Thaw(const TaskId& id, bool parked) {
  if (Process* process = Find(id)) {
    CountWork(*process);
    process->frozen = false;
    process->parked = parked;
    GoOn(id, *process);
  }
}

void Machine::Seize(const TaskId& id) {
  if (Process* process = Find(id)) {
    CountWork(*process);
    process->seized = true;
  }
}

void Machine::Release(const TaskId& id) {
  if (Process* process = Find(id); process != nullptr && process->seized) {
    process->seized = false;
    GoOn(id, *process);
  }
}

void Machine::Join(const TaskId& id) {
  if (Process* process = Find(id); process != nullptr && process->alone) {
    process->alone = false;
    if (TaskFolder& folder = folders[id]; !folder.running) {
      Run(folder, folder.restored);
      Tell(id);
    }
    GoOn(id, *process);
  }
}

void Machine::EndDumped(const TaskId& id) {
  if (Process* process = Find(id)) process->dumped = true;
  After(lab_.random.Between(1ms, 200ms), [this, id] { End(id, 0, SIGKILL); });
}

void Machine::OnAgentDeath() {
  watcher = nullptr;
  for (const auto& [id, process] : processes_) {
    if (!process.seized || process.dumped) continue;
    After(lab_.random.Between(1ms, 2s), [this, id = id] { Release(id); });
  }
}

void Machine::KillShim(const TaskId& id) {
  if (shims_.erase(id) > 0) Tell(id);
}

void Machine::CutPower() {
  ++boot_;
  watcher = nullptr;
  shims_.clear();
  processes_.clear();
  // What was not written through may be there, or may not.
  for (auto it = folders.begin(); it != folders.end();) {
    TaskFolder& folder = it->second;
    const bool kept = !lab_.random.Chance(0.3);
    if (!kept && !folder.durable) {
      it = folders.erase(it);
      continue;
    }
    if (!kept) {
      folder.record = *folder.durable;
      if (lab_.random.Chance(0.5)) folder.exit.reset();
    }
    ++it;
  }
}

}  // namespace siding::simulation
