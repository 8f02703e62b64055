#include "tests/simulation/task_steps.h"

#include <utility>

namespace siding::simulation {

void TaskSteps::Wait(std::optional<Time> until, std::function<bool()> ready, Step then) {
  ready_ = [this, until, ready = std::move(ready)] {
    return (until && lab_.timeline.Now() >= *until) || (ready && ready());
  };
  then_ = std::move(then);
  if (until) WakeAt(*until);
  Notify();
}

void TaskSteps::WakeAt(Time when) {
  lab_.timeline.At(when, [this, life = std::weak_ptr<int>(life_)] {
    if (!life.expired()) Notify();
  });
}

void TaskSteps::Pause(Duration least, Duration most, Step then) {
  Wait(In(lab_.random.Between(least, most)), {}, std::move(then));
}

void TaskSteps::Notify() {
  if (!ready_ || !ready_()) return;
  ready_ = nullptr;
  const Step then = std::exchange(then_, nullptr);
  then();
}

void TaskSteps::TakePatience(const v1::ToAgent& dump) {
  patience_ends_.reset();
  if (dump.dump().patience_us() > 0) patience_ends_ = In(Duration(dump.dump().patience_us()));
}

std::string TaskSteps::WhyStop() const {
  if (machine_.decision() == Decision::kAbort) return "the checkpoint was called off";
  if (machine_.ended()) return "the task has ended";
  if (machine_.interrupted()) return "the checkpoint was interrupted";
  if (machine_.decision() != Decision::kCommit && patience_ends_ && lab_.timeline.Now() >= *patience_ends_)
    return "the checkpoint was not committed in time";
  return "";
}

}  // namespace siding::simulation
