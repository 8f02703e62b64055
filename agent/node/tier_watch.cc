#include "agent/node/tier_watch.h"

#include <utility>

namespace siding {
namespace {
constexpr auto kInterval = std::chrono::seconds(1);
}

TierWatch::TierWatch(std::function<Bytes()> look, const Clock& clock)
    : look_(std::move(look)), clock_(clock) {
  Look();
  thread_ = std::thread([this] { Run(); });
}

TierWatch::~TierWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

Bytes TierWatch::free() const {
  MutexLock lock(mutex_);
  return clock_.Now() - seen_ > kOldest ? Bytes{0} : free_;
}

void TierWatch::Look() {
  const Time begun = clock_.Now();
  const Bytes free = look_();
  MutexLock lock(mutex_);
  free_ = free;
  seen_ = begun;
}

void TierWatch::Run() {
  MutexLock lock(mutex_);
  while (!stop_.WaitFor(mutex_, kInterval,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
    lock.Unlock();
    Look();
    lock.Lock();
  }
}

}  // namespace siding
