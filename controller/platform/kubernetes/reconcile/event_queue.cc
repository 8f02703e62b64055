#include "controller/platform/kubernetes/reconcile/event_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siding::kubernetes {
namespace {

constexpr char kAll[] = "";
constexpr int kMostRefusals = 5;

bool IsSame(const PodEvent& a, const PodEvent& b) {
  return a.uid == b.uid && a.reason == b.reason && a.key == b.key && (!a.key.empty() || a.text == b.text);
}

}  // namespace

void EventQueue::Add(PodEvent event) {
  MutexLock lock(mutex_);
  const bool is_there = std::any_of(events_.begin(), events_.end(),
                                    [&](const PodEvent& other) { return IsSame(event, other); });
  if (is_there) return;
  events_.push_back(std::move(event));
  MakeRoom();
}

void EventQueue::MakeRoom() {
  while (events_.size() > kMost) {
    events_.pop_front();
    ++lost_;
  }
}

std::optional<PodEvent> EventQueue::Take(Time now) {
  MutexLock lock(mutex_);
  if (!pauses_.Allow(kAll, now)) return std::nullopt;
  const auto due = std::find_if(events_.begin(), events_.end(), [&](const PodEvent& event) {
    mutex_.AssertHeld();
    return pauses_.Allow(event.pod.space, now);
  });
  if (due == events_.end()) return std::nullopt;
  PodEvent event = std::move(*due);
  events_.erase(due);
  return event;
}

void EventQueue::Done(PodEvent event, const absl::Status& said, Time now) {
  MutexLock lock(mutex_);
  pauses_.Forget(now);
  if (said.ok()) {
    pauses_.Succeed(kAll);
    pauses_.Succeed(event.pod.space);
    return;
  }
  if (absl::IsCancelled(said)) return events_.push_front(std::move(event));
  log_.Warn(event.pod.space, absl::StrCat("kubernetes: pod ", ToString(event.pod),
                                          " is not told: ", event.text, ": ", said.message()));
  if (!IsOfOneObject(said)) {
    pauses_.Fail(kAll, now);
    events_.push_front(std::move(event));
    return MakeRoom();
  }
  // The server would say the same again; or the namespace is gone.
  const bool for_good = absl::IsInvalidArgument(said) || absl::IsNotFound(said);
  if (!for_good) pauses_.Fail(event.pod.space, now);
  if (for_good || ++event.refused == kMostRefusals) {
    ++lost_;
    return;
  }
  // It may be the only one that is refused there.
  events_.push_back(std::move(event));
  MakeRoom();
}

int64_t EventQueue::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

}  // namespace siding::kubernetes
