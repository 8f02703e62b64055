// A checkpoint in two phases: agent/node/task_dump.cc.
#include "absl/strings/str_format.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {

// After the decision to stop, CRIU has so long to come to its next question.
constexpr Duration kUndoPatience = 5s;
constexpr Duration kProgress = 1s;
constexpr Duration kMostStillSaved = 10min;

}  // namespace

ImageName Task::NameOfImage(const v1::ToAgent& command) const {
  return NameImage(command.dump().tier(), host_.machine.node(), command.dump().checkpoint(), id_.rank);
}

void Task::DoDump(const v1::ToAgent& command) {
  TakePatience(command);
  const bool was_frozen = record_.dump().was_frozen();
  const Duration notice = was_frozen ? 0us : Duration(command.dump().notice_us());
  GiveNotice(notice, [this, command, was_frozen](const std::string& failure) {
    if (!failure.empty()) return EndDump(command, failure);
    ThawIfFrozen(was_frozen);
    Pause(1ms, 20ms,
          [this, command] { Meet(v1::BARRIER_STOP, command, [this, command] { Seize(command); }); });
  });
}

bool Task::FinishesBehind(const v1::Dump& dump) const {
  const v1::JobSpec& spec = record_.spec();
  return dump.keep_running() && (dump.together() || spec.nodes() == 1) && spec.per_node().gpus() == 0 &&
         !record_.dump().was_frozen();
}

bool Task::Meets(v1::DumpBarrier barrier, const v1::Dump& dump) const {
  if (barrier == v1::BARRIER_LEAVE) return !dump.keep_running() && dump.leaves_together();
  const bool meets = barrier == v1::BARRIER_HOLD ? record_.report().has_endpoint() : FinishesBehind(dump);
  return meets && dump.together();
}

void Task::Meet(v1::DumpBarrier barrier, const v1::ToAgent& command, Step then) {
  if (!Meets(barrier, command.dump())) return then();
  if (barrier == v1::BARRIER_RUN_ON) Observe(task::Captured{});
  Observe(task::AtBarrier{barrier});
  const auto may_pass = [this, barrier] { return machine_.may_pass() >= barrier; };
  const bool is_saved = barrier == v1::BARRIER_LEAVE;
  Wait(
      is_saved ? In(kMostStillSaved) : patience_ends_,
      [this, may_pass] { return may_pass() || !WhyStop().empty(); },
      [this, command, may_pass, then = std::move(then)] {
        if (may_pass()) return then();
        const std::string why = WhyStop();
        EndDump(command, why.empty() ? "its other ranks could not be saved" : why);
      });
}

void Task::Seize(const v1::ToAgent& command) {
  if (const std::string why = WhyStop(); !why.empty()) return EndDump(command, why);
  host_.machine.Seize(id_);
  image_ = {.incarnation = id_.incarnation, .stopped = host_.lab.timeline.Now()};
  Meet(v1::BARRIER_HOLD, command, [this, command] { WriteImage(command); });
}

void Task::WriteImage(const v1::ToAgent& command) {
  Lab& lab = host_.lab;
  lab.store.drafts[NameOfImage(command)] = host_.machine.node();
  Duration takes = host_.dump.For(Bytes{MemoryOf()});
  if (Draws(lab.odds.dump_slow)) takes += lab.random.Between(30s, 240s);
  const bool is_full = lab.store.IsFull(command.dump().tier(), lab.timeline.Now());
  const bool fails = Draws(lab.odds.dump_fails) || is_full;
  if (fails) takes = takes / 2;
  const Time written = In(takes);
  // How far it is, once, in the middle.
  lab.timeline.After(
      std::max(takes / 2, kProgress), [this, command, takes, life = std::weak_ptr<int>(life_)] {
        if (life.expired() || !machine_.busy() || machine_.current().op() != command.op() ||
            record_.report().phase() != v1::DUMPING)
          return;
        v1::FromAgent message;
        v1::Progress& progress = *message.mutable_progress();
        *progress.mutable_task() = command.task();
        progress.set_op(command.op());
        progress.set_bytes_total(MemoryOf());
        progress.set_bytes_done(MemoryOf() / 2);
        progress.set_bytes_per_second(static_cast<double>(MemoryOf()) / std::max(0.001, ToSeconds(takes)));
        host_.send(std::move(message));
      });
  std::optional<Time> stop_since;
  const auto done = [this, command, stop_since]() mutable {
    if (machine_.ended() || abandon_) return true;
    if (WhyStop().empty()) return false;
    if (!stop_since) {
      stop_since = host_.lab.timeline.Now();
      WakeAt(*stop_since + kUndoPatience);
    }
    return host_.lab.timeline.Now() - *stop_since >= kUndoPatience;
  };
  if (patience_ends_) WakeAt(*patience_ends_);
  Wait(written, done, [this, command, fails, is_full, written] {
    if (const std::string why = WhyStop(); !why.empty()) return EndDump(command, why);
    if (is_full) return EndDump(command, "no space left on device", true);
    if (fails || host_.lab.timeline.Now() < written) return EndDump(command, "criu has failed");
    Meet(v1::BARRIER_RUN_ON, command, [this, command] { LetRun(command); });
  });
}

void Task::LetRun(const v1::ToAgent& command) {
  const Process* process = InMachine();
  if (process == nullptr) return EndDump(command, "the task has ended");
  image_.work = host_.machine.WorkOf(*process);
  if (!FinishesBehind(command.dump())) return AwaitDecision(command);
  image_.let_go = host_.lab.timeline.Now();
  host_.machine.Release(id_);
  Observe(task::RunsOn{image_.let_go - image_.stopped});
  // It is sealed.
  Pause(1ms, 2s, [this, command] {
    if (const std::string why = WhyStop(); !why.empty()) return EndDump(command, why);
    AwaitDecision(command);
  });
}

void Task::AwaitDecision(const v1::ToAgent& command) {
  // No other image has it, not even one of the same name.
  Observe(task::Prepared{MemoryOf(), MemoryOf(), absl::StrFormat("%064x", ++host_.lab.store.digests)});
  const auto decided = [this, command] {
    return machine_.decision() == Decision::kCommit || !WhyStop().empty();
  };
  Wait(patience_ends_, decided, [this, command] {
    if (machine_.decision() != Decision::kCommit) return EndDump(command, WhyStop());
    Pause(0ms, 2ms, [this, command] { CommitImage(command); });
  });
}

void Task::CommitImage(const v1::ToAgent& command) {
  Observe(task::Committing{});
  Pause(0ms, 5ms, [this, command] {
    if (InMachine() == nullptr) return EndDump(command, "the task has ended");
    Lab& lab = host_.lab;
    const ImageName name = NameOfImage(command);
    lab.store.drafts.erase(name);
    image_.digest = record_.dump().image_digest();
    image_.refused = Draws(lab.odds.image_refused);
    if (!record_.report().runs_on()) image_.let_go = lab.timeline.Now();
    lab.store.images[name] = image_;
    lab.trace(host_.machine.node().value(), "image ", ToString(name), " is in place");
    lab.on_image(name);
    Pause(0ms, 5ms, [this, command] {
      Observe(task::Committed{});
      Meet(v1::BARRIER_LEAVE, command,
           [this, command] { Pause(0ms, 5ms, [this, command] { Leave(command); }); });
    });
  });
}

void Task::Leave(const v1::ToAgent& command) {
  if (command.dump().keep_running()) return EndDump(command, "");
  host_.machine.EndDumped(id_);
  Wait(
      In(30s), [this] { return machine_.ended(); },
      [this, command] {
        if (!machine_.ended()) return EndDump(command, "the processes did not end after the checkpoint");
        Finish();
      });
}

void Task::EndDump(const v1::ToAgent& command, const std::string& failure, bool tier_problem) {
  const ImageName name = NameOfImage(command);
  if (const auto draft = host_.lab.store.drafts.find(name);
      draft != host_.lab.store.drafts.end() && draft->second == host_.machine.node())
    host_.lab.store.drafts.erase(draft);
  const bool was_frozen = record_.dump().was_frozen();
  const bool cut_short = abandon_ && !record_.report().runs_on();
  if (was_frozen) {
    record_.set_frozen(true);
    host_.machine.Freeze(id_, true);
  }
  host_.machine.Release(id_);
  Observe(task::DumpEnded{was_frozen, cut_short, failure, tier_problem});
  Finish();
}

}  // namespace siding::simulation
