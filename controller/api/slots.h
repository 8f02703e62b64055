// Calls that last hold a thread of the server each, so one user may have only so many of them at a time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace siding {

inline constexpr int kLongCallsPerUser = 32;

// Thread-safe.
class LongCalls {
 public:
  // Given back when it goes out of scope. `status` says whether there was one.
  class Slot {
   public:
    Slot(LongCalls& calls, uint32_t uid) : calls_(calls), uid_(uid) {
      std::lock_guard lock(calls_.mutex_);
      int& count = calls_.count_[uid];
      if (count >= kLongCallsPerUser) {
        status = absl::ResourceExhaustedError(absl::StrCat(
            "you have ", count, " calls that follow or wait already; no user may have more than ",
            kLongCallsPerUser));
        return;
      }
      ++count;
    }
    ~Slot() {
      if (!status.ok()) return;
      std::lock_guard lock(calls_.mutex_);
      if (--calls_.count_[uid_] == 0) calls_.count_.erase(uid_);
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    absl::Status status;

   private:
    LongCalls& calls_;
    const uint32_t uid_;
  };

 private:
  std::mutex mutex_;
  std::map<uint32_t, int> count_;  // guarded by mutex_
};

}  // namespace siding
