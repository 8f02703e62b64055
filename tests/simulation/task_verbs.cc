// Suspend, resume, save and kill: the files of these names in agent/node.
#include <algorithm>

#include "agent/task/ending.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {
constexpr Duration kEndGrace = 10s;
}

void Task::GiveNotice(Duration notice, std::function<void(const std::string&)> then) {
  if (notice <= Duration(0)) return then("");
  const auto called_off = [this] { return machine_.called_off(); };
  Wait(
      In(notice), [this, called_off] { return machine_.ended() || called_off(); },
      [this, called_off, then] {
        then(machine_.ended() ? "the task has ended"
             : called_off()   ? "called off before the notice was over"
                              : "");
      });
}

void Task::ThawIfFrozen(bool parked) {
  if (!record_.frozen()) return;
  host_.machine.Thaw(id_, parked);
  record_.set_frozen(false);
  Persist();
}

void Task::DoSuspend(const v1::ToAgent& command) {
  GiveNotice(Duration(command.suspend().notice_us()), [this](const std::string& failure) {
    if (!failure.empty()) return EndSuspend(failure);
    Pause(1ms, 200ms, [this] {
      const bool fails = Draws(host_.lab.odds.freeze_fails);
      if (!fails) host_.machine.Freeze(id_, true);
      EndSuspend(fails ? "the processes do not freeze" : "");
    });
  });
}

void Task::EndSuspend(const std::string& failure) {
  Observe(task::SuspendEnded{failure.empty(), failure});
  Finish();
}

void Task::DoResume() {
  Pause(1ms, 50ms, [this] {
    if (machine_.ended()) return Finish();
    const bool fails = Draws(host_.lab.odds.thaw_fails);
    if (!fails) ThawIfFrozen(false);
    Observe(task::ResumeEnded{fails ? "the processes do not thaw" : ""});
    Finish();
  });
}

void Task::DoSave(const v1::ToAgent& command) {
  const v1::Save& save = command.save();
  const Process* process = InMachine();
  const int before = process == nullptr ? 0 : process->saves;
  if (process != nullptr) {
    Observe(task::SaveTold{});
    if (!Draws(host_.lab.odds.save_fails)) host_.machine.TellToSave(id_);
  }
  const auto marked = [this, before, exits = save.app().marker().empty()] {
    const Process* now = InMachine();
    return !exits && now != nullptr && now->saves > before;
  };
  const auto over = [this, marked] { return machine_.ended() || marked() || machine_.interrupted(); };
  const Time end = In(Duration(save.app().grace_us()));
  Wait(end, over, [this, command, marked, end] {
    const bool keep = command.save().keep_running();
    const bool has_marker = marked();
    std::string failure;
    if (!machine_.ended() && !has_marker) {
      failure =
          machine_.interrupted() ? "the save was interrupted" : "the program did not save itself in time";
    }
    Observe(task::SaveEnded{has_marker, failure});
    if (!has_marker || keep) return Finish();
    DoKill(std::clamp(end - host_.lab.timeline.Now(), Duration(0), kEndGrace));
  });
}

void Task::DoKill(Duration grace) {
  ThawIfFrozen(InMachine() != nullptr && InMachine()->parked);
  if (InMachine() != nullptr) Observe(task::KillBegun{});
  const auto kill = [this] {
    host_.machine.KillAll(id_);
    Pause(1ms, 50ms, [this] { Finish(); });
  };
  if (grace <= Duration(0) || InMachine() == nullptr) return kill();
  host_.machine.Terminate(id_);
  Wait(
      In(grace), [this] { return machine_.ended() || machine_.kill_at_once(); },
      [this, kill] { machine_.ended() ? Finish() : kill(); });
}

}  // namespace siding::simulation
