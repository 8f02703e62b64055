// How much of a controller's time the plans of a page may take, or of all pages together.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/units.h"

namespace siding::page {

// Each question is another one, as somebody types, and while a plan is made all other readers of the page
// wait. So plans may take so much of the time at once, and in the long run one part of it in so many: of one
// reader's page a fifth, and of all of them half. Plans of orders have parts of their own, so that nobody who
// has to order something waits for those who try things out. Thread-safe.
class PlanningTime {
 public:
  struct Share {
    Duration at_once;
    int parts;
  };
  static constexpr Share kOfOne{std::chrono::seconds(2), 5};
  static constexpr Share kOfAll{std::chrono::seconds(4), 2};
  static constexpr Share kOfAllOrders{std::chrono::seconds(4), 4};

  // `clock` must outlive it.
  PlanningTime(const Clock& clock, Share share) : clock_(clock), share_(share), as_of_(clock.Now()) {}

  // kResourceExhausted: too much has been taken; it says when to come back.
  absl::Status Left() {
    MutexLock lock(mutex_);
    PayBack();
    if (taken_ < share_.at_once) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "plans have taken ", FormatDuration(taken_), ", and may take one part in ", share_.parts,
        " of the time: try again in ",
        FormatDuration(share_.parts * (taken_ - share_.at_once) + std::chrono::milliseconds(1))));
  }
  void Take(Duration took) {
    MutexLock lock(mutex_);
    PayBack();
    taken_ += took;
  }

 private:
  void PayBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Time now = clock_.Now();
    taken_ = std::max(Duration(0), taken_ - std::max(Duration(0), now - as_of_) / share_.parts);
    as_of_ = now;
  }

  const Clock& clock_;
  const Share share_;
  Mutex mutex_;
  Duration taken_ ABSL_GUARDED_BY(mutex_){0};
  Time as_of_ ABSL_GUARDED_BY(mutex_);
};

// What is left for one reader's plans, of his own part and of that of all readers. Thread-safe.
class PlanningBudget {
 public:
  // `clock` must outlive it.
  PlanningBudget(const Clock& clock, std::shared_ptr<PlanningTime> all)
      : clock_(clock), own_(clock, PlanningTime::kOfOne), all_(std::move(all)) {}

  // What `plan()` returns, a Status or a StatusOr. kResourceExhausted: it was not called.
  template <class Plan>
  auto Spend(const Plan& plan) -> decltype(plan()) {
    SIDING_RETURN_IF_ERROR(own_.Left());
    SIDING_RETURN_IF_ERROR(all_->Left());
    const Time began = clock_.Now();
    auto made = plan();
    const Duration took = clock_.Now() - began;
    own_.Take(took);
    all_->Take(took);
    return made;
  }

 private:
  const Clock& clock_;
  PlanningTime own_;
  const std::shared_ptr<PlanningTime> all_;
};

}  // namespace siding::page
