// The controller: the real engine and platform, behind a gateway that does what controller/gateway does. It
// dies and is started again from its journal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/engine/engine.h"
#include "tests/simulation/journal_disk.h"
#include "tests/simulation/network.h"

namespace siding::simulation {

// Not thread-safe.
class Controller final : public StreamServer, public AgentLink {
 public:
  Controller(Lab& lab, Network& network, Policy policy);
  ~Controller() override;

  void Start();
  void Crash();  // it is started again a while later
  // Stops it for so long, and does something meanwhile.
  void StopFor(Duration time, const std::function<void()>& meanwhile);
  // Calls it as its API would. False if it is not there to be called.
  bool Call(const std::function<void(Engine&)>& call);
  // Before an order to start a task goes out.
  std::function<void(const TaskId&)> on_start_order = [](const TaskId&) {};
  JournalDisk& journal() { return journal_; }
  bool IsConnected(const NodeId& node) const { return serving_.contains(node); }
  // A node without heartbeats for so long is silent.
  void SetSilence(Duration after) { silent_after_ = after; }
  // Nothing has come that says what the node is like for so long that the controller must have noticed.
  bool IsSilent(const NodeId& node) const;
  // The engine's state must be what its journal says.
  void CompareWithJournal();

  bool IsUp() const override { return engine_ != nullptr; }
  void OnMessage(const StreamPtr& stream, const v1::FromAgent& message) override;
  void OnClosed(const StreamPtr& stream) override;
  void Send(const NodeId& node, v1::ToAgent command) override;

 private:
  void Greet(const StreamPtr& stream, const v1::Hello& hello);
  void Leave(const StreamPtr& stream);
  void Tick();
  void Restart(Duration after);
  void Stop();
  void StartAfter(Duration time);
  void Inside(const std::function<void(Engine&)>& call);

  Lab& lab_;
  Network& network_;
  const Policy policy_;
  JournalDisk journal_;
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  std::unique_ptr<Engine> engine_;
  std::map<NodeId, StreamPtr> serving_;
  bool doomed_ = false;   // dies at the end of the call that is under way, and sends nothing more
  bool damaged_ = false;  // its journal has failed: it does nothing any more
  int life_ = 0;
  Duration silent_after_{0};
  std::map<NodeId, Time> heard_;  // the last Hello or heartbeat
  Time looked_;                   // whether what the engine keeps is consistent
};

}  // namespace siding::simulation
