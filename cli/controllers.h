// sidingctl's way to the controllers of a site: which of them to ask, and what to do while none is active.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {

// Whether a call may be repeated if its outcome is unknown.
enum class Repeat { kYes, kNo };

// Not thread-safe.
class Controllers {
 public:
  using Stub = v1::Siding::Stub;
  // One attempt at a call; its status is gRPC's.
  using Attempt = std::function<grpc::Status(Stub& stub, grpc::ClientContext& context)>;

  explicit Controllers(const Connection& connection);
  ~Controllers();

  // Makes the call where it is answered; see Client. Of one controller only there is one attempt.
  absl::Status Call(const Attempt& attempt, Repeat repeat);
  // Whether another controller may continue where one has stopped.
  bool several() const { return controllers_.size() > 1; }

 private:
  struct Controller {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;  // null: not dialled
    std::unique_ptr<Stub> stub;
  };
  absl::Status Dial(Controller& controller) const;
  absl::Status Reached(const Controller& controller) const;
  absl::Status CallOne(Controller& controller, const Attempt& attempt) const;
  absl::Status CallOneOf(const Attempt& attempt, Repeat repeat);

  const Connection connection_;
  std::vector<Controller> controllers_;
  size_t turn_ = 0;  // index of the controller that answered last
};

}  // namespace siding::cli
