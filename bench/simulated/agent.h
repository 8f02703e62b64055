// The agent of a simulated node: its stream to the controller, which breaks and is opened again.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/simulated/node.h"
#include "common/mutex.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {

// Thread-safe. Uses gRPC's callback interface: a thousand agents cost no threads.
class SimulatedAgent {
 public:
  // `appoint` is called, from any thread, with the next time at which Advance() has something to do.
  SimulatedAgent(std::string socket, SimulatedNodeOptions options, std::function<void(Time)> appoint);
  // Ends the connection and waits for its end.
  ~SimulatedAgent();

  // Dials if it is not connected, sends a due heartbeat, and advances the node's tasks. Does nothing
  // before the time that it appointed.
  void Advance(Time now);
  // The connection breaks; a moment later the agent dials again.
  void Break();

  std::optional<Time> ConnectedSince() const;
  int Tasks() const;
  int64_t heartbeats() const { return heartbeats_; }

 private:
  class Stream;

  // Of a stream, from gRPC's threads.
  void OnCommand(Stream& stream, const v1::ToAgent& command);
  void OnEnd();
  void Dial() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(std::vector<v1::FromAgent> messages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppointNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string socket_, name_;
  const std::function<void(Time)> appoint_;

  mutable Mutex mutex_;
  CondVar over_;
  SimulatedNode node_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  std::optional<Time> dial_at_ ABSL_GUARDED_BY(mutex_) = Time{};  // set: there is no stream, or it is over
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;                   // stream_ is not to be used any more
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Time> connected_since_ ABSL_GUARDED_BY(mutex_);
  Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_){0};  // from the Welcome
  Time next_beat_ ABSL_GUARDED_BY(mutex_);
  Time appointed_ ABSL_GUARDED_BY(mutex_);
  int64_t connections_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<int64_t> heartbeats_{0};
};

}  // namespace siding
