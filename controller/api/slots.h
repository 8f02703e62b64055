// Each call holds a thread of the server while it lasts, which may be as long as its caller likes: until he
// has read the answer. So there may be only so many at a time, and of each user's as well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "controller/api/limits.h"

namespace siding {

// Of calls of one kind. Thread-safe.
class CallSlots {
 public:
  struct Kind {
    std::string calls;  // "calls that follow or wait"
    std::string limit;  // "waiting_calls": its name in the configuration; with "_per_user" the other one's
    int most = std::numeric_limits<int>::max();
    int most_per_user = 0;
    bool root_counts = true;
  };
  explicit CallSlots(Kind kind) : kind_(std::move(kind)) {}

  // Given back when it goes out of scope. `status` says whether there was one: kResourceExhausted names the
  // limit.
  class Slot {
   public:
    Slot(CallSlots& calls, uint32_t uid) : status(calls.Take(uid)), calls_(calls), uid_(uid) {}
    ~Slot() {
      if (status.ok()) calls_.Release(uid_);
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    const absl::Status status;

   private:
    CallSlots& calls_;
    const uint32_t uid_;
  };

 private:
  bool Counts(uint32_t uid) const { return uid != 0 || kind_.root_counts; }
  absl::Status Take(uint32_t uid) {
    if (!Counts(uid)) return absl::OkStatus();
    MutexLock lock(mutex_);
    if (all_ >= kind_.most) {
      return absl::ResourceExhaustedError(absl::StrCat("there are ", all_, " ", kind_.calls,
                                                       " already; limits.", kind_.limit, " is ", kind_.most));
    }
    const auto own = by_user_.find(uid);
    if (own != by_user_.end() && own->second >= kind_.most_per_user) {
      return absl::ResourceExhaustedError(absl::StrCat("you have ", own->second, " ", kind_.calls,
                                                       " already; limits.", kind_.limit, "_per_user is ",
                                                       kind_.most_per_user));
    }
    ++by_user_[uid];
    ++all_;
    return absl::OkStatus();
  }
  void Release(uint32_t uid) {
    if (!Counts(uid)) return;
    MutexLock lock(mutex_);
    if (--by_user_[uid] == 0) by_user_.erase(uid);
    --all_;
  }

  const Kind kind_;
  Mutex mutex_;
  std::map<uint32_t, int> by_user_ ABSL_GUARDED_BY(mutex_);
  int all_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Calls that follow or wait.
class WaitingCalls : public CallSlots {
 public:
  explicit WaitingCalls(const ServiceLimits& limits)
      : CallSlots({"calls that follow or wait", "waiting_calls", limits.waiting_calls,
                   limits.waiting_calls_per_user}) {}
};

// All that have arrived, until their answers are read.
class AllCalls : public CallSlots {
 public:
  explicit AllCalls(const ServiceLimits& limits)
      : CallSlots({"calls under way", "calls", limits.MostCalls(), limits.calls_per_user,
                   /*root_counts=*/false}) {}
};

// Plans are made one after the other, and each call waits for those that came before.
class PlanningCalls : public CallSlots {
 public:
  explicit PlanningCalls(const ServiceLimits& limits)
      : CallSlots({.calls = "calls that plan",
                   .limit = "planning_calls",
                   .most_per_user = limits.planning_calls_per_user,
                   .root_counts = false}) {}
};

}  // namespace siding
