// The agent's one connection: dials a controller, holds a stream open, and dials again for ever when it
// breaks. What the tasks do does not depend on it.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/link/dial_pause.h"
#include "agent/node/task_host.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// What to connect with; asked before each connection, so that renewed certificates are used from then on.
using LinkCredentials = std::function<absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>()>;

// A controller that may be the active one.
struct LinkTarget {
  std::string target;  // gRPC target, such as "unix:/run/siding/siding.sock" or "head1:7433"
  grpc::ChannelArguments arguments;
  LinkCredentials credentials = [] { return grpc::InsecureChannelCredentials(); };  // for unix sockets only
};

struct LinkOptions {
  std::vector<LinkTarget> controllers;  // one at least: dialled in turn, until one takes us
  // How long to wait before dialling again, after a connection that was welcomed or was not. Asked by the
  // link's thread only.
  std::function<Duration(bool welcomed)> pause = DialPause(std::random_device{}());
  // A controller that leaves so many messages unread is hung up on: the next Hello says it all again.
  size_t most_waiting = 10'000;
  // Told the epoch of a controller that has welcomed us. An error: it is hung up on before it has been
  // obeyed. Asked by the link's thread only.
  std::function<absl::Status(int64_t epoch)> accept = [](int64_t) { return absl::OkStatus(); };
};

// Thread-safe.
class Link final : public ReportSink {
 public:
  explicit Link(LinkOptions options);
  ~Link() override;  // Stop()
  // Connects, again and again until Stop(). Once; `host` must outlive the link.
  void Start(TaskHost& host);
  void Stop();
  void Send(v1::FromAgent message) override;

 private:
  class Session;
  void Run();
  // One connection from dialling to its end. True if the controller welcomed us.
  bool Serve(const LinkTarget& controller);

  const LinkOptions options_;
  const std::string agent_;  // tells this agent from another with the same node's name
  int64_t connections_ = 0;  // only the link's thread
  TaskHost* host_ = nullptr;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::FromAgent> outgoing_ ABSL_GUARDED_BY(mutex_);
  Session* session_ ABSL_GUARDED_BY(mutex_) = nullptr;  // while connected
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;         // its stream can be read no more
  std::thread thread_;
};

}  // namespace siding
