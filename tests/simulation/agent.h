// One life of a node's agent: its tasks (agent/node/local_task_host.cc) and its stream to the controller
// (agent/link/link.cc). Destroying it is kill -9.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/simulation/network.h"
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

  // It says nothing any more, while its connection lives and its tasks go on. `deaf`: it does nothing of what
  // it is told either.
  void Hang(bool deaf);
  // It says and does all that has waited.
  void GoOn();

 private:
  // ---- Tasks. ----
  void Execute(const v1::ToAgent& command);
  void Forget(const v1::ToAgent& command);
  void SendUnknown(const v1::ToAgent& command);
  void Answer(const v1::ToAgent& command);  // Verify and Delete
  v1::FromAgent Hello();
  v1::FromAgent Heartbeat();

  // ---- The stream. ----
  void Dial();
  void DialAgain();
  void OnCommand(const v1::ToAgent& command);
  void Send(v1::FromAgent message);
  void Write();
  void After(Duration delay, std::function<void()> what);

  Lab& lab_;
  Machine& machine_;
  Network& network_;
  const AgentOptions options_;
  Host host_;
  std::map<TaskId, std::unique_ptr<Task>> tasks_;

  StreamPtr stream_;
  bool welcomed_ = false;
  bool writing_ = false;  // the writer is at work, or will be in a moment
  bool hangs_ = false, deaf_ = false;
  bool dials_later_ = false;         // when it goes on
  std::deque<v1::ToAgent> unheard_;  // of this connection
  int64_t connections_ = 0;
  int failures_ = 0;
  Time next_heartbeat_;
  std::deque<v1::FromAgent> outgoing_;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace siding::simulation
