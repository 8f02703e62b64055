// One life of a node's agent: its tasks (agent/node/local_task_host.cc) and its stream to the controller.
// Destroying it is kill -9.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/simulation/agent_stream.h"
#include "tests/simulation/task.h"

namespace siding::simulation {

struct AgentOptions {
  std::string name;  // drawn by each agent when it starts
  Rate dump;
  Rate restore;
  Duration heartbeat{0};
};

// Not thread-safe.
class Agent {
 public:
  // Sweeps the drafts of the one before, finds its tasks, and dials.
  Agent(Lab& lab, Machine& machine, Network& network, AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void Hang(bool deaf) { stream_.Hang(deaf); }
  void GoOn() { stream_.GoOn(); }

 private:
  void Execute(const v1::ToAgent& command);
  void Forget(const v1::ToAgent& command);
  void Answer(const v1::ToAgent& command);  // Verify and Delete
  v1::Hello Hello();
  v1::Heartbeat Heartbeat();

  Lab& lab_;
  Machine& machine_;
  const AgentOptions options_;
  Host host_;
  std::map<TaskId, std::unique_ptr<Task>> tasks_;

  AgentStream stream_;  // last: what it still sends is lost
};

}  // namespace siding::simulation
