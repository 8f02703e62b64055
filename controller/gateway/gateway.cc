#include "controller/gateway/gateway.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/logging.h"
#include "common/status.h"
#include "controller/wire/grpc_status.h"

namespace siding {
namespace {

// Nodes whose pace is remembered; then those that have been quiet are forgotten.
constexpr size_t kMostPaces = 1000;
// Streams that have not said Hello, of one agent. Each may have a message under way.
constexpr int kMostSilent = 4;

size_t PortAt(const std::string& peer) { return std::min(peer.rfind(':'), peer.size()); }

}  // namespace

// Deletes itself when gRPC is done with it.
class Gateway::Stream final : public grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent> {
 public:
  Stream(Gateway& gateway, grpc::CallbackServerContext& context) : gateway_(gateway), context_(context) {
    auto identity = gateway_.identities_.AgentOf({context, "Connect"});
    if (!identity.ok()) {
      Refuse(identity.status());
      return;
    }
    identity_ = *std::move(identity);
    if (absl::Status status = gateway_.Enter(identity_); !status.ok()) {
      Refuse(status);
      return;
    }
    entered_ = true;
    After(gateway_.options_.hello_within, [this] {
      if (!greeted_) context_.TryCancel();
    });
    StartRead(&incoming_);
  }

  // Queued; one write is under way at a time, as gRPC demands, and none before the Welcome.
  void Send(v1::ToAgent command) {
    MutexLock lock(mutex_);
    if (ended_ || cut_off_) return;
    if (outgoing_.size() == gateway_.options_.most_waiting) {
      spdlog::warn("the agent of node {} does not read its commands", node_.value());
      cut_off_ = true;
      context_.TryCancel();  // Finish() would wait behind the commands
      return;
    }
    outgoing_.push_back(std::move(command));
    if (welcomed_ && outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  // It is gone at once, whether or not it reads or writes anything more.
  void CutOff(Gateway& gateway, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(gateway.changes_) {
    spdlog::warn("the agent of node {} is cut off: {}", node_.value(), std::string(why.message()));
    Leave(gateway);
    context_.TryCancel();
  }
  absl::Status StillGood() const { return gateway_.identities_.AgentOf({context_, "Connect"}).status(); }

  void End(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    Finish(status);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(grpc::Status::OK);
      return;
    }
    const size_t bytes = incoming_.ByteSizeLong();
    if (!greeted_) {
      greeted_ = true;
      GiveUpEntry();
      if (absl::Status status = Greet(); !status.ok()) {
        Refuse(status);
        return;
      }
    } else {
      FaultHere<"gateway.report: a message of an agent has come">();
      MutexLock lock(delivery_);
      if (serving_) gateway_.events_->OnMessage(node_, incoming_);
    }
    const auto wait = gateway_.Take(node_, bytes);
    if (wait == wait.zero()) {
      StartRead(&incoming_);
    } else {
      After(std::chrono::duration_cast<Duration>(wait), [this] { ReadOn(); });
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    outgoing_.pop_front();
    if (ok && !ended_ && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    {
      MutexLock lock(gateway_.changes_);
      Leave(gateway_);
    }
    GiveUpEntry();
    {
      MutexLock lock(later_->mutex);
      later_->stream = nullptr;
    }
    delete this;
  }

 private:
  void Refuse(const absl::Status& why) {
    const std::string peer = context_.peer();
    gateway_.log_.Warn(absl::StrCat("agents from ", peer.substr(0, PortAt(peer))),
                       absl::StrCat("agent from ", peer, " is refused: ", why.message()));
    End(ToGrpc(why));
  }

  absl::Status Greet() {
    if (!incoming_.has_hello() || incoming_.hello().node().empty()) {
      return absl::InvalidArgumentError("the first message of an agent must be Hello with its node's name");
    }
    node_ = NodeId(incoming_.hello().node());
    agent_ = incoming_.hello().agent();
    connection_ = incoming_.hello().connection();
    if (identity_.node && *identity_.node != node_) {
      return absl::PermissionDeniedError(
          absl::StrCat(identity_.who, " may not speak for node ", absl::CHexEscape(node_.value())));
    }
    // It may have been revoked since the stream began.
    SIDING_RETURN_IF_ERROR(gateway_.identities_.AgentOf({context_, "Connect"}).status());
    SIDING_RETURN_IF_ERROR(gateway_.TakeHello(node_, incoming_.ByteSizeLong()));
    SIDING_RETURN_IF_ERROR(FaultAt<"gateway.hello: an agent has come, the engine does not know yet">());
    MutexLock lock(gateway_.changes_);
    if (Stream* earlier = gateway_.Find(node_); earlier != nullptr) {
      if (earlier->agent_ != agent_ || earlier->connection_ >= connection_) {
        return absl::FailedPreconditionError(
            "node " + node_.value() +
            " has an agent connected already; is another one running with the same name?");
      }
      earlier->Leave(gateway_);
      earlier->context_.TryCancel();
    }
    return Join();
  }

  absl::Status Join() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gateway_.changes_) {
    // Reachable before the engine knows: its answer is commands for this stream.
    gateway_.Register(node_, this);
    if (absl::Status status = gateway_.events_->OnConnected(node_, incoming_.hello()); !status.ok()) {
      gateway_.Register(node_, nullptr);
      return status;
    }
    SetServing(true);
    spdlog::info("the agent of node {} is connected", node_.value());
    Welcome();
    return absl::OkStatus();
  }

  // Does nothing if it has not joined, or was replaced. `gateway` is gateway_: so the analysis of locks knows
  // whose lock it is if this is not the caller's own stream.
  void Leave(Gateway& gateway) ABSL_EXCLUSIVE_LOCKS_REQUIRED(gateway.changes_) {
    if (!SetServing(false)) return;
    gateway.Register(node_, nullptr);
    gateway.events_->OnDisconnected(node_);
    spdlog::info("the agent of node {} is gone", node_.value());
  }

  void GiveUpEntry() {
    if (std::exchange(entered_, false)) gateway_.Leave(identity_);
  }

  // Not after Finish(), which no operation may follow.
  void ReadOn() {
    MutexLock lock(mutex_);
    if (!ended_) StartRead(&incoming_);
  }

  // Does it when the time is over, unless the stream has gone. One alarm at a time.
  void After(Duration wait, std::function<void()> what) {
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::chrono::system_clock::now() + wait, [later = later_, what = std::move(what)](bool over) {
      if (!over) return;
      MutexLock lock(later->mutex);
      if (later->stream != nullptr) what();
    });
  }

  // Returns what it was.
  bool SetServing(bool serving) {
    MutexLock lock(delivery_);
    return std::exchange(serving_, serving);
  }

  // Only to an agent that was accepted: it takes its back-off to be over. Commands may be waiting already.
  void Welcome() {
    v1::ToAgent welcome;
    welcome.mutable_welcome()->set_heartbeat_interval_us(gateway_.options_.heartbeat_interval.count());
    welcome.mutable_welcome()->set_epoch(gateway_.options_.epoch);
    welcome.mutable_welcome()->set_cluster(gateway_.options_.cluster);
    MutexLock lock(mutex_);
    if (ended_) return;
    welcomed_ = true;
    outgoing_.push_front(std::move(welcome));
    StartWrite(&outgoing_.front());
  }

  Gateway& gateway_;
  grpc::CallbackServerContext& context_;
  v1::FromAgent incoming_;  // only the reading side
  std::atomic<bool> greeted_ = false;
  bool entered_ = false;  // only the reading side, and its end

  // An alarm may outlive the stream.
  struct Later {
    explicit Later(Stream* s) : stream(s) {}
    Mutex mutex;
    Stream* stream ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Later> later_ = std::make_shared<Later>(this);
  std::unique_ptr<grpc::Alarm> alarm_;  // only the reading side

  AgentIdentity identity_;

  // What the Hello said; set before other threads know this stream.
  NodeId node_;
  std::string agent_;
  int64_t connection_ = 0;

  Mutex delivery_;  // held while a message is passed on: none comes after OnDisconnected
  // Whether the engine takes this for its node's agent. Changed with changes_ held, too.
  bool serving_ ABSL_GUARDED_BY(delivery_) = false;

  Mutex mutex_;
  std::deque<v1::ToAgent> outgoing_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_off_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

Gateway::Gateway(GatewayOptions options, const Identities& identities)
    : options_(std::move(options)), identities_(identities) {}
Gateway::~Gateway() = default;

grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* Gateway::Connect(grpc::CallbackServerContext* context) {
  return new Stream(*this, *context);
}

Gateway::Stream* Gateway::Find(const NodeId& node) {
  MutexLock lock(mutex_);
  auto it = streams_.find(node);
  return it == streams_.end() ? nullptr : it->second;
}

void Gateway::Register(const NodeId& node, Stream* stream) {
  MutexLock lock(mutex_);
  if (stream != nullptr) {
    streams_[node] = stream;
  } else {
    streams_.erase(node);
  }
}

NodePace::Clock::duration Gateway::Take(const NodeId& node, size_t bytes) {
  const auto now = options_.now();
  NodePace::Clock::duration wait;
  {
    MutexLock lock(pace_mutex_);
    NodePace& pace = paces_[node];
    pace.Take(NodePace::kMessage, bytes, now);
    wait = pace.Wait(now);
  }
  if (wait > wait.zero()) {
    log_.Warn(absl::StrCat("pace of node ", node.value()),
              absl::StrCat("the agent of node ", node.value(),
                           " sends more than an agent does: it is read slowly"));
  }
  return wait;
}

absl::Status Gateway::TakeHello(const NodeId& node, size_t bytes) {
  const auto now = options_.now();
  MutexLock lock(pace_mutex_);
  if (paces_.size() >= kMostPaces)
    std::erase_if(paces_, [&](const auto& pace) { return pace.second.IsFresh(now); });
  NodePace& pace = paces_[node];
  if (pace.Wait(now) > pace.Wait(now).zero()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("node ", absl::CHexEscape(node.value()), " dials or sends too often; try again later"));
  }
  pace.Take(NodePace::kHello, bytes, now);
  return absl::OkStatus();
}

absl::Status Gateway::Enter(const AgentIdentity& identity) {
  if (!identity.node) return absl::OkStatus();  // root on this machine
  MutexLock lock(pace_mutex_);
  int& streams = silent_[identity.node->value()];
  if (streams >= kMostSilent) {
    return absl::ResourceExhaustedError(absl::StrCat("node ", absl::CHexEscape(identity.node->value()),
                                                     " has ", streams, " streams that have not said Hello"));
  }
  ++streams;
  return absl::OkStatus();
}

void Gateway::Leave(const AgentIdentity& identity) {
  if (!identity.node) return;
  MutexLock lock(pace_mutex_);
  const auto streams = silent_.find(identity.node->value());
  if (--streams->second == 0) silent_.erase(streams);
}

void Gateway::Send(const NodeId& node, v1::ToAgent command) {
  MutexLock lock(mutex_);
  if (auto it = streams_.find(node); it != streams_.end()) it->second->Send(std::move(command));
}

void Gateway::DropRevoked() {
  const int64_t version = identities_.Version();
  if (std::exchange(identities_version_, version) == version) return;
  // None is deleted meanwhile: each takes itself out of the map first, with this lock.
  MutexLock lock(changes_);
  std::vector<Stream*> streams;
  {
    MutexLock map_lock(mutex_);
    for (const auto& [node, stream] : streams_) streams.push_back(stream);
  }
  for (Stream* stream : streams) {
    if (const absl::Status good = stream->StillGood(); !good.ok()) stream->CutOff(*this, good);
  }
}

void Gateway::CloseAll() {
  MutexLock lock(mutex_);
  for (auto& [node, stream] : streams_)
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "controller stops"));
}

}  // namespace siding
