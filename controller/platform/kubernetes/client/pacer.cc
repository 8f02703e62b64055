#include "controller/platform/kubernetes/client/pacer.h"

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

}  // namespace siding::kubernetes
