#include "controller/platform/kubernetes/client/pacer.h"

#include <algorithm>
#include <utility>

#include "common/mutex.h"

namespace siding::kubernetes {
namespace {

class SystemPacer final : public Pacer {
 public:
  Time Now() const override { return clock_.Now(); }
  bool Pause(Duration pause, std::stop_token stop) override {
    Mutex mutex;
    CondVar wake;
    std::stop_callback waker(stop, [&] {
      MutexLock lock(mutex);  // not between the check and the wait
      wake.NotifyAll();
    });
    MutexLock lock(mutex);
    return !wake.WaitFor(mutex, pause, [&] { return stop.stop_requested(); });
  }

 private:
  const SteadyClock clock_;
};

}  // namespace

Pacer& RealPacer() {
  static SystemPacer pacer;
  return pacer;
}

Duration Backoff::Next() {
  next_ = next_ == Duration(0) ? first_ : std::min(next_ * 2, most_);
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  const int64_t half = next_.count() / 2;
  return Duration(next_.count() -
                  (half == 0 ? 0 : static_cast<int64_t>(random_ % static_cast<uint64_t>(half + 1))));
}

}  // namespace siding::kubernetes
