#include "controller/gateway/gateway.h"

#include <deque>

#include "common/logging.h"
#include "controller/wire/grpc_status.h"

namespace siding {
// Deletes itself when gRPC is done with it.
class Gateway::Stream final : public grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent> {
 public:
  Stream(Gateway& gateway, const std::string& peer) : gateway_(gateway) {
    if (absl::Status allowed = gateway_.may_serve_(peer); !allowed.ok()) {
      spdlog::warn("agent refused: {}", std::string(allowed.message()));
      End(ToGrpc(allowed));
      return;
    }
    StartRead(&incoming_);
  }

  // Queued; one write is under way at a time, as gRPC demands, and none before the Welcome.
  void Send(v1::ToAgent command) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    outgoing_.push_back(std::move(command));
    if (welcomed_ && outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void End(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    Finish(status);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(grpc::Status::OK);
      return;
    }
    if (node_) {
      gateway_.events_->OnMessage(*node_, incoming_);
    } else if (absl::Status status = Greet(); !status.ok()) {
      spdlog::warn("agent refused: {}", std::string(status.message()));
      End(ToGrpc(status));
      return;
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    outgoing_.pop_front();
    if (ok && !ended_ && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    if (node_) {
      // The name is free again only when the engine knows that this agent is gone.
      if (announced_) gateway_.events_->OnDisconnected(*node_);
      {
        std::lock_guard lock(gateway_.mutex_);
        gateway_.streams_.erase(*node_);
      }
      spdlog::info("agent of node {} is gone", node_->value());
    }
    delete this;
  }

 private:
  absl::Status Greet() {
    if (!incoming_.has_hello() || incoming_.hello().node().empty()) {
      return absl::InvalidArgumentError("the first message of an agent must be Hello with its node's name");
    }
    const NodeId node(incoming_.hello().node());
    {
      // Registered first: the engine's answer to OnConnected is commands for this stream.
      std::lock_guard lock(gateway_.mutex_);
      if (!gateway_.streams_.emplace(node, this).second) {
        return absl::FailedPreconditionError("node " + node.value() + " has an agent connected already");
      }
    }
    node_ = node;
    absl::Status status = gateway_.events_->OnConnected(node, incoming_.hello());
    announced_ = status.ok();
    if (!announced_) return status;
    spdlog::info("agent of node {} is connected", node.value());
    Welcome();
    return status;
  }

  // Only to an agent that was accepted: it takes its back-off to be over. Commands may be waiting already.
  void Welcome() {
    v1::ToAgent welcome;
    welcome.mutable_welcome()->set_heartbeat_interval_us(gateway_.heartbeat_interval_.count());
    std::lock_guard lock(mutex_);
    if (ended_) return;
    welcomed_ = true;
    outgoing_.push_front(std::move(welcome));
    StartWrite(&outgoing_.front());
  }

  Gateway& gateway_;
  v1::FromAgent incoming_;      // only the reading side
  std::optional<NodeId> node_;  // only the reading side, and OnDone
  bool announced_ = false;

  std::mutex mutex_;
  std::deque<v1::ToAgent> outgoing_;  // guarded by mutex_; the front is being written
  bool welcomed_ = false;             // guarded by mutex_
  bool ended_ = false;                // guarded by mutex_
};

Gateway::Gateway(Duration heartbeat_interval, std::function<absl::Status(const std::string&)> may_serve)
    : heartbeat_interval_(heartbeat_interval), may_serve_(std::move(may_serve)) {}
Gateway::~Gateway() = default;

grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* Gateway::Connect(grpc::CallbackServerContext* context) {
  return new Stream(*this, context->peer());
}

void Gateway::Send(const NodeId& node, v1::ToAgent command) {
  std::lock_guard lock(mutex_);
  if (auto it = streams_.find(node); it != streams_.end()) it->second->Send(std::move(command));
}

void Gateway::CloseAll() {
  std::lock_guard lock(mutex_);
  for (auto& [node, stream] : streams_)
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "controller stops"));
}

}  // namespace siding
