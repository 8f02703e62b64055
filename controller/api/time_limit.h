// An end for what a caller is waited for in a call.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>

#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// Cancels the call when the time is over, unless it ends before. gRPC's own thread does it: the caller's
// blocks in a read.
class TimeLimit {
 public:
  TimeLimit(grpc::ServerContext& context, Duration within) : call_(std::make_shared<SharedCall>()) {
    call_->context = &context;
    alarm_.Set(std::chrono::system_clock::now() + within, [call = call_](bool over) {
      MutexLock lock(call->mutex);
      if (!over || call->context == nullptr) return;
      call->over = true;
      call->context->TryCancel();
    });
  }
  ~TimeLimit() {
    IsOver();
    alarm_.Cancel();
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // From now on it does not end.
  bool IsOver() {
    MutexLock lock(call_->mutex);
    call_->context = nullptr;
    return call_->over;
  }

 private:
  // The alarm may outlive the call.
  struct SharedCall {
    Mutex mutex;
    grpc::ServerContext* context ABSL_GUARDED_BY(mutex) = nullptr;
    bool over ABSL_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<SharedCall> call_;
  grpc::Alarm alarm_;
};

}  // namespace siding
