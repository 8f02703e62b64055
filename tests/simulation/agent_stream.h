// An agent's stream to the controller (agent/link/link.cc): dials, and dials again; what is to be said waits
// for its turn, and heartbeats are written between it. Destroying it is the end of its agent.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "tests/simulation/network.h"

namespace siding::simulation {

// Not thread-safe.
class AgentStream {
 public:
  struct Agent {
    NodeId node;
    std::string name;  // drawn by each agent when it starts
    Duration heartbeat{0};
    std::function<v1::Hello()> hello;
    std::function<v1::Heartbeat()> measure;
    std::function<void(const v1::ToAgent&)> execute;
  };
  AgentStream(Lab& lab, Network& network, Agent agent)
      : lab_(lab), network_(network), agent_(std::move(agent)) {}
  ~AgentStream();
  AgentStream(const AgentStream&) = delete;
  AgentStream& operator=(const AgentStream&) = delete;

  void Dial();
  void Send(v1::FromAgent message);
  // There is no task that this is for.
  void SendUnknown(const v1::ToAgent& command);
  // It says nothing any more, while its connection lives and its tasks go on. `deaf`: it does nothing of what
  // it is told either.
  void Hang(bool deaf);
  // It says and does all that has waited.
  void GoOn();
  // As long as the agent lives.
  void After(Duration delay, std::function<void()> what);

 private:
  void DialAgain();
  void OnCommand(const v1::ToAgent& command);
  void Write();

  Lab& lab_;
  Network& network_;
  const Agent agent_;
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
