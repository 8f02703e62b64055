// Suspend, resume, save and kill: the files of these names in agent/host.
#include <algorithm>

#include "agent/task/ending.h"
#include "agent/task/orders.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {
constexpr Duration kEndGrace = 10s;
}

void Task::GiveNotice(Duration notice, std::function<void(const std::string&)> then) {
  if (notice <= Duration(0)) return then("");
  const auto called_off = [this] { return decision_ == Decision::kAbort || interrupt_; };
  Wait(
      In(notice), [this, called_off] { return ended_ || called_off(); },
      [this, called_off, then] {
        then(ended_ ? "the task has ended" : called_off() ? "called off before the notice was over" : "");
      });
}

void Task::ThawIfFrozen(bool parked) {
  if (!record_.frozen()) return;
  host_.machine.Thaw(id_, parked);
  record_.set_frozen(false);
  Persist();
}

Task::Step Task::PlanSuspend(const v1::ToAgent& command) {
  const v1::TaskPhase phase = record_.report().phase();
  if (command.has_resume()) {
    if (phase != v1::SUSPENDED) return {};
    return [this] { DoResume(); };
  }
  if (!TakeSuspend(record_, command)) return {};
  Persist();
  if (command.suspend().notice_us() > 0) SetPhase(v1::RUNNING, command.op());
  return [this, command] { DoSuspend(command); };
}

void Task::DoSuspend(const v1::ToAgent& command) {
  GiveNotice(Duration(command.suspend().notice_us()), [this, command](const std::string& failure) {
    if (!failure.empty()) return EndSuspend(command, failure);
    Pause(1ms, 200ms, [this, command] {
      const bool fails = Draws(host_.lab.odds.freeze_fails);
      if (!fails) host_.machine.Freeze(id_, true);
      EndSuspend(command, fails ? "the processes do not freeze" : "");
    });
  });
}

void Task::EndSuspend(const v1::ToAgent& command, const std::string& failure) {
  if (ended_) return Finish();
  if (!failure.empty()) {
    Fail(command.op(), failure);
    record_.set_frozen(false);
  }
  SetPhase(failure.empty() ? v1::SUSPENDED : v1::RUNNING);
  Finish();
}

void Task::DoResume() {
  Pause(1ms, 50ms, [this] {
    if (ended_) return Finish();
    if (Draws(host_.lab.odds.thaw_fails)) {
      Fail(current_.op(), "the processes do not thaw");
      Persist();
      Send();
    } else {
      ThawIfFrozen(false);
      SetPhase(v1::RUNNING);
    }
    Finish();
  });
}

Task::Step Task::PlanSave(const v1::ToAgent& command) {
  if (!TakeSave(record_, command)) return {};
  Persist();
  return [this, command] { DoSave(command); };
}

void Task::DoSave(const v1::ToAgent& command) {
  const v1::Save& save = command.save();
  const Process* process = InMachine();
  const int before = process == nullptr ? 0 : process->saves;
  if (process != nullptr) {
    NoteTold(record_, save);
    Persist();
    if (!Draws(host_.lab.odds.save_fails)) host_.machine.TellToSave(id_);
  }
  const auto marked = [this, before, exits = save.app().marker().empty()] {
    const Process* now = InMachine();
    return !exits && now != nullptr && now->saves > before;
  };
  const auto over = [this, marked] { return ended_ || marked() || interrupt_; };
  const Time end = In(Duration(save.app().grace_us()));
  Wait(end, over, [this, command, marked, end] {
    const bool keep = command.save().keep_running();
    const bool has_marker = marked();
    const bool failed = !ended_ && !has_marker;
    NoteSave(record_, command.save(), has_marker);
    if (failed) {
      Fail(command.op(), interrupt_ ? "the save was interrupted" : "the program did not save itself in time");
    } else {
      record_.set_done_op(command.op());
      if (keep) record_.mutable_report()->set_committed_op(command.op());
    }
    Persist();
    if (!ended_ && (failed || keep)) Send();
    if (!has_marker || keep) return Finish();
    DoKill(std::clamp(end - host_.lab.timeline.Now(), Duration(0), kEndGrace));
  });
}

void Task::DoKill(Duration grace) {
  ThawIfFrozen(InMachine() != nullptr && InMachine()->parked);
  if (InMachine() != nullptr) {
    record_.set_killed(true);
    Persist(true);
  }
  const auto kill = [this] {
    host_.machine.KillAll(id_);
    Pause(1ms, 50ms, [this] { Finish(); });
  };
  if (grace <= Duration(0) || InMachine() == nullptr) return kill();
  host_.machine.Terminate(id_);
  Wait(
      In(grace), [this] { return ended_ || kill_now_; }, [this, kill] { ended_ ? Finish() : kill(); });
}

}  // namespace siding::simulation
