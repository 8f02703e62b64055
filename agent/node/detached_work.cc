#include "agent/node/detached_work.h"

#include <system_error>
#include <thread>
#include <utility>

#include "common/mutex.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {
constexpr auto kFarewell = std::chrono::seconds(1);
}

struct DetachedWork::State {
  Mutex mutex;
  CondVar ended;
  std::optional<Steady::time_point> since ABSL_GUARDED_BY(mutex);
};

DetachedWork::DetachedWork() : state_(std::make_shared<State>()) {}
DetachedWork::~DetachedWork() {
  // One that has been under way for longer hangs.
  if (const auto begun = since()) Wait(*begun + kFarewell);
}

bool DetachedWork::Begin(std::function<void()> work) {
  {
    MutexLock lock(state_->mutex);
    if (state_->since) return false;
    state_->since = Steady::now();
  }
  const auto end = [](State& state) {
    MutexLock lock(state.mutex);
    state.since.reset();
    state.ended.NotifyAll();
  };
  try {
    std::thread([state = state_, work = std::move(work), end]() mutable {
      work();
      work = nullptr;  // what it owns is gone before the end is reported
      end(*state);
    }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("no thread to look with: {}", error.what());
    end(*state_);
    return false;
  }
  return true;
}

bool DetachedWork::Wait(Steady::time_point until) const {
  MutexLock lock(state_->mutex);
  return state_->ended.WaitUntil(
      state_->mutex, until, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) { return !state_->since; });
}

std::optional<DetachedWork::Steady::time_point> DetachedWork::since() const {
  MutexLock lock(state_->mutex);
  return state_->since;
}

}  // namespace siding
