// siding-test-gateway SOCKET: a controller that decides nothing. Tests order agents about through it, without
// the engine's own ideas of what is to be done: each line of stdin is "NODE JSON" with a ToAgent message,
// each line of stdout "NODE JSON" with a FromAgent message. Ends at the end of stdin.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <iostream>
#include <map>
#include <string>

#include "common/mutex.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ToAgent, v1::FromAgent>;

class Gateway final : public v1::AgentGateway::Service {
 public:
  grpc::Status Connect(grpc::ServerContext*, Stream* stream) override {
    v1::FromAgent message;
    if (!stream->Read(&message) || !message.has_hello())
      return {grpc::StatusCode::INVALID_ARGUMENT, "no hello"};
    const std::string node = message.hello().node();
    {
      MutexLock lock(mutex_);
      v1::ToAgent welcome;
      welcome.mutable_welcome()->set_heartbeat_interval_us(200'000);
      stream->Write(welcome);
      streams_[node] = stream;
    }
    do Print(node, message);
    while (stream->Read(&message));
    MutexLock lock(mutex_);
    if (streams_[node] == stream) streams_.erase(node);
    return grpc::Status::OK;
  }

  void Order(const std::string& node, const std::string& json) {
    v1::ToAgent command;
    const auto status = google::protobuf::util::JsonStringToMessage(json, &command);
    MutexLock lock(mutex_);
    const auto stream = streams_.find(node);
    if (!status.ok() || stream == streams_.end() || !stream->second->Write(command))
      std::cerr << node << ": not sent: " << json << " " << status.ToString() << std::endl;
  }

 private:
  void Print(const std::string& node, const v1::FromAgent& message) {
    std::string json;
    if (!google::protobuf::util::MessageToJsonString(message, &json).ok()) return;
    MutexLock lock(mutex_);
    std::cout << node << " " << json << std::endl;
  }

  Mutex mutex_;
  std::map<std::string, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
};

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: siding-test-gateway SOCKET\n";
    return 2;
  }
  Gateway gateway;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&gateway);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::string node, json;
  while (std::cin >> node && std::getline(std::cin, json)) gateway.Order(node, json);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
