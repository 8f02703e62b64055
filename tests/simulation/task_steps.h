// What all simulated tasks have: the agent's own machine (agent/task/machine.h), and steps of its work that
// wait in simulated time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/task/machine.h"
#include "agent/task/task_record.pb.h"
#include "tests/simulation/lab.h"

namespace siding::simulation {

// Not thread-safe. Nothing that it waited for happens once it is destroyed.
class TaskSteps {
 protected:
  using Decision = TaskMachine::Decision;
  using Step = std::function<void()>;

  TaskSteps(Lab& lab, agent::TaskRecord record) : lab_(lab), machine_(std::move(record)) {}

  // Goes on with `then` when `ready`, or at `until` if that is sooner.
  void Wait(std::optional<Time> until, std::function<bool()> ready, Step then);
  void WakeAt(Time when);
  void Pause(Duration least, Duration most, Step then);
  void Notify();
  Time In(Duration delay) const { return lab_.timeline.Now() + delay; }
  bool Draws(double chance) { return lab_.random.Chance(chance); }

  // For how long the dump that is ordered waits for its decision.
  void TakePatience(const v1::ToAgent& dump);
  std::string WhyStop() const;  // empty: the dump goes on

  Lab& lab_;
  TaskMachine machine_;
  agent::TaskRecord& record_ = machine_.record();
  std::optional<Time> patience_ends_;                    // of the dump under way
  std::shared_ptr<int> life_ = std::make_shared<int>();  // whoever waits for this task holds it weakly

 private:
  std::function<bool()> ready_;
  Step then_;
};

}  // namespace siding::simulation
