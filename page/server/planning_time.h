// How much of a controller's time the plans of one page may take.
#pragma once

#include <algorithm>
#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding::page {

// Each question is another one, as somebody types, and while a plan is made all other readers of the page
// wait. So plans may take kAtOnce of the time at once, and in the long run one part of it in kShare.
// Thread-safe.
class PlanningTime {
 public:
  static constexpr Duration kAtOnce = std::chrono::seconds(2);
  static constexpr int kShare = 5;

  explicit PlanningTime(const Clock& clock)
      : clock_(clock), as_of_(clock.Now()) {}  // `clock` must outlive it

  // kResourceExhausted: too much has been taken; it says when to come back.
  absl::Status Left() {
    MutexLock lock(mutex_);
    PayBack();
    if (taken_ < kAtOnce) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "plans have taken ", FormatDuration(taken_), ", and may take a fifth of the time: try again in ",
        FormatDuration(kShare * (taken_ - kAtOnce) + std::chrono::milliseconds(1))));
  }
  void Take(Duration took) {
    MutexLock lock(mutex_);
    PayBack();
    taken_ += took;
  }

 private:
  void PayBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Time now = clock_.Now();
    taken_ = std::max(Duration(0), taken_ - std::max(Duration(0), now - as_of_) / kShare);
    as_of_ = now;
  }

  const Clock& clock_;
  Mutex mutex_;
  Duration taken_ ABSL_GUARDED_BY(mutex_){0};
  Time as_of_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::page
