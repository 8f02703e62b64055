// The agents' end of the controller: one stream per node, messages up to the engine, commands down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "controller/engine/engine.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {

// What the gateway tells about agents; the engine, or a test. Thread-safe.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;
  virtual absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) = 0;
  virtual void OnMessage(const NodeId& node, const v1::FromAgent& message) = 0;
  virtual void OnDisconnected(const NodeId& node) = 0;
};

// Thread-safe. Uses gRPC's callback interface: a thousand idle agents cost no threads.
class Gateway final : public AgentLink, public v1::AgentGateway::CallbackService {
 public:
  // `may_serve`: whether the peer (ServerContext::peer()) may be an agent; an error is its refusal.
  Gateway(Duration heartbeat_interval, std::function<absl::Status(const std::string& peer)> may_serve);
  ~Gateway() override;
  // Once, before the server starts. `events` must outlive the server.
  void Attach(AgentEvents& events) { events_ = &events; }

  void Send(const NodeId& node, v1::ToAgent command) override;
  grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* Connect(grpc::CallbackServerContext* context) override;
  // Ends all streams, so that the server can shut down.
  void CloseAll();

 private:
  class Stream;

  const Duration heartbeat_interval_;
  const std::function<absl::Status(const std::string&)> may_serve_;
  AgentEvents* events_ = nullptr;

  std::mutex mutex_;
  std::map<NodeId, Stream*> streams_;  // guarded by mutex_; a stream takes itself out before it is deleted
};

}  // namespace siding
