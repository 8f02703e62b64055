// Streams between agents and the controller, as agent/link and controller/gateway hold them: each is ordered
// in both directions and breaks as a whole; what was under way is lost then, and each end learns of it in its
// own time. While a node is cut off nothing gets through; what was sent arrives when it is back, unless the
// connection was given up before.
//
// Odds::message_* go beyond that: single messages are lost or doubled, and reports overtaken by later ones.
// The order of commands is kept: that a launch never comes behind the kill of the same task is what the
// protocol rests on.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "common/ids.h"
#include "siding/v1/agent.pb.h"
#include "tests/simulation/lab.h"

namespace siding::simulation {

// One stream. Each end closes it for itself.
struct Stream {
  NodeId node;
  std::string agent;   // that dialled
  int64_t number = 0;  // of its connections
  bool agent_open = true;
  bool controller_open = true;
  bool broken = false;

  // What the agent's end is told; empty once the agent is dead.
  std::function<void(const v1::ToAgent&)> on_command;
  std::function<void()> on_closed;

  struct Direction {
    Time last;  // the newest message arrives then; none before it
    std::deque<std::function<void()>> held;
  };
  Direction up, down;
};
using StreamPtr = std::shared_ptr<Stream>;

// What the network tells the controller's end.
class StreamServer {
 public:
  virtual ~StreamServer() = default;
  virtual bool IsUp() const = 0;
  virtual void OnMessage(const StreamPtr& stream, const v1::FromAgent& message) = 0;
  virtual void OnClosed(const StreamPtr& stream) = 0;
};

// Not thread-safe.
class Network {
 public:
  explicit Network(Lab& lab) : lab_(lab) {}
  void Attach(StreamServer& server) { server_ = &server; }

  // Null: nobody answers.
  StreamPtr Dial(const NodeId& node, const std::string& agent, int64_t number);
  // `greeting`: it belongs to the stream itself, and never goes astray alone.
  void SendUp(const StreamPtr& stream, v1::FromAgent message, bool greeting = false);
  void SendDown(const StreamPtr& stream, v1::ToAgent command, bool greeting = false);
  // An end goes away: the other learns of it when it can.
  void CloseByAgent(const StreamPtr& stream);
  void CloseByController(const StreamPtr& stream);
  // It is gone, and with it every connection, those that nobody has greeted included.
  void CloseAllByController();

  void Break(const StreamPtr& stream);
  void BreakOneOf(const NodeId& node);
  void CutOff(const NodeId& node) { cut_off_.insert(node); }
  void Reconnect(const NodeId& node);
  bool IsCutOff(const NodeId& node) const { return cut_off_.contains(node); }

 private:
  void Carry(const StreamPtr& stream, Stream::Direction& way, bool greeting, std::function<void()> deliver);
  void Deliver(const StreamPtr& stream, Stream::Direction& way, std::function<void()> deliver);
  void TellAgent(const StreamPtr& stream, Duration most);
  void TellController(const StreamPtr& stream, Duration most);

  Lab& lab_;
  StreamServer* server_ = nullptr;
  std::set<NodeId> cut_off_;
  std::map<NodeId, StreamPtr> newest_;
};

}  // namespace siding::simulation
