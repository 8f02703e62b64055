// One life of a node's agent: its tasks (agent/node/local_task_host.cc) and its stream to the controller.
// Destroying it is kill -9.
#pragma once

#include <deque>
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
  // agent/node/image_copies.h: one after another.
  void Copy(const v1::ToAgent& command);
  void CallOffCopy(const ImageName& local);
  void BeginCopy();
  void EndCopy();
  absl::StatusCode CopyNow(const ImageName& local);
  void AnswerCopy(const v1::ToAgent& command, absl::StatusCode code);
  v1::Hello Hello();
  v1::Heartbeat Heartbeat();
  v1::KeptImages Kept();

  Lab& lab_;
  Machine& machine_;
  const AgentOptions options_;
  Host host_;
  std::map<TaskId, std::unique_ptr<Task>> tasks_;
  struct Copying {
    ImageName local;
    v1::ToAgent command;
    Time pauses_until;
    bool is_written = false, called_off = false;
  };
  std::deque<Copying> copies_;  // the first is under way
  Time names_kept_at_;

  AgentStream stream_;  // last: what it still sends is lost
};

}  // namespace siding::simulation
