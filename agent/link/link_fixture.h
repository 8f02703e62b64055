// A link, and a controller that follows a script, one part for every connection.
#pragma once

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "agent/link/link.h"
#include "common/patience_for_test.h"
#include "gtest/gtest.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {

using Stream = grpc::ServerReaderWriter<v1::ToAgent, v1::FromAgent>;
using Connection = std::function<grpc::Status(Stream&)>;

class ScriptedGateway final : public v1::AgentGateway::Service {
 public:
  explicit ScriptedGateway(std::vector<Connection> script) : script_(std::move(script)) {}
  grpc::Status Connect(grpc::ServerContext*, Stream* stream) override {
    const Connection* connection = nullptr;
    {
      MutexLock lock(mutex_);
      if (next_ < script_.size()) connection = &script_[next_++];
    }
    if (connection != nullptr) return (*connection)(*stream);
    v1::FromAgent message;
    while (stream->Read(&message)) {  // the script is over: nothing happens until the agent stops
    }
    return grpc::Status::OK;
  }

 private:
  const std::vector<Connection> script_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

class LinkTest : public testing::Test, public TaskHost {
 protected:
  LinkTest() : folder_(mkdtemp(name_)), socket_(folder_ + "/socket") {}
  ~LinkTest() override { std::filesystem::remove_all(folder_); }
  // Not in the destructor: until then the link calls this object.
  void TearDown() override {
    link_.Stop();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kPatience);
  }

  // Follows the script to its end: until the link has come back from every connection in it.
  void Play(std::vector<Connection> script) {
    const size_t connections = script.size();
    Serve(std::move(script));
    link_.Start(*this);
    AwaitPauses(connections);
  }

  void Serve(std::vector<Connection> script) {
    gateway_ = std::make_unique<ScriptedGateway>(std::move(script));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(gateway_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // Until so many connections have ended, or could not be made.
  void AwaitPauses(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return welcomed_.size() >= count;
    }));
  }
  void AwaitCommands(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return executed_.size() >= count;
    }));
  }
  // Of each connection that has ended, whether it had been accepted.
  std::vector<bool> Welcomed() {
    MutexLock lock(mutex_);
    return welcomed_;
  }
  std::vector<int64_t> Executed() {
    MutexLock lock(mutex_);
    return executed_;
  }

  // TaskHost
  void Execute(const v1::ToAgent& command) override {
    MutexLock lock(mutex_);
    if (command.has_welcome()) return;
    executed_.push_back(command.op());
    changed_.NotifyAll();
  }
  absl::StatusOr<std::string> ExpectShim(const v1::ToAgent&, const GpuAllocation&,
                                         std::function<void(absl::Status)>) override {
    return absl::UnimplementedError("no shims here");
  }
  absl::StatusOr<std::vector<ImageKey>> Images(v1::Tier) override { return std::vector<ImageKey>(); }
  std::vector<v1::TaskReport> Reports() override { return {}; }
  v1::Hello Describe() override {
    v1::Hello hello;
    hello.add_tasks()->set_phase(phase_);
    return hello;
  }
  v1::Heartbeat Measure() override { return {}; }

  // Nothing is waited for between two connections; whether they had been accepted is noted.
  Duration Pause(bool welcomed) {
    MutexLock lock(mutex_);
    welcomed_.push_back(welcomed);
    changed_.NotifyAll();
    return Duration(0);
  }

  char name_[32] = "/tmp/siding-link-XXXXXX";
  const std::string folder_;
  const std::string socket_;
  std::atomic<v1::TaskPhase> phase_ = v1::RUNNING;
  Mutex mutex_;
  CondVar changed_;
  std::promise<void> moment_;  // of a part of the script that may outlive the test's body
  std::vector<bool> welcomed_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> executed_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ScriptedGateway> gateway_;
  std::unique_ptr<grpc::Server> server_;
  // What the node has worked for so far refuses controllers of an earlier epoch.
  std::atomic<int64_t> epoch_ = 0;
  Link link_{LinkOptions{{{"unix:" + socket_}, {"unix:" + socket_}},
                         [this](bool welcomed) { return Pause(welcomed); },
                         100,
                         [this](int64_t epoch) {
                           return epoch < epoch_ ? absl::FailedPreconditionError("older") : absl::OkStatus();
                         }}};
};

}  // namespace siding
