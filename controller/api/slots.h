// Calls that follow or wait hold a thread of the server each, so there may be only so many of them at a time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "controller/api/limits.h"

namespace siding {

// Thread-safe.
class WaitingCalls {
 public:
  explicit WaitingCalls(const ServiceLimits& limits) : limits_(limits) {}

  // Given back when it goes out of scope. `status` says whether there was one.
  class Slot {
   public:
    Slot(WaitingCalls& calls, uint32_t uid) : status(calls.Take(uid)), calls_(calls), uid_(uid) {}
    ~Slot() {
      if (status.ok()) calls_.GiveBack(uid_);
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    const absl::Status status;

   private:
    WaitingCalls& calls_;
    const uint32_t uid_;
  };

 private:
  absl::Status Take(uint32_t uid) {
    std::lock_guard lock(mutex_);
    if (all_ >= limits_.waiting_calls) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", all_, " calls that follow or wait already; limits.waiting_calls is ",
                       limits_.waiting_calls));
    }
    int& own = by_user_[uid];
    if (own >= limits_.waiting_calls_per_user) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "you have ", own, " calls that follow or wait already; limits.waiting_calls_per_user is ",
          limits_.waiting_calls_per_user));
    }
    ++own;
    ++all_;
    return absl::OkStatus();
  }
  void GiveBack(uint32_t uid) {
    std::lock_guard lock(mutex_);
    if (--by_user_[uid] == 0) by_user_.erase(uid);
    --all_;
  }

  const ServiceLimits limits_;
  std::mutex mutex_;
  std::map<uint32_t, int> by_user_;  // guarded by mutex_
  int all_ = 0;                      // guarded by mutex_
};

}  // namespace siding
