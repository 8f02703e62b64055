// The agents' end of the controller: one stream per node, messages up to the engine, commands down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/limited_log.h"
#include "common/mutex.h"
#include "controller/engine/engine.h"
#include "controller/gateway/node_pace.h"
#include "controller/identity/identity.h"
#include "controller/platform/agents.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {

struct GatewayOptions {
  Duration heartbeat_interval = std::chrono::seconds(5);
  // An agent that leaves so many commands unread is cut off. The engine sends what matters again when it is
  // back.
  size_t most_waiting = 10'000;
  // In which a stream must have said its Hello.
  Duration hello_within = std::chrono::seconds(10);
  int64_t epoch = 0;    // of this controller: agents that have met a later one refuse it
  int64_t cluster = 0;  // Journal::cluster()
  // By which it is told how fast a node sends.
  std::function<NodePace::Clock::time_point()> now = NodePace::Clock::now;
};

// Thread-safe. Uses gRPC's callback interface: a thousand idle agents cost no threads.
//
// An agent speaks for the node that its identity names, or for any if it names none.
//
// A node has one agent: another one with its name is refused as long as the first is connected. Only a later
// connection of the same agent takes the place of an earlier one, whose end may not have been seen yet.
//
// A node that sends more than any agent does is read more slowly, and is refused if it dials too often
// (node_pace.h): what it says costs the others nothing.
class Gateway final : public AgentLink, public v1::AgentGateway::CallbackService {
 public:
  // `identities` must outlive it.
  Gateway(GatewayOptions options, const Identities& identities);
  ~Gateway() override;
  // Once, before the server starts. `events` must outlive the server.
  void Attach(AgentEvents& events) { events_ = &events; }

  void Send(const NodeId& node, v1::ToAgent command) override;
  grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* Connect(grpc::CallbackServerContext* context) override;
  // To be called often: cuts off those whose certificates have been revoked.
  void DropRevoked();
  // Ends all streams, so that the server can shut down.
  void CloseAll();

 private:
  class Stream;

  // nullptr: none.
  Stream* Find(const NodeId& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(changes_);
  // nullptr: none from now on.
  void Register(const NodeId& node, Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(changes_);

  // What has come of a node; how long to wait before more of it is read.
  NodePace::Clock::duration Take(const NodeId& node, size_t bytes);
  // kResourceExhausted: it has said Hello too often of late.
  absl::Status TakeHello(const NodeId& node, size_t bytes);
  // Of streams that have not said Hello. kResourceExhausted: their node has too many.
  absl::Status Enter(const AgentIdentity& identity);
  void Leave(const AgentIdentity& identity);

  const GatewayOptions options_;
  const Identities& identities_;
  AgentEvents* events_ = nullptr;
  int64_t identities_version_ = 0;  // DropRevoked()'s

  // Held while the engine is told of a coming or a going, so that it hears of them in their order. Taken
  // first.
  Mutex changes_;
  // A stream in the map lives; it takes itself out, with both mutexes held, before it is deleted.
  Mutex mutex_;
  std::map<NodeId, Stream*> streams_ ABSL_GUARDED_BY(mutex_);

  LimitedLog log_;

  Mutex pace_mutex_;                                               // nothing else is locked with it held
  std::map<NodeId, NodePace> paces_ ABSL_GUARDED_BY(pace_mutex_);  // of a node, whichever its stream
  // Streams without a Hello, by whose they are.
  std::map<std::string, int> silent_ ABSL_GUARDED_BY(pace_mutex_);
};

}  // namespace siding
