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
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

Bytes TierWatch::free() const {
  std::lock_guard lock(mutex_);
  return clock_.Now() - seen_ > kOldest ? Bytes{0} : free_;
}

void TierWatch::Look() {
  const Time begun = clock_.Now();
  const Bytes free = look_();
  std::lock_guard lock(mutex_);
  free_ = free;
  seen_ = begun;
}

void TierWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

}  // namespace siding
