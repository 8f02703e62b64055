#include "bench/simulated/agent.h"

#include <algorithm>

#include "common/clock.h"

namespace siding {
namespace {

constexpr Duration kDialAgain = std::chrono::milliseconds(100);

}  // namespace

// One connection. Everything but the callbacks is called with the agent's mutex held.
class SimulatedAgent::Stream final : public grpc::ClientBidiReactor<v1::FromAgent, v1::ToAgent> {
 public:
  Stream(SimulatedAgent& agent, v1::FromAgent hello) : agent_(agent) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // or all would share one connection
    stub_ = v1::AgentGateway::NewStub(
        grpc::CreateCustomChannel("unix:" + agent.socket_, grpc::InsecureChannelCredentials(), arguments));
    stub_->async()->Connect(&context_, this);
    StartCall();
    Send(std::move(hello));
    StartRead(&incoming_);
  }

  void Send(v1::FromAgent message) {
    agent_.mutex_.AssertHeld();  // by the agent, which alone calls this
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    agent_.OnCommand(*this, incoming_);
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(agent_.mutex_);
    outgoing_.pop_front();
    if (ok && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }
  void OnDone(const grpc::Status&) override { agent_.OnEnd(); }

 private:
  SimulatedAgent& agent_;
  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  grpc::ClientContext context_;
  v1::ToAgent incoming_;
  std::deque<v1::FromAgent> outgoing_ ABSL_GUARDED_BY(agent_.mutex_);  // the front is being written
};

SimulatedAgent::SimulatedAgent(std::string socket, SimulatedNodeOptions options,
                               std::function<void(Time)> appoint)
    : socket_(std::move(socket)),
      name_(options.name),
      appoint_(std::move(appoint)),
      node_(std::move(options)) {}

SimulatedAgent::~SimulatedAgent() {
  MutexLock lock(mutex_);
  stopping_ = true;
  if (stream_ == nullptr || dial_at_) return;
  stream_->Cancel();
  over_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return dial_at_.has_value(); });
}

void SimulatedAgent::Dial() {
  stream_.reset();
  broken_ = false;
  v1::FromAgent message;
  *message.mutable_hello() = node_.Describe();
  message.mutable_hello()->set_agent(name_);
  message.mutable_hello()->set_connection(++connections_);
  dial_at_.reset();
  stream_ = std::make_unique<Stream>(*this, std::move(message));
}

void SimulatedAgent::Advance(Time now) {
  MutexLock lock(mutex_);
  if (stopping_ || now < appointed_) return;
  appointed_ = Time::max();
  if (dial_at_ && now >= *dial_at_) Dial();
  Send(node_.Advance(now));
  if (connected_since_ && now >= next_beat_) {
    v1::FromAgent message;
    *message.mutable_heartbeat() = node_.Measure();
    Send({std::move(message)});
    next_beat_ += heartbeat_interval_;
    ++heartbeats_;
  }
  AppointNext();
}

// All that is known is said again at the next connection, so nothing is kept for it.
void SimulatedAgent::Send(std::vector<v1::FromAgent> messages) {
  if (!connected_since_) return;
  for (v1::FromAgent& message : messages) stream_->Send(std::move(message));
}

void SimulatedAgent::AppointNext() {
  Time next = node_.NextDue().value_or(Time::max());
  if (connected_since_) next = std::min(next, next_beat_);
  if (dial_at_) next = std::min(next, *dial_at_);
  if (next >= appointed_) return;
  appointed_ = next;
  appoint_(next);
}

void SimulatedAgent::OnCommand(Stream& stream, const v1::ToAgent& command) {
  MutexLock lock(mutex_);
  if (&stream != stream_.get() || broken_) return;
  const Time now = SystemClock().Now();
  if (command.has_welcome()) {
    connected_since_ = next_beat_ = now;
    heartbeat_interval_ = Duration(command.welcome().heartbeat_interval_us());
  } else {
    Send(node_.Take(command, now));
  }
  AppointNext();
}

void SimulatedAgent::OnEnd() {
  MutexLock lock(mutex_);
  dial_at_ = SystemClock().Now() + kDialAgain;
  connected_since_.reset();
  over_.NotifyAll();
  if (!stopping_) AppointNext();
}

void SimulatedAgent::Break() {
  MutexLock lock(mutex_);
  if (stream_ == nullptr || dial_at_) return;
  broken_ = true;
  connected_since_.reset();
  stream_->Cancel();
}

std::optional<Time> SimulatedAgent::ConnectedSince() const {
  MutexLock lock(mutex_);
  return connected_since_;
}

int SimulatedAgent::Tasks() const {
  MutexLock lock(mutex_);
  return node_.tasks();
}

}  // namespace siding
