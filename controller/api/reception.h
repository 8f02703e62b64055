// Takes in what users send: first who calls, from the headers alone, and only then the request, within a
// time.
//
// By default gRPC receives the whole request before it calls the service. A client that announced requests
// and never finished them, without a credential, thus had the controller keep what it sent.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/api/limits.h"
#include "controller/identity/user.h"

namespace siding {

// A call whose request is on its way.
class Arrival {
 public:
  enum class End : uint8_t { kCame, kOver, kNothing };

  virtual ~Arrival() = default;
  virtual std::string peer() const = 0;  // for people
  // kUnauthenticated: the caller is not known. kPermissionDenied: it is known, and may not. Asked once.
  virtual absl::StatusOr<UserIdentity> Who() = 0;
  virtual bool IsCancelled() const = 0;
  // Brings the request in, and blocks until it is there. kOver: it was not within that time. kNothing: what
  // came is none.
  virtual End Read(Duration within) = 0;
};

// Thread-safe.
class Reception {
 public:
  // A request that is not there `within` that time is given up.
  Reception(const ServiceLimits& limits, Duration within);

  // Who calls, once the request is there; blocks until then. kUnauthenticated, kPermissionDenied: see
  // Arrival. kResourceExhausted, naming the limit: too many requests of this user's are on their way.
  // kCancelled: the caller has gone. kDeadlineExceeded: the request did not come in time. kInvalidArgument:
  // what came is none.
  absl::StatusOr<UserIdentity> Take(Arrival& call, const std::string& method);

 private:
  // Of one user, by number. Each holds memory as long as its message.
  static constexpr int kReadAtOnce = 3;

  struct Arriving {
    int all = 0;   // that are read, or wait until they are
    int read = 0;  // of these
  };
  class Place;

  absl::Status Enter(uint32_t uid);
  void Leave(uint32_t uid);
  // False: its turn has not come, and the caller has gone or the time is over.
  bool AwaitTurn(uint32_t uid, const Arrival& call);
  void EndTurn(uint32_t uid);
  absl::Status Read(Arrival& call, uint32_t uid);
  void Tell(const std::string& method, const std::string& caller, const absl::Status& why);

  const ServiceLimits limits_;
  const Duration within_;

  Mutex mutex_;
  CondVar turn_;
  std::map<uint32_t, Arriving> by_user_ ABSL_GUARDED_BY(mutex_);
  int all_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t told_second_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t told_ ABSL_GUARDED_BY(mutex_) = 0;  // in that second
};

}  // namespace siding
