// A gateway in a server of this process, agents that say what a test wants, and a record of what the engine
// hears.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/gateway/gateway.h"
#include "controller/identity/fake_identities.h"
#include "gtest/gtest.h"

namespace siding {

// "+n1" connected, "n1:7" the result of operation 7, "-n1" disconnected.
class RecordingEvents final : public AgentEvents {
 public:
  absl::Status OnConnected(const NodeId& node, const v1::Hello&) override {
    Add("+" + node.value());
    return on_connected(node);
  }
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override {
    Add(absl::StrCat(node.value(), ":", message.result().op()));
  }
  void OnDisconnected(const NodeId& node) override { Add("-" + node.value()); }

  // Everything so far, as soon as there is so much.
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return heard_.size() >= count; }));
    return heard_;
  }
  std::function<absl::Status(const NodeId&)> on_connected = [](const NodeId&) { return absl::OkStatus(); };

 private:
  void Add(std::string what) {
    MutexLock lock(mutex_);
    heard_.push_back(std::move(what));
    changed_.NotifyAll();
  }
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mutex_);
};

// One connection of an agent. Its end cancels what is left of it.
class TestAgent {
 public:
  // What it reads has to come.
  explicit TestAgent(grpc::Server& server) : stub_(v1::AgentGateway::NewStub(server.InProcessChannel({}))) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Connect(&context_);
  }
  ~TestAgent() { context_.TryCancel(); }

  bool Hello(const std::string& node, const std::string& agent = "", int64_t connection = 0) {
    v1::FromAgent message;
    message.mutable_hello()->set_node(node);
    message.mutable_hello()->set_agent(agent);
    message.mutable_hello()->set_connection(connection);
    return stream_->Write(message);
  }
  void Answer(int64_t op) {
    v1::FromAgent message;
    message.mutable_result()->set_op(op);
    stream_->Write(message);
  }
  // A welcome has no operation: 0. The end of the stream: -1.
  int64_t Read() {
    v1::ToAgent message;
    if (!stream_->Read(&message)) return -1;
    welcome = message.welcome();
    return message.op();
  }
  bool IsWelcomed() { return Read() == 0; }
  void HangUp() { stream_->WritesDone(); }
  // How the gateway ended the stream, once it has.
  grpc::Status End() {
    while (Read() != -1) {
    }
    return stream_->Finish();
  }
  v1::Welcome welcome;  // the last message, if it was one

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromAgent, v1::ToAgent>> stream_;
};

class GatewayTest : public testing::Test {
 protected:
  static constexpr int kMostWaiting = 10;

  // The limit is far away where a test is not about it.
  explicit GatewayTest(Duration hello_within = std::chrono::hours(1))
      : gateway_({.heartbeat_interval = std::chrono::seconds(7),
                  .most_waiting = kMostWaiting,
                  .hello_within = hello_within,
                  .epoch = 5,
                  .cluster = 77,
                  .now = [this] { return NodePace::Clock::time_point(clock_.Now().time_since_epoch()); }},
                 identities_) {
    gateway_.Attach(events_);
    grpc::ServerBuilder builder;
    builder.RegisterService(&gateway_);
    server_ = builder.BuildAndStart();
  }
  ~GatewayTest() override {
    gateway_.CloseAll();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  void Command(const std::string& node, int64_t op) {
    v1::ToAgent command;
    command.set_op(op);
    command.mutable_resume();
    gateway_.Send(NodeId(node), std::move(command));
  }

  FakeIdentities identities_;
  FakeClock clock_{Time(std::chrono::hours(1))};  // of what nodes send
  RecordingEvents events_;
  Gateway gateway_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace siding
