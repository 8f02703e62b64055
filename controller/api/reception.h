// Takes in what users send: first who calls, from the headers alone, and only then the request, within a
// time.
//
// By default gRPC receives the whole request before it calls the service. A client that announced requests
// and never finished them, without a credential, thus had the controller keep what it sent.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/api/limits.h"
#include "controller/identity/identity.h"

namespace siding {

// Thread-safe.
class Reception {
 public:
  // `identities` must outlive it. A request that is not there `within` that time is given up.
  Reception(const Identities& identities, const ServiceLimits& limits, Duration within);

  // Who calls, once `read` has brought the request in; it blocks until then, and is false if nothing came.
  // kUnauthenticated, kPermissionDenied: see Identities. kResourceExhausted, naming the limit: too many
  // requests of this user's are on their way. kCancelled: the caller has gone. kDeadlineExceeded: the request
  // did not come in time. kInvalidArgument: what came is none.
  absl::StatusOr<UserIdentity> Take(grpc::ServerContext& context, const std::string& method,
                                    const std::function<bool()>& read);

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
  bool AwaitTurn(uint32_t uid, const grpc::ServerContext& context);
  void EndTurn(uint32_t uid);
  absl::Status Read(grpc::ServerContext& context, uint32_t uid, const std::function<bool()>& read);
  void Tell(const std::string& method, const std::string& caller, const absl::Status& why);

  const Identities& identities_;
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
