// sidingctl's way to the controllers of a site: which of them to ask, and what to do while none is active.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client.h"
#include "common/mutex.h"
#include "common/units.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {

// Whether a call may be repeated if its outcome is unknown.
enum class Repeat { kYes, kNo };

// Not thread-safe, but for Cancel().
class Controllers {
 public:
  using Stub = v1::Siding::Stub;
  // One attempt at a call; its status is gRPC's.
  using Attempt = std::function<grpc::Status(Stub& stub, grpc::ClientContext& context)>;

  explicit Controllers(const Connection& connection);
  ~Controllers();

  using OnAway = std::function<void(const absl::Status&)>;

  // Makes the call where it is answered; see Client. Of one controller only there is one attempt, unless its
  // absence is to be outlasted.
  absl::Status Call(const Attempt& attempt, Repeat repeat);
  // Asks each of them alone, by its address: OK also of one that stands by; else why it does not answer.
  std::map<std::string, absl::Status> AskEach(const Attempt& attempt);
  // From now on calls wait for up to `absence` for a controller that answers, and dial it anew; 0: each is
  // looked for once. `away` is told once a call that none does; where there are several, only when a
  // take-over would be done.
  void Outlast(Duration absence, OnAway away);
  // The call that is under way ends with kCancelled, and so does each later one.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a stream goes on that ended with its controller: at another one, or when that one is back.
  bool streams_go_on() const { return several() || away_ != nullptr; }

 private:
  bool several() const { return controllers_.size() > 1; }
  struct Controller {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;  // null: not dialled
    std::unique_ptr<Stub> stub;
  };
  absl::Status Dial(Controller& controller) const;
  absl::Status Reached(const Controller& controller) const;
  grpc::Status Make(const Attempt& attempt, Controller& controller, grpc::ClientContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsCancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AskAlone(Controller& controller, const Attempt& attempt);
  absl::Status CallOne(Controller& controller, const Attempt& attempt);
  absl::Status CallOneOf(const Attempt& attempt, Repeat repeat);

  const Connection connection_;
  std::vector<Controller> controllers_;
  size_t turn_ = 0;  // index of the controller that answered last
  Duration patience_;
  OnAway away_;  // null: absences are not outlasted
  mutable Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace siding::cli
